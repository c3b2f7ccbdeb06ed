package consumer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/retry"
	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
)

// script is a Projection, DeadLetters, Database, Observer and Health for tests. A test sets the
// script's results, and the script records its calls.
type script struct {
	calls     []string
	pending   int
	letters   []projection.DeadLetter
	write     []error // results of Flush, in order; after them nil
	deliver   []error
	verify    []error
	refused   bool                     // Refuse returns false, because the event is already dead-lettered as refused
	found     *projection.FencedOffset // returned by Claim
	byHand    bool                     // returned by Claim: a person has set the position
	positions []projection.StoredPosition
	healed    chan struct{}         // receives a value for each heal, if set
	context   func(context.Context) // receives the context of Fold and Flush, if set
	healthy   bool                  // no parked event can be applied
	claimed   func()                // called by the next claim, if set
}

func (s *script) call(name string) { s.calls = append(s.calls, name) }

func nextError(answers *[]error) error {
	if len(*answers) == 0 {
		return nil
	}
	err := (*answers)[0]
	*answers = (*answers)[1:]
	return err
}

func (s *script) Claim(context.Context, projection.Claim) (projection.Position, error) {
	s.call("claim")
	if claimed := s.claimed; claimed != nil {
		s.claimed = nil
		claimed()
	}
	found := &projection.FencedOffset{}
	if s.found != nil {
		found = s.found
	}
	return projection.Position{Fence: 1, Found: found, SetByHand: s.byHand}, nil
}

func (s *script) Fold(ctx context.Context, records []projection.DecodedRecord, limit int) (int, error) {
	if s.context != nil {
		s.context(ctx)
	}
	if len(records) == 0 {
		s.call("heal")
		if s.healed != nil {
			s.healed <- struct{}{}
		}
		return 0, nil
	}
	n := min(len(records), limit-s.pending)
	s.pending += n
	return n, nil
}

func (s *script) Pending() projection.Pending {
	return projection.Pending{Events: s.pending, Healing: !s.healthy}
}

func (s *script) DeadLetters() []projection.DeadLetter { return s.letters }

func (s *script) Verify(context.Context) error {
	s.call("verify")
	return nextError(&s.verify)
}

func (s *script) Flush(ctx context.Context, _ projection.NextOffset) (projection.Flushed, error) {
	if s.context != nil {
		s.context(ctx)
	}
	s.call("write")
	err, result := nextError(&s.write), projection.Flushed{Records: s.pending, DeadLetters: s.letters}
	result.Outcomes[projection.Applied] = s.pending
	if err == nil {
		s.pending = 0
	}
	return result, err
}

func (s *script) Refuse(string) bool {
	s.call("refuse")
	return !s.refused
}

// flushing limits the worker's flushes to n events each.
func (w *worker) flushing(n int, proj session.Projection) {
	w.session = session.New(proj, w, session.Limits{
		Events: n, Within: time.Hour, Silence: w.c.cfg.Retry.Attempt, Freely: overtakenFreely,
	})
}

func (s *script) Deliver(_ context.Context, _ *dlq.Delivery) error {
	s.call("deliver")
	return nextError(&s.deliver)
}

func (s *script) EnsureTopic(context.Context) error { return nil }
func (s *script) Positions(context.Context) ([]projection.StoredPosition, error) {
	return s.positions, nil
}

func (s *script) Stop(context.Context, int32, int64, int64, string) error { s.call("stop"); return nil }
func (s *script) Halt(context.Context, int32, int64, string) error        { return nil }
func (s *script) PositionCommitted(context.Context, int32, int64) error   { return nil }
func (s *script) Overdue(context.Context, []int32) ([]int32, error)       { return nil, nil }
func (s *script) Ready(context.Context) error                             { return nil }
func (s *script) Reset()                                                  { s.call("reset") }

// quiet is an Observer and a Health that do nothing.
type quiet struct{}

func (quiet) Assigned(int32)                                    {}
func (quiet) Revoked(int32)                                     {}
func (quiet) Flushed(int32, *projection.Flushed, time.Duration) {}
func (quiet) Retry(string, string)                              {}
func (quiet) Retrying(int32, bool)                              {}
func (quiet) Status(int32, bool, bool)                          {}
func (quiet) Lag(int32, int64, float64)                         {}
func (quiet) Fail(string, string)                               {}
func (quiet) FailAfter(string, string, time.Duration)           {}
func (quiet) Warn(string, string)                               {}
func (quiet) OK(string)                                         {}
func (quiet) Started()                                          {}
func (quiet) Stopping()                                         {}
func (quiet) Beat()                                             {}

