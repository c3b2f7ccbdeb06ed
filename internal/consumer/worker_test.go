package consumer

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/pace"
	"projector/internal/retry"
	"projector/projection"
	"projector/projection/event"
)

// script is a Projection, DeadLetters, Observer and Health whose answers are
// written down beforehand and whose calls are kept.
type script struct {
	calls     []string
	pending   int
	letters   []projection.DeadLetter
	write     []error // answers of Write, in turn; then nil
	deliver   []error
	verify    []error
	reject    bool
	positions []projection.StoredPosition
	heals     atomic.Int32
	context   func(context.Context) // looks at that of Judge and Write, if set
}

func (s *script) call(name string) { s.calls = append(s.calls, name) }

func take(answers *[]error) error {
	if len(*answers) == 0 {
		return nil
	}
	err := (*answers)[0]
	*answers = (*answers)[1:]
	return err
}

func (s *script) Claim(context.Context, projection.Claim) (projection.Position, error) {
	s.call("claim")
	return projection.Position{Fence: 1, Found: &projection.Stood{}}, nil
}

func (s *script) Judge(ctx context.Context, records []projection.Judgeable, limit int) (int, error) {
	if s.context != nil {
		s.context(ctx)
	}
	n := min(len(records), limit-s.pending)
	s.pending += n
	return n, nil
}

func (s *script) Heal(context.Context, int) (bool, error) {
	s.call("heal")
	s.heals.Add(1)
	return false, nil
}

func (s *script) Pending() projection.Pending { return projection.Pending{Events: s.pending} }

func (s *script) Changes() *projection.Changes {
	c := &projection.Changes{Records: s.pending, Letters: s.letters}
	c.Outcomes[projection.Applied] = s.pending
	return c
}

func (s *script) Verify(context.Context, *projection.Changes) error {
	s.call("verify")
	return take(&s.verify)
}

func (s *script) Write(ctx context.Context, _ projection.NextOffset, _ *projection.Changes) error {
	if s.context != nil {
		s.context(ctx)
	}
	s.call("write")
	err := take(&s.write)
	if err == nil {
		s.pending = 0
	}
	return err
}

func (s *script) Reject(string) bool {
	s.call("reject")
	return !s.reject
}

func (s *script) Deliver(_ context.Context, _ *dlq.Delivery) error {
	s.call("deliver")
	return take(&s.deliver)
}

func (s *script) EnsureTopic(context.Context) error { return nil }
func (s *script) Positions(context.Context) ([]projection.StoredPosition, error) {
	return s.positions, nil
}

func (s *script) Stop(context.Context, int32, int64, int64, string) error { s.call("stop"); return nil }
func (s *script) Halt(context.Context, int32, int64, string) error        { return nil }
func (s *script) Settle(context.Context, int32, int64) error              { return nil }
func (s *script) Stranded(context.Context, []int32) ([]int32, error)      { return nil, nil }
func (s *script) Ready(context.Context) error                             { return nil }
func (s *script) Reset()                                                  { s.call("reset") }

// quiet is an Observer and a Health that keep nothing.
type quiet struct{}

func (quiet) Assigned(string, int32)                  {}
func (quiet) Revoked(string, int32)                   {}
func (quiet) Consumed(string, int32, string, int)     {}
func (quiet) DeadLettered(string, string, int)        {}
func (quiet) Batch(time.Duration, int)                {}
func (quiet) Retry(string, string)                    {}
func (quiet) Retrying(string, int32, bool)            {}
func (quiet) Lag(string, int32, int64, float64)       {}
func (quiet) Healed(int)                              {}
func (quiet) ParkOverflow(int)                        {}
func (quiet) Progress(time.Time)                      {}
func (quiet) Fail(string, string)                     {}
func (quiet) FailAfter(string, string, time.Duration) {}
func (quiet) OK(string)                               {}
func (quiet) Started()                                {}
func (quiet) Stopping()                               {}
func (quiet) Beat()                                   {}

// noWait is a clock on which no time passes.
type noWait struct{}

func (noWait) Now() time.Time                       { return time.Unix(0, 0) }
func (noWait) Sleep(context.Context, time.Duration) {}

