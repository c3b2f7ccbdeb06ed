package devtest

import "syscall"

const (
	sharedMemory = "/dev/shm"
	// memoryNeeded, in bytes, keeps clear of containers, where the default is
	// 64 MB: a cluster takes 40 MB and each database 8 MB more.
	memoryNeeded = 2 << 30
)

// MemoryFolder is a folder in memory with space for databases, "" if there is
// none.
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
