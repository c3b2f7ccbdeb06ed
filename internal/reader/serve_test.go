package reader

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"projector/e2e/wait"
	"projector/readmodel/accountdb"
)

// database simulates the read model that the server queries.
type database struct {
	mu       sync.Mutex
	accounts map[string]accountdb.Current
	broken   atomic.Bool
	asked    atomic.Int64
	lookedUp atomic.Int64
}

func (d *database) load(_ context.Context, ids []string) ([]accountdb.Current, error) {
	d.asked.Add(1)
	d.lookedUp.Add(int64(len(ids)))
	if d.broken.Load() {
		return nil, errors.New("no route to the database")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []accountdb.Current
	for _, id := range ids {
		if c, known := d.accounts[id]; known {
			found = append(found, c)
		}
	}
	return found, nil
}

// newServer creates and runs a server that queries the database d. If the parameter token is empty,
// the server requires no token.
func newServer(t *testing.T, d *database, token string, balances bool) *Server {
	t.Helper()
	cfg := Config{
		Addr: "127.0.0.1:0", Load: d.load, Balances: balances, Queried: func(error, time.Duration) {}, Log: slog.New(slog.DiscardHandler),
	}
	if token != "" {
		cfg.Token = func() (string, error) {
			if token == "unreadable" {
				return "", errors.New("no such file")
			}
			return token, nil
		}
	}
	s := NewServer(cfg)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return s
}

// ask sends a request to the handler without a network. The parameter request is a target, or a
// method and a target.
func ask(t *testing.T, s *Server, request string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	method, target, found := strings.Cut(request, " ")
	if !found {
		method, target = http.MethodGet, request
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.HTTP.Handler.ServeHTTP(w, r)
	return w
}

var missing = int64(3)

// write sets the version of an account.
func (d *database) write(id string, version int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.accounts[id]
	c.AccountID, c.Exists, c.Version = id, true, version
	d.accounts[id] = c
}

func bank() *database {
	return &database{accounts: map[string]accountdb.Current{
		"a":     {AccountID: "a", Exists: true, Version: 5, Balance: "10.50", Currency: "EUR", Status: "open"},
		"a/b é": {AccountID: "a/b é", Exists: true, Version: 1, Balance: "0", Status: "closed"},
		"stale": {AccountID: "stale", Exists: true, Version: 2, WaitingFor: &missing, Balance: "1.00", Currency: "EUR", Status: "open"},
		"hole":  {AccountID: "hole", WaitingFor: &missing},
	}}
}

func TestAnswers(t *testing.T) {
	d := bank()
	plain, rich := newServer(t, d, "", false), newServer(t, d, "", true)
	for _, c := range []struct {
		target string
		status int
		body   string // with balances; a text that begins with {" is the whole document
	}{
		{"/v1/accounts/a", 200, `{"account_id":"a","version":5,"stale":false,"waiting_for_version":null,"balance":"10.50","currency":"EUR","status":"open"}`},
		{"/v1/accounts/a?min_version=5&wait=30s", 200, `{"account_id":"a","version":5,"stale":false,"waiting_for_version":null,"balance":"10.50","currency":"EUR","status":"open"}`},
		{"/v1/accounts/a?min_version=6&wait=1ms", 202, `{"account_id":"a","version":5,"stale":false,"waiting_for_version":null,"balance":"10.50","currency":"EUR","status":"open"}`},
		{"/v1/accounts/a%2Fb%20%C3%A9?min_version=1", 200, `{"account_id":"a/b é","version":1,"stale":false,"waiting_for_version":null,"balance":"0","currency":null,"status":"closed"}`},
		{"/v1/accounts/stale?min_version=2", 200, `{"account_id":"stale","version":2,"stale":true,"waiting_for_version":3,"balance":"1.00","currency":"EUR","status":"open"}`},
		{"/v1/accounts/stale?min_version=4&wait=30s", 202, `{"account_id":"stale","version":2,"stale":true,"waiting_for_version":3,"balance":"1.00","currency":"EUR","status":"open"}`},
		{"/v1/accounts/hole?wait=30s", 202, `{"account_id":"hole","version":null,"stale":true,"waiting_for_version":3,"balance":null,"currency":null,"status":null}`},
		{"/v1/accounts/nobody", 404, "no event"},
		{"/v1/accounts/nobody?wait=1ms", 404, "no event"},
		{"HEAD /v1/accounts/a", 200, `{`},
		{"/v1/accounts/", 404, "{id}"},
		{"/v1/accounts/a/b", 404, "%2F"},
		{"/", 404, "{id}"},
		{"POST /v1/accounts/a", 405, "GET"},
		{"DELETE /v1/accounts/a", 405, "GET"},
		{"/v1/accounts/" + strings.Repeat("x", 201), 400, "200 bytes"},
		{"/v1/accounts/%00", 400, "NUL"},
		{"/v1/accounts/%FF", 400, "UTF-8"},
		{"/v1/accounts/a?min_version=", 400, "min_version"},
		{"/v1/accounts/a?min_version=-1", 400, "min_version"},
		{"/v1/accounts/a?min_version=1.0", 400, "min_version"},
		{"/v1/accounts/a?min_version=9223372036854775808", 400, "min_version"},
		{"/v1/accounts/a?min_version=1&min_version=2", 400, "once"},
		{"/v1/accounts/a?wait=5", 400, "wait"},
		{"/v1/accounts/a?wait=-1s", 400, "wait"},
		{"/v1/accounts/a?wait=30.001s", 400, "wait"},
		{"/v1/accounts/a?min=1", 400, "unknown"},
		{"/v1/accounts/a?wait=1s;min_version=2", 400, "query"},
	} {
		t.Run(c.target, func(t *testing.T) {
			w := ask(t, rich, c.target)
			body := strings.TrimSpace(w.Body.String())
			whole := strings.HasPrefix(c.body, `{"`)
			if w.Code != c.status || !strings.Contains(body, c.body) || whole && body != c.body {
				t.Errorf("%d %s, want %d %s", w.Code, body, c.status, c.body)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
			if want, _, found := strings.Cut(c.body, `,"balance"`); found {
				expect(t, "without balances", strings.TrimSpace(ask(t, plain, c.target).Body.String()), want+"}")
			} else if !json.Valid([]byte(body)) {
				t.Errorf("not JSON: %s", body)
			}
		})
	}
}

func TestToken(t *testing.T) {
	s := newServer(t, bank(), "correct horse", false)
	for sent, want := range map[string]int{
		"Bearer correct horse": 200, "bearer  correct horse": 200, "": 401, "Bearer": 401, "Bearer ": 401, "Basic correct horse": 401,
		"Bearer correct hors": 401, "Bearer correct horse battery": 401, "correct horse": 401,
	} {
		w := ask(t, s, "/v1/accounts/a", "Authorization", sent)
		if w.Code != want || (want == 401) != (w.Header().Get("WWW-Authenticate") == "Bearer") {
			t.Errorf("%q: %d %v, want %d", sent, w.Code, w.Header(), want)
		}
		if w := ask(t, s, "/no/such/page", "Authorization", sent); want == 401 && w.Code != 401 {
			t.Errorf("%q: what exists is revealed: %d", sent, w.Code)
		}
	}
	if w := ask(t, newServer(t, bank(), "unreadable", false), "/v1/accounts/a", "Authorization", "Bearer "); w.Code != 503 {
		t.Errorf("without its token the server answers %d", w.Code)
	}
}

// TestWaiting runs in a synctest bubble, where time passes only in waits. A waiter is answered at
// most one tick after its version is written, or when its time is over. There is at most one query
// in each tick.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bank()
		s := newServer(t, d, "", false)
		began := time.Now()
		answers := make(chan string, 200)
		for range 100 {
			go func() {
				answers <- fmt.Sprint(ask(t, s, "/v1/accounts/nobody?wait=10s").Code, time.Since(began) >= 10*time.Second)
			}()
			go func() {
				answers <- fmt.Sprint(ask(t, s, "/v1/accounts/a?min_version=6&wait=30s").Code, time.Since(began) <= 5*time.Second+tick)
			}()
		}
		wait.Pass(t.Context(), 5*time.Second)
		if n := d.asked.Load(); n > 251 {
			t.Errorf("%d queries in 5 s", n)
		}
		d.write("a", 6)
		for range 100 {
			expect(t, "written after 5 s", <-answers, "200 true")
		}
		for range 100 {
			expect(t, "never written", <-answers, "404 true")
		}
		before := d.asked.Load()
		wait.Pass(t.Context(), time.Minute)
		if n := d.asked.Load() - before; n > 1 {
			t.Errorf("%d queries while nobody waits", n)
		}
	})
}