// scriptedConsumer consumes into a script, at brokers and with what else a test sets.
func scriptedConsumer(t testing.TB, s *script, set func(*Config)) *Consumer {
	t.Helper()
	cfg := Config{
		Topic: "t", Group: "g", Formats: event.Always(noFormat{}),
		Open:        func(int32) Projection { return s },
		DeadLetters: s, Database: s, Observer: quiet{}, Health: quiet{},
		Log:   slog.New(slog.DiscardHandler),
		Retry: retry.Policy{Attempt: time.Second}, Limits: DefaultLimits(), DrainWithin: time.Second,
	}
	set(&cfg)
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func scripted(t testing.TB, s *script) *worker {
	t.Helper()
	c := scriptedConsumer(t, s, func(cfg *Config) {
		cfg.Client = []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1")}
		cfg.Retry = retry.Policy{Attempt: time.Minute, Clock: noWait{}}
	})
	w := newWorker(c, 0)
	t.Cleanup(func() { w.cancel(nil) })
	return w
}

func pending(n int, letters ...projection.DeadLetter) *script {
	return &script{pending: n, letters: letters}
}

func refusal(code string) error { return &pgconn.PgError{Severity: "ERROR", Code: code} }

var letter = projection.DeadLetter{Class: event.VersionGap, AccountID: "a"}

func TestFlushGoesOnlyOneWay(t *testing.T) {
	outage := errors.New("connection reset")
	cases := map[string]struct {
		script *script
		want   []string
		result error
	}{
		"nothing dead":                {pending(3), []string{"write"}, nil},
		"dead letters first":          {pending(3, letter), []string{"verify", "deliver", "write"}, nil},
		"not written until delivered": {&script{pending: 1, letters: []projection.DeadLetter{letter}, deliver: []error{outage, outage}}, []string{"verify", "deliver", "verify", "deliver", "verify", "deliver", "write"}, nil},
		"database away":               {&script{pending: 1, write: []error{refusal("57P01")}}, []string{"write"}, errRejudge},
		"read-only after a failover":  {&script{pending: 1, write: []error{refusal("25006")}}, []string{"write", "reset"}, errRejudge},
		"away before the publishing":  {&script{pending: 1, letters: []projection.DeadLetter{letter}, verify: []error{refusal("57P01")}}, []string{"verify"}, errRejudge},
		"fenced":                      {&script{pending: 1, write: []error{projection.ErrFenced}}, []string{"write"}, errRejudge},
		"verdict on old state":        {&script{pending: 1, letters: []projection.DeadLetter{letter}, verify: []error{projection.ErrStale}}, []string{"verify"}, errRejudge},
		"one row refused of many":     {&script{pending: 8, write: []error{refusal("23514")}}, []string{"write"}, errRejudge},
		"the refused one, alone":      {&script{pending: 1, write: []error{refusal("22003")}}, []string{"write", "reject"}, errRejudge},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := scripted(t, c.script)
			w.next.Offset = 10
			if err := w.flush(); !errors.Is(err, c.result) {
				t.Errorf("error %v, want %v", err, c.result)
			}
			if !slices.Equal(c.script.calls, c.want) {
				t.Errorf("calls %v, want %v", c.script.calls, c.want)
			}
		})
	}
}

func TestARefusedEventIsSoonAlone(t *testing.T) {
	w := scripted(t, pending(0))
	s := w.proj.(*script)
	var limits []int
	for s.pending = 1000; ; s.pending = w.size.Limit() {
		s.write = []error{refusal("23514")}
		if err := w.flush(); !errors.Is(err, errRejudge) {
			t.Fatal(err)
		}
		limits = append(limits, w.size.Limit())
		if w.pause > 0 {
			t.Errorf("waits for %s before it goes on searching", w.pause)
		}
		if slices.Contains(s.calls, "reject") {
			break
		}
	}
	if !slices.Equal(limits, []int{125, 15, 1, 1}) {
		t.Errorf("limits %v", limits)
	}
}

func TestARefusalThatStaysIsNotPassedOver(t *testing.T) {
	w := scripted(t, &script{pending: 1, reject: true, write: []error{refusal("23514")}})
	w.next.Offset = 1
	err := w.flush()
	if err == nil || errors.Is(err, errRejudge) {
		t.Errorf("error %v: an event that is refused even as a dead letter must stop the partition", err)
	}
}

func TestAStopEndsTheWaiting(t *testing.T) {
	s := pending(1)
	w := scripted(t, s)
	w.next.Offset = 1
	outage := errors.New("connection reset")
	s.write = slices.Repeat([]error{outage}, 1000)
	w.startStop()
	if err := w.flush(); !errors.Is(err, errDrained) {
		t.Errorf("error %v, want errDrained", err)
	}
	if len(s.calls) > 1 {
		t.Errorf("%d attempts after the stop", len(s.calls))
	}
}

// noFormat leaves every message unread.
type noFormat struct{}

func (noFormat) Decode(_ event.Message, d *event.Decoded) { *d = event.Decoded{Tombstone: true} }

// The record that fills a hole may be the last one for long.
func TestEveryFlushIsFollowedByHealing(t *testing.T) {
	for _, limit := range []int{100, 2} {
		s := pending(0)
		w := scripted(t, s)
		w.size, w.epoch = pace.NewSize(limit, limit, time.Hour), 1
		c, _, err := decodeChunk(t.Context(), records(0, 2), event.Always(noFormat{}))
		if err != nil {
			t.Fatal(err)
		}
		c.epoch = 1
		w.chunks <- c
		ended := make(chan error)
		go func() { ended <- w.consume() }()
		for deadline := time.Now().Add(10 * time.Second); s.heals.Load() < 2 && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		w.startStop()
		if err := <-ended; !errors.Is(err, errDrained) {
			t.Fatal(err)
		}
		if want := []string{"heal", "write", "heal"}; !slices.Equal(s.calls, want) {
			t.Errorf("with at most %d events a flush: %v, want %v", limit, s.calls, want)
		}
	}
}

func TestDecidingInVainSlowsDown(t *testing.T) {
	s := &script{write: slices.Repeat([]error{projection.ErrStale}, 5)}
	w := scripted(t, s)
	w.next.Offset = 1
	for i := range 5 {
		s.pending = 1
		if err := w.flush(); !errors.Is(err, errRejudge) {
			t.Fatal(err)
		}
		if i+1 < overtakenFreely {
			if w.pause > 0 || w.status.state == Retrying {
				t.Errorf("waits %s after %d times already, %s", w.pause, i+1, w.status.state)
			}
		} else if w.pause == 0 || w.status.state != Retrying {
			t.Errorf("decides again at once after %d times in vain, %s", i+1, w.status.state)
		}
	}
}
