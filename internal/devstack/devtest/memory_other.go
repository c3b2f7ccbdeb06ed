//go:build !linux

package devtest

// MemoryFolder is "", the system's place for temporary files: only Linux has a
// folder in memory everywhere.
func MemoryFolder() string { return "" }
