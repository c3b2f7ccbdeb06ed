//go:build !linux

package devstack

import "syscall"

// dieWithParent does nothing: only Linux offers it. A server whose parent was
// killed stays until it is stopped by hand.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
