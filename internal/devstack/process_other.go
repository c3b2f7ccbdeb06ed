//go:build !linux

package devstack

import "syscall"

// dieWithParent does nothing, because only Linux has this feature. A server whose parent was killed
// runs until somebody stops it.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
