//go:build !linux

package devtest

// MemoryFolder returns "", because only Linux has a usual folder in memory. The data is then in the
// system's temporary folder.
func MemoryFolder() string { return "" }
