//go:build !linux

package main

import "syscall"

// dieWithParent does nothing, because only Linux has this feature. CPU and memory are read from
// /proc, so other systems cannot measure anyway.
func dieWithParent() *syscall.SysProcAttr { return nil }
