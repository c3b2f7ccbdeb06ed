package pace

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	childVariable = "PROJECTOR_TEST_COARSE_TIMERS"
	childTest     = "-test.run=^TestTheProgramExecutesItselfOnceForCoarseTimers$"
)

// TestTheProgramExecutesItselfOnceForCoarseTimers runs itself as a child process. The child
// executes itself again. After that, it still has the same process id and arguments, and has the
// timer slack.
func TestTheProgramExecutesItselfOnceForCoarseTimers(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		CoarseTimers()
		slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, again := os.LookupEnv(executedAgain)
		_, _ = fmt.Fprintf(os.Stdout, "%d %v %v %t\n", os.Getpid(), time.Duration(slack), os.Args[1:], again)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], childTest)
	child.Env = append(os.Environ(), childVariable+"=1")
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	if err := child.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	want := fmt.Appendf(nil, "%d 1ms [%s] false\n", child.ProcessState.Pid(), childTest)
	if !bytes.Contains(out.Bytes(), want) {
		t.Errorf("the child printed %q, want %q in it", out.Bytes(), want)
	}
}

// TestTheProgramIsNotExecutedTwice shows that CoarseTimers returns in a program that was executed
// again, for any value of the timer slack.
func TestTheProgramIsNotExecutedTwice(t *testing.T) {
	t.Setenv(executedAgain, "1")
	CoarseTimers()
	if _, again := os.LookupEnv(executedAgain); again {
		t.Errorf("%s is still set", executedAgain)
	}
}
