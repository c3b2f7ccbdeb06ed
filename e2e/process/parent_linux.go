package process

import "syscall"

// dieWithParent makes the kernel kill the program if the test process dies.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