// TestACrowdWaits shows that the number of accounts that are queried per second is limited when
// many clients wait. A new waiter is still answered at the next tick.
func TestACrowdWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bank()
		s := newServer(t, d, "", false)
		const crowd = 4000
		for i := range crowd {
			go ask(t, s, fmt.Sprintf("/v1/accounts/%d?wait=10s", i))
		}
		wait.Pass(t.Context(), time.Second)
		before := d.lookedUp.Load()
		began := time.Now()
		if code := ask(t, s, "/v1/accounts/a").Code; code != 200 || time.Since(began) > tick {
			t.Errorf("%d after %s", code, time.Since(began))
		}
		answered := make(chan time.Duration)
		go func() {
			began := time.Now()
			ask(t, s, "/v1/accounts/7")
			answered <- time.Since(began)
		}()
		d.write("7", 1)
		if took := <-answered; took > tick {
			t.Errorf("who has come is answered after %s", took)
		}
		go func() {
			began := time.Now()
			ask(t, s, "/v1/accounts/8?min_version=1&wait=5s")
			answered <- time.Since(began)
		}()
		wait.Pass(t.Context(), 300*time.Millisecond)
		d.write("8", 1)
		s.Changed(slices.Values([]string{"8"}))
		if took := <-answered; took > 300*time.Millisecond+tick {
			t.Errorf("what is written here is answered after %s", took)
		}
		wait.Pass(t.Context(), 4*time.Second)
		if n, most := d.lookedUp.Load()-before, int64(5*time.Second/perAccount); n > most || n < most/2 {
			t.Errorf("%d accounts were looked up in 4 s, want up to %d", n, most)
		}
	})
}

