package consumer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"projector/internal/retry"
	"projector/internal/session"
	"projector/projection"
)

// shownRetrying is an Observer with the last value of the metric projector_retrying.
type shownRetrying struct {
	quiet
	on atomic.Bool
}

func (r *shownRetrying) Retrying(_ int32, on bool) { r.on.Store(on) }

// unreadable is a worker whose decoder waits for the schema of the record at offset 0.
type unreadable struct {
	*worker
	health   *healthLog
	retrying *shownRetrying
	registry slowRegistry
}

func newUnreadable(t *testing.T) *unreadable {
	t.Helper()
	w := &unreadable{scripted(t, pending(0)), &healthLog{}, &shownRetrying{}, slowRegistry{make(chan struct{}), make(chan struct{})}}
	_, seeds := startFake(t, 1, 1)
	connect(t, w.c, seeds)
	w.c.cfg.Health, w.c.cfg.Observer, w.c.cfg.Formats = w.health, w.retrying, w.registry
	w.queue = unlimited()
	waiting := records(0, 3)
	waiting[0].Key = []byte("new schema")
	w.queue.put(waiting, 3)
	ended := make(chan struct{})
	go func() { w.decode(); close(ended) }()
	t.Cleanup(func() { w.startStop(); <-ended })
	for range 3 { // the third request comes after the first failure was reported
		<-w.registry.asked
	}
	return w
}

