//go:build !linux

package process

// The function stopped returns true without a check, because this system has no /proc.
func stopped(int) (bool, error) { return true, nil }
