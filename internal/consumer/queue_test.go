package consumer

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func records(from, n int) []*kgo.Record {
	list := make([]*kgo.Record, n)
	for i := range list {
		list[i] = &kgo.Record{Offset: int64(from + i), Value: make([]byte, 100)}
	}
	return list
}

// endless is a queue with room for everything.
func endless() *queue {
	return newQueue(room{new(atomic.Int64), func(int) bool { return false }, func() {}})
}

func TestAFullQueuePausesAndResumesWhenHalfEmpty(t *testing.T) {
	size := recordBytes(records(0, 1)[0])
	resumed := 0
	var held atomic.Int64
	q := newQueue(room{&held, func(bytes int) bool { return bytes > 10*size }, func() { resumed++ }})
	if q.put(records(0, 10), 10) {
		t.Error("paused at its limit")
	}
	if !q.put(records(10, 10), 20) {
		t.Error("not paused above its limit")
	}
	if q.put(records(20, 1), 21) {
		t.Error("paused twice")
	}
	q.take(nil, 12)
	if resumed != 0 {
		t.Error("resumed while more than half full")
	}
	q.take(nil, 6)
	if resumed != 1 {
		t.Errorf("resumed %d times, want once", resumed)
	}
	q.close()
	q.put(records(21, 1), 22)
	if held.Load() != 0 {
		t.Errorf("an empty queue holds %d bytes", held.Load())
	}
}

func TestARestartDropsWhatWasFetchedBefore(t *testing.T) {
	q := endless()
	q.put(records(0, 5), 5)
	q.restart(2)
	q.put(records(3, 2), 5)
	got, epoch := q.take(nil, 10)
	if len(got) != 2 || got[0].Offset != 3 || epoch != 2 {
		t.Errorf("%d records of epoch %d", len(got), epoch)
	}
}

func TestOrderIsKept(t *testing.T) {
	q := endless()
	q.put(records(0, 5), 5)
	q.put(records(5, 5), 10)
	var next int64
	for {
		got, _ := q.take(nil, 3)
		if len(got) == 0 {
			break
		}
		for _, r := range got {
			if r.Offset != next {
				t.Fatalf("offset %d, want %d", r.Offset, next)
			}
			next++
		}
	}
	if next != 10 {
		t.Errorf("%d records came out, want 10", next)
	}
}
