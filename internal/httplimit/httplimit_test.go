package httplimit

import (
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestSilentConnectionsKeepNobodyOut shows that a request is answered although more connections
// than the limit are open and send nothing.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	const most = 4
	limit := New(most, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	s.Config.ConnState = limit.State
	s.Start()
	defer s.Close()
	var silent []net.Conn
	for range 5 * most {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, conn)
	}
	answer, err := http.Get(s.URL)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", answer, err)
	}
	_ = answer.Body.Close()
	limit.mu.Lock()
	open := len(limit.open)
	limit.mu.Unlock()
	if open > most {
		t.Errorf("%d connections are open, want at most %d", open, most)
	}
	if _, err := silent[0].Read(make([]byte, 1)); err == nil { // blocks if the connection is open
		t.Error("the oldest connection is open")
	}
	for _, conn := range silent {
		_ = conn.Close()
	}
}

// TestConnectionsLeaveFilesForOthers shows that the limit is at most a share of the files that the
// process may open.
func TestConnectionsLeaveFilesForOthers(t *testing.T) {
	for files, want := range map[uint64]int{1024: 640, 20_000: 12_000, math.MaxUint64: 12_000} {
		if got := limitByFiles(12_000, 0.625, files); got != want {
			t.Errorf("%d connections of %d files, want %d", got, files, want)
		}
	}
}

// TestRequestsAreNotCutOff shows that a new connection is closed if all other connections have a
// request.
func TestRequestsAreNotCutOff(t *testing.T) {
	limit := New(1, 1)
	busy, late := net.Pipe()
	limit.State(busy, http.StateNew)
	limit.State(busy, http.StateActive)
	limit.State(late, http.StateNew)
	if _, err := late.Write([]byte("x")); err == nil || len(limit.open) != 1 {
		t.Errorf("the new connection is open: %v, %d open", err, len(limit.open))
	}
	limit.State(late, http.StateClosed) // the server reports this state after the close
	limit.State(busy, http.StateClosed)
	if len(limit.open) != 0 || limit.waiting.Len() != 0 {
		t.Error("connections are remembered for ever")
	}
}

func TestFilesBoundConnections(t *testing.T) {
	if c := New(1<<40, 2); c.most >= 1<<40 || c.most < 1 {
		t.Errorf("%d connections", c.most)
	}
}
