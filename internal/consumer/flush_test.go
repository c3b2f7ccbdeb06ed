package consumer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/pace"
	"projector/internal/retry"
	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
)

var errLost = errors.New("connection reset")

// slow is a projection whose database writes a limited number of rows per second.
type slow struct {
	script
	perSecond int
	waiting   int
}

func (s *slow) Flush(ctx context.Context, _ projection.NextOffset) (projection.Flushed, error) {
	pace.Expect(ctx, s.pending)
	for left := s.pending; left > 0; {
		rows := min(left, 1024)
		select {
		case <-time.After(time.Duration(rows) * time.Second / time.Duration(s.perSecond)):
			pace.Answered(ctx, rows)
		case <-ctx.Done():
			return projection.Flushed{}, ctx.Err()
		}
		left -= rows
	}
	s.waiting -= s.pending
	s.pending = 0
	return projection.Flushed{}, nil
}

// TestSlowDatabasesGetProgress shows how long it takes until slow databases make progress with
// 120,000 new accounts. The first flush has all accounts, but a slow database cannot write them in
// one attempt. The test uses a simulated clock.
func TestSlowDatabasesGetProgress(t *testing.T) {
	const patience = 30 * time.Second
	for _, c := range []struct {
		perSecond int
		first     time.Duration // maximum time until the first successful flush
		longest   time.Duration // maximum time between two successful flushes
	}{
		{1_000_000, time.Second, 4 * time.Second},
		{900, 20 * time.Second, 11 * time.Second},
		{100, 22 * time.Second, 11 * time.Second},
		{3, 150 * time.Second, 20 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d rows a second", c.perSecond), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{perSecond: c.perSecond, waiting: 120_000}
				consumer := scriptedConsumer(t, &s.script, func(cfg *Config) {
					cfg.Open = func(int32) session.Projection { return s }
					cfg.Retry = retry.Policy{Attempt: patience}
				})
				w := newWorker(t.Context(), consumer, 0)
				defer w.cancel(nil)
				began := time.Now()
				moved, longest, durable := began, time.Duration(0), int64(0)
				for s.waiting > 119_000 || (s.waiting > 0 && c.perSecond > 100) {
					s.pending = min(w.fits(&s.script), s.waiting)
					w.session.Skip(projection.NextOffset{Offset: durable + int64(s.pending)})
					switch err := w.flush(); {
					case err == nil && moved.Equal(began):
						if took := time.Since(began); took > c.first {
							t.Errorf("first progress after %s, want it within %s", took, c.first)
						}
						moved, durable = time.Now(), w.session.Next().Offset
					case err == nil:
						durable = w.session.Next().Offset
						longest = max(longest, time.Since(moved))
						moved = time.Now()
					case !errors.Is(err, session.ErrAgain):
						t.Fatal(err)
					default:
						_ = pace.Sleep(w.drain, w.pause)
					}
					if time.Since(began) > 10*time.Minute {
						break
					}
				}
				if longest > c.longest {
					t.Errorf("the position stood still for %s, want at most %s", longest, c.longest)
				}
			})
		})
	}
}

// observed is a Health and an Observer that records its calls. It also has the log's text.
type observed struct {
	healthLog
	retrying bool
	consumed map[string]int
	log      bytes.Buffer
}

func (*observed) Status(int32, bool, bool)    {}
func (o *observed) Retrying(_ int32, on bool) { o.retrying = on }
func (o *observed) Flushed(_ int32, f *projection.Flushed, _ time.Duration) {
	for _, outcome := range projection.Outcomes() {
		o.consumed[outcome.String()] += f.Outcomes[outcome]
	}
}

func newObservedWorker(t *testing.T, s *script, policy retry.Policy) (*worker, *observed) {
	t.Helper()
	o := &observed{consumed: map[string]int{}}
	w := newWorker(t.Context(), scriptedConsumer(t, s, func(cfg *Config) {
		cfg.Observer, cfg.Health, cfg.Retry, cfg.DrainWithin = o, o, policy, time.Minute
		cfg.Log = slog.New(slog.NewJSONHandler(&o.log, nil))
	}), 0)
	t.Cleanup(func() { w.cancel(nil) })
	pos := projection.Position{Fence: 7}
	w.status.claimed(pos)
	w.session.Begin(pos)
	w.session.Skip(projection.NextOffset{Offset: 5})
	return w, o
}

// recovered reads the log lines about recoveries. It returns the attempts and the duration for each
// operation.
func (o *observed) recovered(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for text := range bytes.Lines(o.log.Bytes()) {
		var l struct {
			Msg, Operation string
			Attempts       int
			After          time.Duration
		}
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		if l.Msg == "recovered" {
			found[l.Operation] += fmt.Sprintf("%d attempts, %s;", l.Attempts, l.After)
		}
	}
	return found
}

