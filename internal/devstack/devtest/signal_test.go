package devtest_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"projector/internal/devstack/devtest"
)

// TestServersStopOnASignal runs a child process whose test uses a shared and a private server. It
// then sends the child SIGINT, as a terminal does, or SIGTERM, as a scheduler does.
func TestServersStopOnASignal(t *testing.T) {
	if os.Getenv("PROJECTOR_TEST_CHILD") != "" {
		_, _ = fmt.Fprintf(os.Stdout, "%s %s\n", devtest.Database(t), devtest.Postgres(t).URL())
		<-t.Context().Done()
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "PROJECTOR_TEST_CHILD=1", "PROJECTOR_TEST_DATABASE_URL=")
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the child ended with %v, want exit status 1", err)
	}
	urls := strings.Fields(line)
	if len(urls) != 2 {
		t.Fatalf("the child named %d servers, want 2", len(urls))
	}
	for _, url := range urls {
		if err := execSQL(t.Context(), url, "select 1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a server outlived the tests: %v", err)
		}
	}
}
