//go:build !linux

package devstack

import "syscall"

// dieWithParent does nothing, because only Linux has this feature. If the parent is killed, the
// server runs until somebody stops it.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
