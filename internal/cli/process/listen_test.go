package process_test

import (
	"net"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// TestATakenPortIsReportedOnce shows that run ends if it cannot listen, and names the flag one time.
// It needs no other server before that.
func TestATakenPortIsReportedOnce(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	address := taken.Addr().String()
	var out, errOut strings.Builder
	status := clitest.Execute(t.Context(), []string{
		"run", "--brokers=127.0.0.1:1", "--topic=x", "--database-url=postgres://127.0.0.1:1/x", "--listen=" + address,
	}, &out, &errOut)
	if text := errOut.String(); status != exit.Failed || strings.Count(text, "--listen") != 1 || strings.Count(text, address) != 1 {
		t.Errorf("status %d: %s", status, text)
	}
	clitest.Contains(t, errOut.String(), "--listen (LISTEN_ADDR): ", "address already in use")
}