// TestAnOutageLastsUntilAFlushSucceeds shows that a claim between two failed flushes does not end
// the outage. Each claim fails one time and then succeeds.
func TestAnOutageLastsUntilAFlushSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pending(3)
		s.write = slices.Repeat([]error{refusal("57P01")}, 4)
		w, o := newObservedWorker(t, s, retry.Policy{Initial: 8 * time.Second, Max: 10 * time.Minute, Attempt: 30 * time.Second})
		began := time.Now()
		var waits []time.Duration
		for range 4 {
			s.pending = 3
			if err := w.flush(); !errors.Is(err, session.ErrAgain) {
				t.Fatal(err)
			}
			waits = append(waits, w.pause)
			_ = pace.Sleep(w.drain, w.pause)
			failures := 1
			err := w.retry("postgres", "claim the position", func(context.Context) error {
				if failures--; failures >= 0 {
					return errLost
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			w.passed(notAnswered)
			if !o.retrying || w.status.state != projection.StateRetrying || o.count(0, "ok partition t/0") > 0 {
				t.Errorf("a claim ends the outage: retrying %t, %s, health %q", o.retrying, w.status.state, o.reported)
			}
		}
		if !slices.IsSorted(waits) || waits[3] < 2*waits[0] {
			t.Errorf("waits %v, want them to grow", waits)
		}
		outage := time.Since(began).Round(time.Millisecond)
		s.pending = 3
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		if o.retrying || w.status.state != projection.StateFlowing || o.count(0, "ok partition t/0") != 1 {
			t.Errorf("behind it: retrying %t, %s, health %q", o.retrying, w.status.state, o.reported)
		}
		if got, want := o.recovered(t)["write a batch"], fmt.Sprintf("5 attempts, %s;", outage); got != want {
			t.Errorf("recovered: %s want %s", got, want)
		}
	})
}

// TestALostAnswerToCommitCountsOnce shows that a write whose answer was lost is counted only if the
// position row shows that it took place. It is counted only one time.
func TestALostAnswerToCommitCountsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		row  projection.FencedOffset
		want int
	}{
		"written":                  {projection.FencedOffset{Next: 5, Fence: 7}, 3},
		"not written":              {projection.FencedOffset{Next: 0, Fence: 7}, 0},
		"written by another owner": {projection.FencedOffset{Next: 5, Fence: 8}, 0},
		"restored":                 {projection.FencedOffset{Next: 3, Fence: 7}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{pending: 3, write: []error{errLost}}
			w, o := newObservedWorker(t, s, retry.Policy{Initial: noWait, Max: noWait})
			if err := w.flush(); !errors.Is(err, session.ErrAgain) {
				t.Fatal(err)
			}
			s.found = &c.row
			for range 2 {
				if _, err := w.claimOnce(t.Context(), projection.Claim{}); err != nil {
					t.Fatal(err)
				}
			}
			if n := o.consumed["applied"]; n != c.want {
				t.Errorf("%d records counted, want %d", n, c.want)
			}
			if over := c.want > 0; over == w.flushOutage().Lasts() {
				t.Errorf("the outage lasts: %t", !over)
			}
		})
	}
}

// existing is a publisher that does not create its topic, because the topic exists.
type existing struct{ *dlq.Publisher }

func (existing) EnsureTopic(context.Context) error { return nil }

