//go:build !linux

package devtest

// memoryFolder is "", the system's place for temporary files: only Linux has a
// folder in memory everywhere.
func memoryFolder() string { return "" }
