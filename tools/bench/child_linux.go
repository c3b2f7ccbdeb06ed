package main

import "syscall"

// dieWithParent lets no measured program outlive a run that is broken off.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
