package devtest

import "syscall"

const (
	sharedMemory = "/dev/shm"
	// memoryNeeded is the space in bytes that MemoryFolder requires. A cluster takes 40 MB and each
	// database 8 MB more. The default in containers is 64 MB, which is too small.
	memoryNeeded = 2 << 30
)

// MemoryFolder returns a folder in memory with enough space for databases, or "" if there is none.
func MemoryFolder() string {
	var stat syscall.Statfs_t
	const writeAndEnter = 0o3
	if syscall.Statfs(sharedMemory, &stat) != nil || syscall.Access(sharedMemory, writeAndEnter) != nil {
		return ""
	}
	if stat.Bavail*uint64(stat.Bsize) < memoryNeeded {
		return ""
	}
	return sharedMemory
}
