package devstack

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPostgresDiesWithItsParent starts a cluster in a child process and kills the child with
// SIGKILL. PostgreSQL must then end too.
func TestPostgresDiesWithItsParent(t *testing.T) {
	if os.Getenv("PROJECTOR_TEST_PARENT") != "" {
		becomeParent(t)
		return
	}
	parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), "PROJECTOR_TEST_PARENT=1")
	parent.Stderr = os.Stderr
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	word, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
	server, err := strconv.Atoi(word)
	if err != nil {
		t.Fatalf("the child said %q", line)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	awaitEnd(t, server)
}

// becomeParent starts a cluster, prints its process id and waits to be killed.
func becomeParent(t *testing.T) {
	t.Helper()
	p, err := StartPostgres(t.Context(), PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, p.PID(), p.dir)
	<-t.Context().Done()
}

// awaitEnd fails the test if the process does not end in time.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(time.Minute)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("PostgreSQL (pid %d) outlived its parent", pid)
		case <-ticker.C:
		}
	}
}

// isZombie reports whether the process has ended but its parent has not yet waited for it. In a
// container without an init process, such a process may stay a zombie.
func isZombie(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := strings.Cut(string(status), ") ")
	return err == nil && found && strings.HasPrefix(rest, "Z")
}