func TestTooManyWait(t *testing.T) {
	s := newServer(t, bank(), "", false)
	s.register.limit = 1
	w, err := s.register.add("a", 6, false)
	if err != nil {
		t.Fatal(err)
	}
	if r := ask(t, s, "/v1/accounts/a"); r.Code != 429 || r.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v", r.Code, r.Header())
	}
	s.register.remove(w)
	if r := ask(t, s, "/v1/accounts/a"); r.Code != 200 {
		t.Errorf("%d when there is room again", r.Code)
	}
}

// TestNoDatabase shows what clients receive while the database is down. A client without waiting
// time gets an error immediately, and a client whose waiting time ends gets an error then. A client
// that still waits is answered when the database returns.
func TestNoDatabase(t *testing.T) {
	d := bank()
	d.broken.Store(true)
	s := newServer(t, d, "", false)
	if r := ask(t, s, "/v1/accounts/a"); r.Code != 503 || r.Header().Get("Connection") != "close" {
		t.Errorf("%d %v", r.Code, r.Header())
	}
	if r := ask(t, s, "/v1/accounts/a?min_version=6&wait=1ms"); r.Code != 503 {
		t.Errorf("%d when the time is over", r.Code)
	}
	answered := make(chan int)
	go func() { answered <- ask(t, s, "/v1/accounts/a?min_version=5&wait=30s").Code }()
	before := d.asked.Load()
	wait.Until(t, time.Minute, "asked for, in vain", func() string {
		if d.asked.Load() == before {
			return "no question"
		}
		return ""
	})
	d.broken.Store(false)
	if code := <-answered; code != 200 {
		t.Errorf("%d when the database is back", code)
	}
}

// TestOverTheNetwork shows that a client that disconnects is removed from the waiters. A client
// that announces a body does not block the server. When the server stops, every waiter is answered.
func TestOverTheNetwork(t *testing.T) {
	s := NewServer(Config{
		Addr: "127.0.0.1:0", Load: bank().load, Queried: func(error, time.Duration) {}, Log: slog.New(slog.DiscardHandler),
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go s.Run(ctx)
	send := func(text string) net.Conn {
		t.Helper()
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
		if err == nil {
			_, err = io.WriteString(conn, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	status := func(conn net.Conn) int {
		t.Helper()
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r.StatusCode
	}
	const waits = "GET /v1/accounts/a?min_version=6&wait=30s HTTP/1.1\r\nHost: bank\r\n\r\n"
	becomes := func(n int64) {
		t.Helper()
		wait.Until(t, time.Minute, "the server has noticed", func() string {
			if got := int64(s.register.count()); got != n {
				return fmt.Sprintf("%d wait, not %d", got, n)
			}
			return ""
		})
	}

	vanishing := send(waits)
	becomes(1)
	_ = vanishing.Close()
	becomes(0)

	promising := send("GET /v1/accounts/a HTTP/1.1\r\nHost: bank\r\nContent-Length: 5\r\n\r\n")
	if code := status(promising); code != 400 {
		t.Errorf("a body is answered with %d", code)
	}
	if code := status(send("GET /v1/accounts/a HTTP/1.1\r\nHost: bank\r\nX: " + strings.Repeat("x", 2*maxHeaderBytes) + "\r\n\r\n")); code != 431 {
		t.Errorf("a large header is answered with %d", code)
	}

	waiting := send(waits)
	becomes(1)
	if s.HTTP.ConnState == nil {
		t.Error("connections have no limit")
	}
	stop()
	if code := status(waiting); code != 503 {
		t.Errorf("when the server stops a waiter is answered with %d", code)
	}
	if code := status(send(waits)); code != 503 {
		t.Errorf("who comes then is answered with %d", code)
	}
	_ = s.Shutdown(t.Context())
}