// permitted is an Access with all permissions.
type permitted struct{}

func (permitted) Check(context.Context) error { return nil }
func (permitted) Consuming(err error) error   { return err }

// noWait is the wait after a failure in tests that do not test the waits.
const noWait = time.Microsecond

// startFake starts brokers with the topic t, and returns the option of a client that uses them. They
// run until the test ends.
func startFake(t *testing.T, brokers int, partitions int32) (*kfake.Cluster, kgo.Opt) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(brokers), kfake.SeedTopics(partitions, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster, kgo.SeedBrokers(cluster.ListenAddrs()...)
}

// scriptedConsumer returns a consumer whose projection is a script. The function set changes the
// consumer's Config, for example the brokers.
func scriptedConsumer(t testing.TB, s *script, set func(*Config)) *Consumer {
	t.Helper()
	cfg := Config{
		Topic: "t", Group: "g", Formats: event.Always(noFormat{}),
		Open:        func(int32) session.Projection { return s },
		DeadLetters: s, Database: s, Observer: quiet{}, Health: quiet{}, Access: permitted{},
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
		cfg.Retry = retry.Policy{Attempt: time.Minute, Initial: noWait, Max: noWait}
	})
	w := newWorker(t.Context(), c, 0)
	t.Cleanup(func() { w.cancel(nil) })
	return w
}

func pending(n int, letters ...projection.DeadLetter) *script {
	return &script{pending: n, letters: letters}
}

// agreeing returns a script whose stored positions have the fence of the workers and are not lower
// than the positions of the workers. Otherwise the workers would have to claim again every two
// seconds.
func agreeing(partitions int32) *script {
	s := pending(0)
	for p := range partitions {
		s.positions = append(s.positions, projection.StoredPosition{Partition: p, Position: projection.Position{Next: 1, Fence: 1}})
	}
	return s
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
		"database away":               {&script{pending: 1, write: []error{refusal("57P01")}}, []string{"write"}, session.ErrAgain},
		"read-only after a failover":  {&script{pending: 1, write: []error{refusal("25006")}}, []string{"write", "reset"}, session.ErrAgain},
		"away before the publishing":  {&script{pending: 1, letters: []projection.DeadLetter{letter}, verify: []error{refusal("57P01")}}, []string{"verify"}, session.ErrAgain},
		"fenced":                      {&script{pending: 1, write: []error{projection.ErrFenced}}, []string{"write"}, session.ErrAgain},
		"decision on old state":       {&script{pending: 1, letters: []projection.DeadLetter{letter}, verify: []error{projection.ErrStale}}, []string{"verify"}, session.ErrAgain},
		"one row refused of many":     {&script{pending: 8, write: []error{refusal("23514")}}, []string{"write"}, session.ErrAgain},
		"the refused one, alone":      {&script{pending: 1, write: []error{refusal("22003")}}, []string{"write", "refuse"}, session.ErrAgain},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := scripted(t, c.script)
			w.session.Skip(projection.NextOffset{Offset: 10})
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
	s := pending(0)
	w := scripted(t, s)
	w.session.Skip(projection.NextOffset{Offset: 1})
	var limits []int
	for limit := 1000; ; limit = w.fits(s) {
		s.pending = limit
		s.write = []error{refusal("23514")}
		if err := w.flush(); !errors.Is(err, session.ErrAgain) {
			t.Fatal(err)
		}
		limits = append(limits, w.fits(s))
		if w.pause > 0 {
			t.Errorf("waits for %s before it goes on searching", w.pause)
		}
		if slices.Contains(s.calls, "refuse") {
			break
		}
	}
	if !slices.Equal(limits, []int{125, 15, 1, 1}) {
		t.Errorf("limits %v", limits)
	}
}

// fits returns how many events the next flush may contain.
func (w *worker) fits(s *script) int {
	for s.pending = 1; !w.session.Full(); s.pending++ { //nolint:revive // empty-block: counts
	}
	return s.pending
}

func TestARefusedDeadLetterStopsThePartition(t *testing.T) {
	w := scripted(t, &script{pending: 1, refused: true, write: []error{refusal("23514")}})
	w.session.Skip(projection.NextOffset{Offset: 1})
	err := w.flush()
	if err == nil || errors.Is(err, session.ErrAgain) {
		t.Errorf("error %v: an event that is refused even as a dead letter must stop the partition", err)
	}
}

