package pace

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// timerSlack is how much later than requested the kernel may wake a thread.
	timerSlack = time.Millisecond
	// executedAgain is an environment variable that the program sets for itself. Without this
	// variable, the program would execute itself without end where the kernel ignores the slack,
	// for example for a real-time process.
	executedAgain = "PROJECTOR_EXECUTED_AGAIN"
)

// CoarseTimers lets the kernel wake the program's threads a little late. While the program works,
// the Go runtime's monitor thread asks to sleep for 20 µs again and again. With few events that is
// a fifth of the program's CPU time.
//
// A thread gets the slack of the thread that starts it, and the monitor thread starts before main.
// So the program sets the slack and then executes itself again, with the same process id, arguments
// and environment. If that is not possible, the program continues without the slack. CoarseTimers
// must be the first call in main.
func CoarseTimers() {
	if _, again := os.LookupEnv(executedAgain); again {
		_ = os.Unsetenv(executedAgain)
		return
	}
	runtime.LockOSThread() // the slack belongs to this thread, and the new program gets it
	defer runtime.UnlockOSThread()
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || now >= int(timerSlack) {
		return
	}
	program, err := os.Executable()
	if err != nil {
		return
	}
	if err = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0); err != nil {
		return
	}
	_ = syscall.Exec(program, os.Args, append(os.Environ(), executedAgain+"=1")) //nolint:gosec // G204: this program itself
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(now), 0, 0, 0)                // the program could not be executed
}
