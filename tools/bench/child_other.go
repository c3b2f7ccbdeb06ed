//go:build !linux

package main

import "syscall"

// dieWithParent does nothing here: only Linux has the means. CPU and memory are read
// from /proc, so there is nothing to be measured either.
func dieWithParent() *syscall.SysProcAttr { return nil }
