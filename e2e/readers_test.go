package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"projector/internal/devstack/devtest"
)

// readers is a client of the HTTP interface of --read-listen.
type readers struct {
	t     testing.TB
	addr  string
	token string
}

// readersOf waits until a projector listens for readers.
func readersOf(t testing.TB, p *program) *readers {
	t.Helper()
	r := &readers{t: t}
	await(t, "readers are served", func() string {
		for _, line := range p.lines() {
			var entry struct {
				Addr string `json:"read_http"`
			}
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Addr != "" {
				r.addr = entry.Addr
				return ""
			}
		}
		return "no line of the log has read_http"
	})
	return r
}

// get requests an account and returns the status and the document, for example "200 {…}".
func (r *readers) get(query string) string {
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.addr+"/v1/accounts/"+query, http.NoBody)
	if err != nil {
		return err.Error()
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(answer.StatusCode, " ", strings.TrimSpace(string(body)))
}

// The method answers returns a check for await. It succeeds when the response begins with want.
func (r *readers) answers(query, want string) func() string {
	return func() string {
		if got := r.get(query); !strings.HasPrefix(got, want) {
			return fmt.Sprintf("%s: %s, want %s", query, got, want)
		}
		return ""
	}
}

// expect requests an account one time. The response must begin with want.
func (r *readers) expect(query, want string) {
	r.t.Helper()
	if wrong := r.answers(query, want)(); wrong != "" {
		r.t.Error(wrong)
	}
}

// The method waiting sends a request in the background. The channel receives the response.
func (r *readers) waiting(query string) <-chan string {
	answers := make(chan string, 1)
	go func() { answers <- r.get(query) }()
	return answers
}

// TestReaders reads accounts while they change. The accounts change by events, by the healing of a
// gap, and by the SQL of another client.
func TestReaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	token := newSecretFolder(t, map[string]string{"token": "first-horse-battery\n"})
	p := launch(t, []string{"first-horse-battery", "second-horse-battery"}, []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]},
		w.flags("--read-listen=0.0.0.0:0", "--read-token-file="+token.path("token"), "--read-balances")...)
	r := readersOf(t, p)
	r.expect("a", "401 ")
	r.token = "first-horse-battery"
	r.expect("a?wait=10ms", "404 ")
	r.expect("a?wait=31s", "400 ")

	first := r.waiting("a?min_version=1&wait=30s") // a request can wait for an account that has no row yet
	w.append(credit("a", 1))
	same := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	same("the first event", <-first,
		`200 {"account_id":"a","version":1,"stale":false,"waiting_for_version":null,"balance":"0.01","currency":"EUR","status":"open"}`)
	r.expect("a?min_version=2&wait=10ms", `202 {"account_id":"a","version":1,"stale":false,`)
	for version := 2; version < 6; version++ { // a client waits for its own write, several times
		w.append(credit("a", version))
		r.expect(fmt.Sprintf("a?min_version=%d&wait=30s", version), fmt.Sprintf(`200 {"account_id":"a","version":%d,"stale":false,"waiting_for_version":null,"balance":"0.0%[1]d"`, version))
	}

	behind := r.waiting("a?min_version=8&wait=30s")
	w.append(credit("a", 7))
	stale := `{"account_id":"a","version":5,"stale":true,"waiting_for_version":6,"balance":"0.05","currency":"EUR","status":"open"}`
	same("behind a hole", <-behind, "202 "+stale)
	r.expect("a?min_version=5&wait=30s", "200 "+stale)
	w.append(credit("first-missing", 2))
	await(t, "a hole without a row", r.answers("first-missing?wait=30s", `202 {"account_id":"first-missing","version":null,"stale":true,"waiting_for_version":1,"balance":null,`))
	w.append(credit("a", 6))
	await(t, "healed", r.answers("a?min_version=7&wait=30s", `200 {"account_id":"a","version":7,"stale":false,"waiting_for_version":null,"balance":"0.07"`))

	elsewhere := r.waiting("a?min_version=9&wait=30s")
	w.exec("UPDATE account_balance SET version = 9 WHERE account_id = 'a'")
	if got := <-elsewhere; !strings.HasPrefix(got, `200 {"account_id":"a","version":9,`) {
		t.Errorf("written by somebody else: %s", got)
	}

	token.swap(map[string]string{"token": "second-horse-battery"})
	r.expect("a", "401 ")
	r.token = "second-horse-battery"
	r.expect("a", "200 ")
	if err := os.Remove(token.path("token")); err != nil {
		t.Fatal(err)
	}
	r.expect("a", "503 ")
	await(t, "it is logged", p.logged("--read-token-file (READ_TOKEN_FILE)"))
	p.terminate()
}

// TestReadersOfASilentDatabase freezes PostgreSQL. A new request gets 503. A waiting request gets
// its response when the database continues. A request that still waits when the instance stops gets
// 503 and does not delay the stop.
func TestReadersOfASilentDatabase(t *testing.T) {
	t.Parallel()
	cluster, url := ownPostgres(t)
	w := newWorldOn(t, devtest.Broker(t).Addrs(), url, 1)
	p := w.start("--read-listen=127.0.0.1:0")
	r := readersOf(t, p)
	w.append(credit("a", 1))
	r.expect("a?min_version=1&wait=30s", `200 {"account_id":"a","version":1,"stale":false,"waiting_for_version":null}`)
	backends := family(cluster.PID())
	signal(t, backends, syscall.SIGSTOP)
	t.Cleanup(func() { signal(t, backends, syscall.SIGCONT) })
	patient := r.waiting("a?min_version=1&wait=30s")
	r.expect("a", "503 ")
	signal(t, backends, syscall.SIGCONT)
	if got := <-patient; !strings.HasPrefix(got, "200 ") {
		t.Errorf("when the database is back: %s", got)
	}
	r.expect("a", "200 ")
	var before time.Time
	if err := w.db.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&before); err != nil {
		t.Fatal(err)
	}
	last := r.waiting("a?min_version=9&wait=30s")
	await(t, "it waits", func() string {
		var asked bool
		if err := w.db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE query LIKE '%IS NOT NULL, coalesce(b.version, 0), h.expected_version%' AND pid <> pg_backend_pid() AND query_start > $1)`, before).Scan(&asked); err != nil || !asked {
			return fmt.Sprintf("asked for: %t, error %v", asked, err)
		}
		return ""
	})
	p.terminate()
	if got := <-last; !strings.HasPrefix(got, "503 ") {
		t.Errorf("when the instance stops: %s", got)
	}
}