// TestASeekEndsTheWaitForASchema shows that a partition continues at a position that a person has
// set, although the schema of an earlier record cannot be fetched.
func TestASeekEndsTheWaitForASchema(t *testing.T) {
	w := newUnreadable(t)
	w.queue.restart(1)
	w.queue.put(records(1, 2), 3)
	select {
	case c := <-w.chunks:
		if c.epoch != 1 || len(c.offsets()) != 2 {
			t.Errorf("epoch %d, %v", c.epoch, c.offsets())
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the decoder still waits for the schema of a record before the position")
	}
}

// TestAPauseEndsTheWaitForASchema shows that a partition that is paused or stopped while it waits for
// a schema is reported as paused or stopped, and not as retrying. When the partition is read again,
// its records are decoded.
func TestAPauseEndsTheWaitForASchema(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, state := range []projection.State{projection.StatePaused, projection.StateBreakerOpen, projection.StateStopped} {
		w := newUnreadable(t)
		if err := w.suspend(state, "a reason"); !errors.Is(err, errHalted) {
			t.Fatal(err)
		}
		awaitOn(ctx, t, w.c, string(state)+": the wait for a schema ends", func() bool {
			return w.health.count(0, "ok partition t/0 schema") > 0
		})
		if d := w.describe(time.Now()); d.State != state || d.Reason != "a reason" || w.retrying.on.Load() {
			t.Errorf("%s: reported as %s, %q, retrying %t", state, d.State, d.Reason, w.retrying.on.Load())
		}
		close(w.registry.known)
		w.markRunning()
		w.queue.restart(1)
		w.queue.put(records(0, 3), 3)
		if c := <-w.chunks; c.epoch != 1 || len(c.offsets()) != 3 {
			t.Errorf("%s: then epoch %d, %v", state, c.epoch, c.offsets())
		}
		if d := w.describe(time.Now()); d.State != projection.StateFlowing {
			t.Errorf("%s: then reported as %s, %q", state, d.State, d.Reason)
		}
	}
}

// TestAPausedPartitionIsNotRetrying shows that projector_retrying is 0 while a partition waits for a
// person, although its last flush has failed, and 1 again when the partition continues.
func TestAPausedPartitionIsNotRetrying(t *testing.T) {
	s := pending(3)
	s.write = []error{refusal("57P01"), nil}
	w, o := newObservedWorker(t, s, retry.Policy{Initial: noWait, Max: noWait})
	_, seeds := startFake(t, 1, 1)
	connect(t, w.c, seeds)
	_ = w.flush()
	if !o.retrying {
		t.Error("not retrying after a failed flush")
	}
	_ = w.suspend(projection.StatePaused, "a reason")
	if o.retrying || w.status.state != projection.StatePaused {
		t.Errorf("paused: retrying %t, %s", o.retrying, w.status.state)
	}
	w.markRunning()
	if !o.retrying || w.status.state != projection.StateRetrying {
		t.Errorf("resumed: retrying %t, %s", o.retrying, w.status.state)
	}
	s.pending = 3
	if err := w.flush(); err != nil || o.retrying || w.status.state != projection.StateFlowing {
		t.Errorf("written: %v, retrying %t, %s", err, o.retrying, w.status.state)
	}
}

// unreadableParked is a projection with parked events whose schema cannot be fetched.
type unreadableParked struct{ *script }

func (unreadableParked) Fold(context.Context, []projection.DecodedRecord, int) (int, error) {
	return 0, awayError{}
}

// TestAPauseEndsTheHealing shows that a partition is claimed again after its stored position has
// changed, although parked events cannot be read because their schema cannot be fetched.
func TestAPauseEndsTheHealing(t *testing.T) {
	_, seeds := startFake(t, 1, 1)
	s := agreeing(1)
	w := scripted(t, s)
	connect(t, w.c, seeds)
	w.flushing(10, unreadableParked{s})
	w.c.workers[0] = w
	w.c.committer = newCommitter(func(context.Context, string, map[int32]int64) error { return nil }, func(error) {})
	ended := make(chan error, 1)
	go func() {
		_, err := w.consume(projection.NoOffset)
		ended <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	awaitOn(ctx, t, w.c, "healing fails", func() bool { return w.describe(time.Now()).State == projection.StateRetrying })
	paused, stop := context.WithCancel(ctx)
	defer stop()
	s.positions[0].Fence++ // as a pause does
	go w.c.watchPositions(paused)
	select {
	case err := <-ended:
		if !errors.Is(err, session.ErrAgain) {
			t.Error(err)
		}
	case <-ctx.Done():
		w.startStop()
		t.Errorf("the partition is not claimed again; at the end: %v", <-ended)
	}
}

// TestAPauseEndsTheWaitAfterAFailure shows that a partition is claimed again soon after its stored
// position has changed, although the next attempt after a failure would be much later.
func TestAPauseEndsTheWaitAfterAFailure(t *testing.T) {
	t.Parallel()
	away := errors.New("connection reset")
	for name, fail := range map[string]func(*script){
		"to write":                func(s *script) { s.write = []error{away} },
		"to publish dead letters": func(s *script) { s.letters, s.deliver = []projection.DeadLetter{letter}, []error{away} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, seeds := startFake(t, 1, 1)
			s := agreeing(1)
			s.healthy, s.pending = true, 1
			fail(s)
			w := scripted(t, s)
			connect(t, w.c, seeds)
			w.c.cfg.Retry = retry.Policy{Initial: time.Hour, Max: time.Hour, Attempt: time.Minute}
			w.c.workers[0] = w
			w.c.committer = newCommitter(func(context.Context, string, map[int32]int64) error { return nil }, func(error) {})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			w.committed <- projection.NoOffset
			ended := make(chan struct{})
			go func() { w.run(); close(ended) }()
			defer func() { w.startStop(); <-ended }()
			awaitOn(ctx, t, w.c, "the attempt fails", func() bool { return w.describe(time.Now()).State == projection.StateRetrying })
			s.positions[0].Fence++ // as a pause does
			paused := make(chan struct{})
			s.claimed = func() { close(paused) }
			go w.c.watchPositions(ctx)
			select {
			case <-paused:
			case <-ctx.Done():
				t.Error("the partition is not claimed again")
			}
		})
	}
}

// TestAStopAfterEachClaimIsLoggedOnce stops a partition for a reason that only shows after a claim,
// such as a batch that is too large. Each new claim seems to succeed. The partition goes on only
// when a flush succeeds. After a pause, it goes on with the claim.
func TestAStopAfterEachClaimIsLoggedOnce(t *testing.T) {
	s := pending(1)
	w := scripted(t, s)
	_, seeds := startFake(t, 1, 1)
	connect(t, w.c, seeds)
	var lines bytes.Buffer
	w.log = slog.New(slog.NewTextHandler(&lines, nil))
	logged := func(want ...string) {
		t.Helper()
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(lines.String()), "\n") {
			_, text, _ := strings.Cut(line, "msg=")
			got = append(got, strings.Trim(text, `"`))
		}
		lines.Reset()
		if !slices.Equal(got, want) {
			t.Errorf("logged %q, want %q", got, want)
		}
	}
	for range 3 {
		_ = w.halt("too large")
		w.markRunning()
	}
	logged(`partition stopped" reason="too large`)
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	logged("partition goes on")
	_ = w.suspend(projection.StatePaused, "maintenance")
	w.markRunning()
	logged(`partition paused" reason=maintenance`, "partition goes on")
}
