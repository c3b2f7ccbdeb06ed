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

	"projector/internal/pace"
	"projector/internal/retry"
	"projector/projection"
)

var errLost = errors.New("connection reset")

// slow is a database that writes so many rows a second, a slice of them in a statement,
// and has a topic waiting for it.
type slow struct {
	script
	perSecond int
	waiting   int
}

func (s *slow) Changes() *projection.Changes {
	return &projection.Changes{Records: s.pending, Rows: make([]projection.Row, s.pending)}
}

func (s *slow) Write(ctx context.Context, _ projection.NextOffset, c *projection.Changes) error {
	for rows := range c.RowChunks(func() int { return 1024 }) {
		select {
		case <-time.After(time.Duration(len(rows)) * time.Second / time.Duration(s.perSecond)):
			pace.Answered(ctx, len(rows))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.waiting -= s.pending
	s.pending = 0
	return nil
}

// TestSlowDatabasesGetProgress has 120,000 new accounts written to databases that are
// slow from the beginning, or have become so behind a time in which all was quick. The
// clock is that of the test.
func TestSlowDatabasesGetProgress(t *testing.T) {
	const patience = 30 * time.Second
	for _, c := range []struct {
		perSecond int
		grown     bool
		first     time.Duration // within which there is progress
		longest   time.Duration // that the position stands still from then on
	}{
		{1_000_000, false, time.Second, 4 * time.Second},
		{1_000_000, true, time.Second, 4 * time.Second},
		{900, false, 2 * time.Second, 5 * time.Second},
		{900, true, 40 * time.Second, 5 * time.Second},
		{100, false, 11 * time.Second, 5 * time.Second},
		{100, true, 40 * time.Second, 5 * time.Second},
		{3, false, 90 * time.Second, 15 * time.Second},
		{3, true, 5 * time.Minute, 15 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d rows a second, grown %t", c.perSecond, c.grown), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{perSecond: c.perSecond, waiting: 120_000}
				consumer := scriptedConsumer(t, &s.script, func(cfg *Config) {
					cfg.Open = func(int32) Projection { return s }
					cfg.Retry = retry.Policy{Attempt: patience}
				})
				w := newWorker(consumer, 0)
				defer w.cancel(nil)
				if c.grown {
					w.size = pace.NewSize(s.waiting, s.waiting, flushWithin)
				}
				began := time.Now()
				moved, longest := began, time.Duration(0)
				for s.waiting > 119_000 || (s.waiting > 0 && c.perSecond > 100) {
					s.pending = min(w.size.Limit(), s.waiting)
					w.next.Offset += int64(s.pending)
					switch err := w.flush(); {
					case err == nil && moved.Equal(began):
						if took := time.Since(began); took > c.first {
							t.Errorf("first progress after %s, want it within %s", took, c.first)
						}
						moved = time.Now()
					case err == nil:
						longest = max(longest, time.Since(moved))
						moved = time.Now()
					case !errors.Is(err, errRejudge):
						t.Fatal(err)
					default:
						w.next.Offset = w.status.position.Load()
						w.c.cfg.Retry.Sleep(w.drain, w.pause)
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

// told is a Health and an Observer that keep what they are told, and a log.
type told struct {
	healthLog
	retrying bool
	consumed map[string]int
	log      bytes.Buffer
}

func (o *told) Retrying(_ string, _ int32, on bool)               { o.retrying = on }
func (o *told) Consumed(_ string, _ int32, outcome string, n int) { o.consumed[outcome] += n }

func listened(t *testing.T, s *script, policy retry.Policy) (*worker, *told) {
	t.Helper()
	o := &told{consumed: map[string]int{}}
	w := newWorker(scriptedConsumer(t, s, func(cfg *Config) {
		cfg.Observer, cfg.Health, cfg.Retry = o, o, policy
		cfg.Log = slog.New(slog.NewJSONHandler(&o.log, nil))
	}), 0)
	t.Cleanup(func() { w.cancel(nil) })
	w.status.claimed(projection.Position{Fence: 7})
	w.next.Offset = 5
	return w, o
}

// recovered are the attempts and the duration of each line of recovery, by operation.
func (o *told) recovered(t *testing.T) map[string]string {
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

// TestAnOutageLastsUntilAFlushSucceeds: claims in between succeed, with failures of
// their own.
func TestAnOutageLastsUntilAFlushSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pending(3)
		s.write = slices.Repeat([]error{refusal("57P01")}, 4)
		w, o := listened(t, s, retry.Policy{Initial: 8 * time.Second, Attempt: 30 * time.Second})
		began := time.Now()
		var waits []time.Duration
		for range 4 {
			s.pending = 3
			if err := w.flush(); !errors.Is(err, errRejudge) {
				t.Fatal(err)
			}
			waits = append(waits, w.pause)
			w.c.cfg.Retry.Sleep(w.drain, w.pause)
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
			if !o.retrying || w.status.state != Retrying || o.count(0, "ok partition t/0") > 0 {
				t.Errorf("a claim ends the outage: retrying %t, %s, health %q", o.retrying, w.status.state, o.told)
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
		if o.retrying || w.status.state != Flowing || o.count(0, "ok partition t/0") != 1 {
			t.Errorf("behind it: retrying %t, %s, health %q", o.retrying, w.status.state, o.told)
		}
		if got, want := o.recovered(t)["write a batch"], fmt.Sprintf("5 attempts, %s;", outage); got != want {
			t.Errorf("recovered: %s want %s", got, want)
		}
	})
}

// TestALostAnswerToCommitCountsOnce tells a write that took place from one that did not
// by the position row.
func TestALostAnswerToCommitCountsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		row  projection.Stood
		want int
	}{
		"written":                  {projection.Stood{Next: 5, Fence: 7}, 3},
		"not written":              {projection.Stood{Next: 0, Fence: 7}, 0},
		"written by another owner": {projection.Stood{Next: 5, Fence: 8}, 0},
		"restored":                 {projection.Stood{Next: 3, Fence: 7}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{pending: 3, write: []error{errLost}}
			w, o := listened(t, s, retry.Policy{Clock: noWait{}})
			if err := w.flush(); !errors.Is(err, errRejudge) {
				t.Fatal(err)
			}
			w.settle(c.row)
			w.settle(c.row)
			if n := o.consumed["applied"]; n != c.want {
				t.Errorf("%d records counted, want %d", n, c.want)
			}
			if over := c.want > 0; over == w.writing().Lasts() {
				t.Errorf("the outage lasts: %t", !over)
			}
		})
	}
}

// TestAStopBehindALostAnswer: the last flush finds that the position has moved already,
// by the very write whose answer was lost. So Kafka's offset may follow it.
func TestAStopBehindALostAnswer(t *testing.T) {
	s := &script{pending: 3, write: []error{errLost, projection.ErrFenced}}
	w, o := listened(t, s, retry.Policy{Clock: noWait{}})
	w.c.committer.own(0)
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

// TestReadingAsksForLessAfterAFailure: a look-up that the database cannot answer in time
// is not repeated as it is.
func TestReadingAsksForLessAfterAFailure(t *testing.T) {
	s := &reluctant{most: 3}
	w := newWorker(scriptedConsumer(t, &s.script, func(cfg *Config) {
		cfg.Open = func(int32) Projection { return s }
		cfg.Retry = retry.Policy{Clock: noWait{}}
	}), 0)
	defer w.cancel(nil)
	w.epoch = 1
	if err := w.judgeChunk(t, records(0, 100)); err != nil {
		t.Fatal(err)
	}
	if s.judged != 100 || w.next.Offset != 100 {
		t.Errorf("%d records judged, next %d", s.judged, w.next.Offset)
	}
}

// reluctant is a Projection that can be asked for few records at a time.
type reluctant struct {
	script
	most, judged int
}

func (r *reluctant) Judge(_ context.Context, records []projection.Judgeable, _ int) (int, error) {
	if len(records) > r.most {
		return 0, context.DeadlineExceeded
	}
	r.judged += len(records)
	r.pending += len(records)
	return len(records), nil
}
