package retry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/internal/retry"
)

// logged collects the log output of a Throttled.
type logged struct{ buffer bytes.Buffer }

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(&l.buffer, nil)) }

func (l *logged) lines(t *testing.T) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, raw := range bytes.Split(bytes.TrimSpace(l.buffer.Bytes()), []byte("\n")) {
		if len(raw) == 0 {
			continue
		}
		var line map[string]any
		if err := json.Unmarshal(raw, &line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

func count(lines []map[string]any, msg string) (n int) {
	for _, l := range lines {
		if l["msg"] == msg {
			n++
		}
	}
	return n
}

func sqlstate(code string) error { return &pgconn.PgError{Severity: "FATAL", Code: code} }

// failFor returns an operation that fails until d has passed. The function pick returns the error
// of each attempt.
func failFor(d time.Duration, pick func(attempt int) error) func(context.Context) error {
	start, attempt := time.Now(), 0
	return func(context.Context) error {
		if time.Since(start) >= d {
			return nil
		}
		attempt++
		return pick(attempt)
	}
}

func TestLongOutageFitsOneScreen(t *testing.T) {
	reasons := []string{"57P01", "57P03", "53300", "08006", "57014", "40001", "53100", "58030", "55P03", "08001"}
	for name, pick := range map[string]func(int) error{
		"one reason":          func(int) error { return sqlstate("57P03") },
		"two in turn":         func(n int) error { return sqlstate(reasons[n%2]) },
		"ten reasons in turn": func(n int) error { return sqlstate(reasons[n%len(reasons)]) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &logged{}
				obs := retry.Throttle(out.logger(), "write batch", "dependency", "postgres")
				err := retry.Policy{}.Forever(context.Background(), obs, failFor(time.Hour, pick))
				if err != nil {
					t.Fatal(err)
				}
				lines := out.lines(t)
				if n := len(lines); n < 10 || n >= 20 {
					t.Errorf("%d lines for an hour, want 10 to 19", n)
				}
				last := lines[len(lines)-1]
				if count(lines, "recovered") != 1 || last["msg"] != "recovered" || last["dependency"] != "postgres" {
					t.Errorf("last line: %v", last)
				}
			})
		})
	}
}

func TestFirstFailureIsLoggedImmediatelyAndSafely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		obs := retry.Throttle(out.logger(), "write batch", "partition", 3)
		obs.Failing(&pgconn.PgError{
			Severity: "ERROR", Code: "23514", Message: "row with 123.45", Detail: "acc-1, 123.45", ConstraintName: "c",
		}, 1, 0, time.Second)
		lines := out.lines(t)
		if len(lines) != 1 || lines[0]["level"] != "WARN" || lines[0]["reason"] != "23514" ||
			lines[0]["partition"] != 3.0 || lines[0]["attempt"] != 1.0 {
			t.Errorf("lines: %v", lines)
		}
		if bytes.Contains(out.buffer.Bytes(), []byte("123.45")) {
			t.Errorf("amount in the log: %s", out.buffer.String())
		}
	})
}

func TestNewReasonIsLoggedImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		obs := retry.Throttle(out.logger(), "write batch")
		for i, code := range []string{"57P01", "57P01", "28P01", "28P01", "57P01"} {
			obs.Failing(sqlstate(code), i+1, 0, time.Second)
		}
		lines := out.lines(t)
		if len(lines) != 2 || lines[0]["reason"] != "57P01" || lines[1]["reason"] != "28P01" {
			t.Errorf("lines: %v", lines)
		}
	})
}

func TestAFlappingDependencyIsNotLoggedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		obs := retry.Throttle(out.logger(), "write batch")
		for range 1800 { // in one hour, every second batch fails once
			if err := (retry.Policy{}).Forever(context.Background(), obs, failTimes(1)); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
		}
		lines := out.lines(t)
		failing, recovered := count(lines, "failing, will retry"), count(lines, "recovered")
		if failing >= 20 || recovered > failing {
			t.Errorf("%d lines of failure, %d of recovery", failing, recovered)
		}
	})
}

func TestOutageAfterACalmTimeIsLoggedImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		obs := retry.Throttle(out.logger(), "write batch")
		for range 3 {
			if err := (retry.Policy{}).Forever(context.Background(), obs, failTimes(1)); err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * time.Minute)
		}
		lines := out.lines(t)
		if count(lines, "failing, will retry") != 3 || count(lines, "recovered") != 3 {
			t.Errorf("lines: %v", lines)
		}
	})
}

// TestSuccessesBeforeAnyFailure shows that a success without a failure before it is not logged. The
// consumer's committer needs this, because it reports the result of each commit, also a success.
func TestSuccessesBeforeAnyFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logged
		observer := retry.Throttle(out.logger(), "commit offsets")
		observer.Recovered(1, 0)
		observer.Failing(sqlstate("57P01"), 1, 0, time.Second)
		observer.Recovered(2, time.Second)
		if lines := out.lines(t); len(lines) != 2 || count(lines, "recovered") != 1 {
			t.Errorf("got %v", lines)
		}
	})
}

// TestNoteCountsFailures shows how Note counts the failures of a check every 3 s, while the
// database is down for 39 s.
func TestNoteCountsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		observer := retry.Throttle(out.logger(), "check")
		observer.Note(nil, 3*time.Second)
		for range 2 {
			for range 13 {
				observer.Note(errDown, 3*time.Second)
				<-time.After(3 * time.Second)
			}
			observer.Note(nil, 3*time.Second)
			observer.Note(nil, 3*time.Second)
			<-time.After(time.Hour)
		}
		lines := out.lines(t)
		if count(lines, "recovered") != 2 {
			t.Fatalf("lines: %v", lines)
		}
		for _, l := range lines {
			if l["msg"] == "recovered" && (l["attempts"] != 14.0 || l["after"] != float64(39*time.Second)) {
				t.Errorf("%v, want the 14th attempt after 39 s", l)
			}
			if l["msg"] != "recovered" && (l["attempt"] == 1.0) != (l["since"] == 0.0) {
				t.Errorf("%v", l)
			}
		}
	})
}

func TestOutageLeftByCancelDoesNotHideTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		obs := retry.Throttle(out.logger(), "write batch")
		obs.Failing(errDown, 1, 0, time.Second) // after this failure, the partition is revoked
		<-time.After(10 * time.Minute)
		obs.Failing(errDown, 1, 0, time.Second)
		if n := len(out.lines(t)); n != 2 {
			t.Errorf("%d lines, want 2", n)
		}
	})
}

func TestPartitionsShareOneObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		obs := retry.Throttle(out.logger(), "write batch")
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				obs.Failing(errDown, 1, 0, time.Second)
				obs.Failing(errDown, 2, time.Second, 2*time.Second)
			})
		}
		all.Wait()
		for range 64 {
			obs.Recovered(3, 3*time.Second)
		}
		if n := len(out.lines(t)); n != 2 {
			t.Errorf("%d lines for a common outage, want 2", n)
		}
	})
}
