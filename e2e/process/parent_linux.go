package process

import "syscall"

// dieWithParent lets no program outlive a test run that is broken off.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
