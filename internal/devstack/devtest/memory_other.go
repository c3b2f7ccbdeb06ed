//go:build !linux

package devtest

// MemoryFolder returns "", which means the system's temporary folder. Only Linux always has a
// folder in memory.
func MemoryFolder() string { return "" }