// TestADeadLetterOfAHealingIsSentOnce shows that the dead letter of a parked event is sent only one
// time for each healing. The event's record is before the position, so the position does not show
// whether the dead letter was sent.
func TestADeadLetterOfAHealingIsSentOnce(t *testing.T) {
	healing := projection.DeadLetter{Record: projection.Record{Topic: "t", Offset: 3}, Class: event.CurrencyMismatch, AccountID: "a"}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t.dlq"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	published := 0
	publisher, err := dlq.NewPublisher(dlq.PublisherConfig{
		Topic: "t.dlq", Client: []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)},
		Published: func(dlq.Published) { published++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	s := &script{write: []error{errLost}}
	w, _ := newObservedWorker(t, s, retry.Policy{Attempt: time.Minute, Initial: noWait, Max: noWait})
	w.c.cfg.DeadLetters = existing{publisher}
	flush := func(next int64, want error, sent int, letters ...projection.DeadLetter) {
		t.Helper()
		s.pending, s.letters = 3, letters
		w.session.Skip(projection.NextOffset{Offset: next})
		if err := w.flush(); !errors.Is(err, want) {
			t.Fatalf("flush to %d: %v", next, err)
		}
		if published != sent {
			t.Fatalf("flush to %d: sent %d times, want %d", next, published, sent)
		}
	}
	flush(20, session.ErrAgain, 1, healing)
	flush(10, nil, 1) // this smaller flush does not include the event that causes the healing
	flush(20, nil, 1, healing)
	flush(30, nil, 2, healing) // this is a new healing, so the dead letter is sent again
}

// TestAStopAfterALostAnswer shows a stop after a write whose answer was lost. The last flush finds
// that this write has already moved the position. So the offset may be committed to Kafka.
func TestAStopAfterALostAnswer(t *testing.T) {
	s := &script{pending: 3, write: []error{errLost, projection.ErrFenced}}
	w, o := newObservedWorker(t, s, retry.Policy{Initial: noWait, Max: noWait})
	w.c.committer.acceptMarks(0)
	s.positions = []projection.StoredPosition{{Position: projection.Position{Next: 5, Fence: 7}}}
	s.context = func(context.Context) { w.startStop() }
	if err := w.flush(); !errors.Is(err, errDrained) {
		t.Fatal(err)
	}
	w.flushLast()
	if n := o.consumed["applied"]; n != 3 || w.c.committer.marked[0] != 5 {
		t.Errorf("%d records counted, to commit %v", n, w.c.committer.marked)
	}
}

// TestReadingAsksForLessAfterAFailure shows that a read is repeated with fewer records if the
// database has not answered in time.
func TestReadingAsksForLessAfterAFailure(t *testing.T) {
	s := &reluctant{most: 3}
	w := newWorker(t.Context(), scriptedConsumer(t, &s.script, func(cfg *Config) {
		cfg.Open = func(int32) session.Projection { return s }
		cfg.Retry = retry.Policy{Initial: noWait, Max: noWait}
	}), 0)
	defer w.cancel(nil)
	w.epoch = 1
	if err := w.foldChunk(t, records(0, 100)); err != nil {
		t.Fatal(err)
	}
	if s.decided != 100 || w.session.Next().Offset != 100 {
		t.Errorf("%d records decided, next %d", s.decided, w.session.Next().Offset)
	}
}

// reluctant is a projection that can fold only few records at a time.
type reluctant struct {
	script
	most, decided int
}

func (r *reluctant) Fold(_ context.Context, records []projection.DecodedRecord, _ int) (int, error) {
	if len(records) > r.most {
		return 0, context.DeadlineExceeded
	}
	r.decided += len(records)
	r.pending += len(records)
	return len(records), nil
}

// claiming is a script that has a position and passes on the claims.
type claiming struct {
	*script
	position projection.Position
	claims   chan projection.Claim
}

func (s *claiming) Claim(_ context.Context, c projection.Claim) (projection.Position, error) {
	s.claims <- c
	return s.position, nil
}

// TestAStopDoesNotReadFromTheFirstOffsetAgain shows a partition that stops because PostgreSQL refuses
// a dead letter. Kafka's offset at the assignment may be days old. So the position must not go back
// to this offset when the partition is claimed again.
func TestAStopDoesNotReadFromTheFirstOffsetAgain(t *testing.T) {
	t.Parallel()
	_, seeds := startFake(t, 1, 1)
	for range 7 {
		produceToEach(t, seeds, 1)
	}
	position := projection.Position{Next: 6, LeaderEpoch: projection.NoEpoch, Fence: 8, Found: &projection.FencedOffset{Next: 6, Fence: 8}}
	s := &claiming{
		script: &script{
			positions: []projection.StoredPosition{{Position: position}}, healthy: true, refused: true, write: []error{refusal("23502")},
		},
		position: position, claims: make(chan projection.Claim, 2),
	}
	w := newWorker(t.Context(), scriptedConsumer(t, s.script, func(cfg *Config) {
		cfg.Open = func(int32) session.Projection { return s }
		cfg.Retry = retry.Policy{Attempt: time.Minute}
	}), 0)
	connect(t, w.c, seeds)
	w.c.committer = newCommitter(func(context.Context, string, map[int32]int64) error { return nil }, func(error) {})
	w.c.committer.acceptMarks(0)
	c, _, err := decodeChunk(t.Context(), records(6, 1), event.Always(noFormat{}), mostChunk)
	if err != nil {
		t.Fatal(err)
	}
	c.epoch = 1
	w.chunks <- c
	w.committed <- 3
	w.start()
	defer func() {
		w.startStop()
		<-w.done
	}()
	if first := <-s.claims; first.Committed != 3 {
		t.Fatalf("the first claim uses %d as Kafka's offset", first.Committed)
	}
	awaitOn(t.Context(), t, w.c, "the partition stops", w.status.waiting)
	w.reclaim()
	if second := <-s.claims; second.Committed != projection.NoOffset {
		t.Errorf("after the stop at 6, the position goes back to Kafka's offset at the assignment, %d", second.Committed)
	}
}
