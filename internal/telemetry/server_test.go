package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

type answer struct {
	code   int
	header http.Header
	body   string
}

// get calls the server's handler without a network.
func get(t *testing.T, s *Server, target string, header ...string) answer {
	t.Helper()
	return do(t, s, http.MethodGet, target, header...)
}

func do(t *testing.T, s *Server, method, target string, header ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.HTTP.Handler.ServeHTTP(w, r)
	return answer{code: w.Code, header: w.Header(), body: w.Body.String()}
}

func newTestServer(h *Health, status StatusFunc) *Server {
	return newServer("127.0.0.1:0", NewRegistry(), h, Page{Status: status}, quiet())
}

func TestReadyz(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth()
		s := newTestServer(h, nil)
		r := get(t, s, "/readyz")
		if got := r.body; r.code != http.StatusServiceUnavailable || got != "projector: starting (since 2000-01-01T00:00:00Z)\n" {
			t.Errorf("%d %q", r.code, got)
		}

		h.Started()
		r = get(t, s, "/readyz")
		if got := r.body; r.code != http.StatusOK || got != "ready\n" {
			t.Errorf("%d %q", r.code, got)
		}

		h.Warn("grants", "one is missing")
		r = get(t, s, "/readyz")
		if got := r.body; r.code != http.StatusOK || got != "ready\nwarning: grants: one is missing (since 2000-01-01T00:00:00Z)\n" {
			t.Errorf("%d %q", r.code, got)
		}
		h.OK("grants")

		<-time.After(time.Second)
		h.Fail("database", "connection refused")
		h.Fail("broker", "no answer")
		r = get(t, s, "/readyz")
		const want = "broker: no answer (since 2000-01-01T00:00:01Z)\ndatabase: connection refused (since 2000-01-01T00:00:01Z)\n"
		if got := r.body; r.code != http.StatusServiceUnavailable || got != want {
			t.Errorf("%d %q", r.code, got)
		}
	})
}

func TestReadyzAsJSON(t *testing.T) {
	h := NewHealth()
	h.Started()
	s := newTestServer(h, nil)
	for _, r := range []answer{get(t, s, "/readyz?format=json"), get(t, s, "/readyz", "Accept", "application/json")} {
		if got := r.body; got != "{\n  \"ready\": true,\n  \"reasons\": [],\n  \"warnings\": []\n}\n" || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%q %v", got, r.header)
		}
	}
	h.Fail("database", "gone")
	r := get(t, s, "/readyz?format=json")
	var got readiness
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		t.Fatal(err)
	}
	if r.code != http.StatusServiceUnavailable || got.Ready || len(got.Reasons) != 1 || got.Reasons[0].Condition != "database" || got.Reasons[0].Reason != "gone" {
		t.Errorf("%d %+v", r.code, got)
	}
}

func TestLivez(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth()
		s := newTestServer(h, nil)
		h.Beat()
		h.Fail("database", "gone")
		if r := get(t, s, "/livez"); r.code != http.StatusOK {
			t.Errorf("status %d during an outage of the database", r.code)
		}
		<-time.After(3 * time.Minute)
		r := get(t, s, "/livez")
		if got := r.body; r.code != http.StatusServiceUnavailable || got != "the poll loop has not moved for 3m0s\n" {
			t.Errorf("%d %q", r.code, got)
		}
	})
}

func TestOnlyReading(t *testing.T) {
	h := NewHealth()
	h.Started()
	s := newTestServer(h, nil)
	for _, path := range []string{"/", "/livez", "/readyz", "/metrics", "/status.json", "/history.json", "/style.css", "/status.js", "/icon.svg"} {
		for method, want := range map[string]int{
			http.MethodGet: http.StatusOK, http.MethodHead: http.StatusOK,
			http.MethodPost: http.StatusMethodNotAllowed, http.MethodDelete: http.StatusMethodNotAllowed,
		} {
			if r := do(t, s, method, path); r.code != want {
				t.Errorf("%s %s: %d, want %d", method, path, r.code, want)
			}
		}
	}
	if r := get(t, s, "/nothing"); r.code != http.StatusNotFound {
		t.Errorf("an unknown path answers %d", r.code)
	}
}

func TestServerOverTheNetwork(t *testing.T) {
	h := NewHealth()
	s := newTestServer(h, nil)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(s.Addr(), ":0") {
		t.Errorf("address %s is not the bound one", s.Addr())
	}
	url := "http://" + s.Addr() + "/livez"
	if code := fetch(t, url); code != http.StatusOK {
		t.Errorf("status %d", code)
	}

	second := newServer(s.Addr(), NewRegistry(), h, Page{}, quiet())
	if err := second.Start(t.Context()); err == nil || !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("a taken address: %v", err)
	}
	if err := second.Shutdown(t.Context()); err != nil {
		t.Errorf("shutting down a server that never started: %v", err)
	}

	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if code := fetch(t, url); code != 0 {
		t.Errorf("status %d after the shutdown", code)
	}
}

// fetch returns the status of a URL, or 0 if there is no answer.
func fetch(t *testing.T, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return 0
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

func TestShutdownCutsOffWhatDoesNotEnd(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	h := NewHealth()
	s := newTestServer(h, func() Status {
		close(entered)
		<-release
		return Status{}
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := make(chan int, 1)
	go func() { client <- fetch(t, "http://"+s.Addr()+"/") }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); err == nil {
		t.Error("no error although a request was cut off")
	}
	if code := <-client; code != 0 {
		t.Errorf("the request was answered with %d", code)
	}
	close(release)
}

// newServer returns a server whose page has empty data where the argument page has none.
func newServer(addr string, reg *Registry, h *Health, page Page, log *slog.Logger) *Server {
	if page.Status == nil {
		page.Status = func() Status { return Status{} }
	}
	page.History = cmp.Or(page.History, NewHistory(nil))
	page.DeadLetters = cmp.Or(page.DeadLetters, NewLastDeadLetters())
	return NewServer(addr, reg, h, page, log)
}
