package consumer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"projector/projection"
	"projector/projection/event"
)

// slowRegistry is a Resolver that cannot resolve records with a key until the channel known is
// closed.
type slowRegistry struct {
	asked chan struct{}
	known chan struct{}
}

type awayError struct{}

func (awayError) Error() string      { return "away" }
func (awayError) Dependency() string { return "schema_registry" }

func (r slowRegistry) Resolve(_ context.Context, m event.Message) (event.Format, error) {
	if m.Key == nil {
		return noFormat{}, nil
	}
	select {
	case <-r.known:
		return noFormat{}, nil
	default:
	}
	select {
	case r.asked <- struct{}{}:
	default:
	}
	return nil, awayError{}
}

func (c *chunk) offsets() []int64 {
	offsets := make([]int64, len(c.records))
	for i := range c.records {
		offsets[i] = c.records[i].Record.Offset
	}
	return offsets
}

// TestUnreadableRecordsWait shows what happens if the schema of a record cannot be fetched. The
// records before that record are processed, and the partition's status is retrying.
func TestUnreadableRecordsWait(t *testing.T) {
	h := &healthLog{}
	w := scripted(t, pending(0))
	w.c.cfg.Health = h
	registry := slowRegistry{make(chan struct{}), make(chan struct{})}
	w.c.cfg.Formats = registry
	waiting := records(0, 5)
	waiting[3].Key = []byte("new schema")
	w.queue = unlimited()
	w.queue.put(waiting, 5)
	ended := make(chan struct{})
	go func() { w.decode(); close(ended) }()

	if c := <-w.chunks; len(c.offsets()) != 3 || c.next.Offset != 3 {
		t.Errorf("first %v, next %d", c.offsets(), c.next.Offset)
	}
	for range 3 { // the third request comes after the first failure was reported
		<-registry.asked
	}
	w.passed(notAnswered)
	if d := w.describe(time.Now()); d.State != projection.StateRetrying || d.Reason == "" {
		t.Errorf("while it waits: %s, %q", d.State, d.Reason)
	}
	close(registry.known)
	if c := <-w.chunks; len(c.offsets()) != 2 || c.next.Offset != 5 {
		t.Errorf("then %v, next %d", c.offsets(), c.next.Offset)
	}
	w.startStop()
	<-ended
	if d := w.describe(time.Now()); d.State != projection.StateFlowing || h.count(0, "ok partition t/0 schema") != 1 {
		t.Errorf("at last: %s, %q", d.State, h.reported)
	}
}

// hangingRegistry is a Resolver that fails only after half of stuckAfter.
type hangingRegistry struct{}

func (hangingRegistry) Resolve(context.Context, event.Message) (event.Format, error) {
	<-time.After(stuckAfter / 2)
	return nil, awayError{}
}

// TestAHangingRegistryCountsFromTheFirstAttempt shows that the time of the first two attempts is
// part of stuckAfter. A partition that waits for an answer of the schema registry does not progress
// either.
func TestAHangingRegistryCountsFromTheFirstAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &healthLog{}
		w := scripted(t, pending(0))
		w.c.cfg.Health, w.c.cfg.Formats = h, hangingRegistry{}
		ended := make(chan struct{})
		go func() { w.decodeAll(records(0, 1), 0); close(ended) }()
		<-time.After(stuckAfter + time.Millisecond)
		if h.count(0, "fail partition t/0 schema") != 1 {
			t.Errorf("after %s: %q", stuckAfter, h.reported)
		}
		w.startStop()
		<-ended
	})
}

func TestAStopEndsTheWaitForASchema(t *testing.T) {
	w := scripted(t, pending(0))
	registry := slowRegistry{make(chan struct{}), make(chan struct{})}
	w.c.cfg.Formats = registry
	one := records(0, 1)
	one[0].Key = []byte("new schema")
	w.queue = unlimited()
	w.queue.put(one, 1)
	ended := make(chan struct{})
	go func() { w.decode(); close(ended) }()
	<-registry.asked
	w.startStop()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("still waiting")
	}
}

// TestErrorsNameTheirDependency shows that an error of the schema registry is not reported as an
// error of PostgreSQL. The projection can return such an error when it reads a parked event.
func TestErrorsNameTheirDependency(t *testing.T) {
	for want, err := range map[string]error{
		"postgres": errors.New("anything"), "schema_registry": errors.Join(errors.New("read"), awayError{}),
	} {
		if got := dependencyOf(err, "postgres"); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// TestAReleasedChunkIsCleared shows that a released chunk has no old values, such as the error
// of a partition. Another partition may use the same chunk next.
func TestAReleasedChunkIsCleared(t *testing.T) {
	w := scripted(t, pending(0))
	w.epoch = 2
	stale, fresh := &chunk{epoch: 1, next: projection.NextOffset{Offset: 7}, broken: &brokenOff{reason: "the topic was recreated"}}, &chunk{epoch: 2}
	w.chunks <- stale
	w.chunks <- fresh
	if c, err := w.nextChunk(false); c != fresh || err != nil {
		t.Fatalf("got %v, %v", c, err)
	}
	if stale.broken != nil || stale.next.Offset != 0 || stale.epoch != 0 {
		t.Errorf("given back with %+v", stale)
	}
}

// TestLagOfAStrangeTimestamp shows that an unknown or future timestamp is not used for the lag. The
// age of the lag is then the time since the lag was first seen.
func TestLagOfAStrangeTimestamp(t *testing.T) {
	now := time.Now()
	for _, ms := range []int64{0, projection.NoTimestamp, projection.LastTimestamp} {
		w := scripted(t, pending(0))
		if _, err := w.session.Fold(t.Context(), []projection.DecodedRecord{{Record: projection.Record{Timestamp: ms}}}); err != nil {
			t.Fatal(err)
		}
		w.status.lagging.Store(now.Add(-5 * time.Second).UnixMilli())
		w.queue = unlimited()
		w.status.first.Store(0)
		w.status.end.Store(3)
		if records, age, _ := w.lag(now); records != 3 || age.Round(time.Second) != 5*time.Second {
			t.Errorf("%d: %d records, %s", ms, records, age)
		}
	}
}
