//go:build !linux

package main

import "syscall"

// dieWithParent does nothing, because only Linux has this feature. The benchmark cannot measure on
// other systems anyway, because it reads CPU and memory from /proc.
func dieWithParent() *syscall.SysProcAttr { return nil }