func TestAStopEndsTheWaiting(t *testing.T) {
	s := pending(1)
	w := scripted(t, s)
	w.session.Skip(projection.NextOffset{Offset: 1})
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

// noFormat decodes nothing.
type noFormat struct{}

func (noFormat) Decode(_ event.Message, d *event.Decoded) { *d = event.Decoded{Tombstone: true} }

// TestEveryFlushIsFollowedByHealing shows that a worker heals after each flush. It must not wait
// for another record, because the record that closes a gap may be the last one for a long time.
func TestEveryFlushIsFollowedByHealing(t *testing.T) {
	for _, limit := range []int{100, 2} {
		s := pending(0)
		s.healed = make(chan struct{}, 10)
		w := scripted(t, s)
		w.flushing(limit, s)
		w.epoch = 1
		c, _, err := decodeChunk(t.Context(), records(0, 2), event.Always(noFormat{}), mostChunk)
		if err != nil {
			t.Fatal(err)
		}
		c.epoch = 1
		w.chunks <- c
		ended := make(chan error)
		go func() { ended <- w.process() }()
		for range 2 {
			select {
			case <-s.healed:
			case <-time.After(time.Minute):
				t.Error("not healed")
			}
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

func TestRepeatedFoldingSlowsDown(t *testing.T) {
	s := &script{write: slices.Repeat([]error{projection.ErrStale}, 5)}
	w := scripted(t, s)
	w.session.Skip(projection.NextOffset{Offset: 1})
	for i := range 5 {
		s.pending = 1
		if err := w.flush(); !errors.Is(err, session.ErrAgain) {
			t.Fatal(err)
		}
		if i < overtakenFreely {
			if w.pause > 0 || w.status.state == projection.StateRetrying {
				t.Errorf("waits %s after %d times already, %s", w.pause, i+1, w.status.state)
			}
		} else if w.pause == 0 || w.status.state != projection.StateRetrying {
			t.Errorf("decides again at once after %d times in vain, %s", i+1, w.status.state)
		}
	}
}

// TestAClaimAgainKeepsWhatIsPending shows that a worker writes what is pending before it claims its
// partition again. Otherwise a partition with lag would not move if it has to be claimed again more
// often than it is flushed.
func TestAClaimAgainKeepsWhatIsPending(t *testing.T) {
	s := pending(0)
	w := scripted(t, s)
	if n, err := w.session.Fold(t.Context(), make([]projection.DecodedRecord, 3)); n != 3 || err != nil {
		t.Fatalf("folded %d, %v", n, err)
	}
	w.reclaim()
	if err := w.process(); !errors.Is(err, session.ErrAgain) {
		t.Errorf("process: %v", err)
	}
	if s.pending != 0 || !slices.Contains(s.calls, "write") {
		t.Errorf("%d events are pending after %v", s.pending, s.calls)
	}
}

// TestAFailedFlushIsRepeatedSoon expects that a worker gathers events for a shorter time after a
// flush has failed.
func TestAFailedFlushIsRepeatedSoon(t *testing.T) {
	s := pending(1)
	s.write, s.healthy = []error{projection.ErrStale}, true
	w := scripted(t, s)
	usual := w.flushAge()
	if err := w.flush(); !errors.Is(err, session.ErrAgain) || w.flushAge() >= usual {
		t.Errorf("flush: %v; then %s instead of %s", err, w.flushAge(), usual)
	}
	if err := w.flush(); err != nil || w.flushAge() != usual {
		t.Errorf("flush: %v; then %s instead of %s", err, w.flushAge(), usual)
	}
}

// TestRecordsHaveTheirTurnWhileAnAccountHeals expects that a worker takes the records that have
// arrived after each piece of a long queue of parked events. In a partition with lag, it gathers
// records for a shorter time, because it applies the next piece only after a flush.
func TestRecordsHaveTheirTurnWhileAnAccountHeals(t *testing.T) {
	s := pending(0)
	w := scripted(t, s)
	soon := w.flushAge()
	for range 100 {
		w.chunks <- new(chunk)
		if c, err := w.nextChunk(true); c == nil || err != nil {
			t.Fatalf("the worker leaves the records that have arrived: %v", err)
		}
	}
	if c, err := w.nextChunk(true); c != nil || err != nil {
		t.Errorf("without records, it gets %v, %v", c, err)
	}
	s.healthy = true
	if w.flushAge() <= soon {
		t.Errorf("it gathers for %s, and when nothing heals for %s", soon, w.flushAge())
	}
}
