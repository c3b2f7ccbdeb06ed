package consumer

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func records(from, n int) []*kgo.Record {
	list := make([]*kgo.Record, n)
	for i := range list {
		list[i] = &kgo.Record{Offset: int64(from + i), Value: make([]byte, 100)}
	}
	return list
}

// unlimited returns a queue without a size limit.
func unlimited() *queue {
	return newQueue(shared{new(atomic.Int64), new(atomic.Int64), func(int) bool { return false }, func() {}, func() {}})
}

func TestAFullQueuePausesAndResumesWhenHalfEmpty(t *testing.T) {
	size := recordBytes(records(0, 1)[0])
	resumed := 0
	var held atomic.Int64
	paused := 0
	q := newQueue(shared{&held, new(atomic.Int64), func(bytes int) bool { return bytes > 10*size }, func() { paused++ }, func() { resumed++ }})
	for _, step := range []struct{ from, n, paused int }{{0, 10, 0}, {10, 10, 1}, {20, 1, 1}} {
		if q.put(records(step.from, step.n), int64(step.from+step.n)); paused != step.paused {
			t.Errorf("with %d records paused %d times, want %d", step.from+step.n, paused, step.paused)
		}
	}
	q.remove(nil, 12)
	if resumed != 0 {
		t.Error("resumed while more than half full")
	}
	q.remove(nil, 6)
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
	q := unlimited()
	q.put(records(0, 5), 5)
	q.restart(2)
	q.put(records(3, 2), 5)
	got, epoch := q.remove(nil, 10)
	if len(got) != 2 || got[0].Offset != 3 || epoch != 2 {
		t.Errorf("%d records of epoch %d", len(got), epoch)
	}
}

// If the end before a restart still counted, a partition whose log has lost its end would wait before
// each flush, until the log is as long as before.
func TestARestartForgetsTheEndOfTheLog(t *testing.T) {
	q := unlimited()
	q.put(records(0, 5), 100)
	q.restart(2)
	q.put(records(3, 2), 5)
	if end := q.stableEnd(); end != 5 {
		t.Errorf("the log ends at %d, want 5", end)
	}
}

func TestOrderIsKept(t *testing.T) {
	q := unlimited()
	q.put(records(0, 5), 5)
	q.put(records(5, 5), 10)
	var next int64
	for {
		got, _ := q.remove(nil, 3)
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

// TestAnEmptyQueueIsNeverPaused shows that a pause is never executed after the resume that should
// end it. Otherwise the partition would stop for ever without an error.
func TestAnEmptyQueueIsNeverPaused(t *testing.T) {
	size := recordBytes(records(0, 1)[0])
	// The second goroutine spins, so a machine with one free processor needs up to 10 ms for each try.
	for began, tries := time.Now(), 0; tries < 20_000 && time.Since(began) < 30*time.Second; tries++ {
		var held atomic.Int64
		var paused atomic.Bool
		q := newQueue(shared{
			&held, new(atomic.Int64), func(bytes int) bool { return bytes > 10*size },
			func() { paused.Store(true) }, func() { paused.Store(false) },
		})
		var both sync.WaitGroup
		both.Go(func() { q.put(records(0, 12), 12) })
		both.Go(func() {
			for n := 0; n < 12; {
				got, _ := q.remove(nil, 512)
				n += len(got)
			}
		})
		both.Wait()
		if paused.Load() {
			t.Fatal("the queue is empty and its partition paused")
		}
	}
}

func TestLargeRecordsMakeSmallChunks(t *testing.T) {
	q := unlimited()
	var large []*kgo.Record
	for i := range 5 {
		large = append(large, &kgo.Record{Offset: int64(i), Value: make([]byte, chunkBytes-1)})
	}
	q.put(large, 5)
	if got, _ := q.remove(nil, 512); len(got) != 1 {
		t.Errorf("%d large records at a time, want 1", len(got))
	}
}

func TestABreakComesAfterTheRecords(t *testing.T) {
	q := unlimited()
	q.breakOff(&brokenOff{reason: "of before the seek"})
	q.restart(2)
	if broken, _ := q.removeBreak(); broken != nil {
		t.Errorf("%+v outlived a restart", broken)
	}
	q.put(records(0, 3), 3)
	q.breakOff(&brokenOff{reason: "too large"})
	if broken, _ := q.removeBreak(); broken != nil {
		t.Errorf("%+v overtook the records before it", broken)
	}
	q.remove(nil, 10)
	if broken, epoch := q.removeBreak(); broken == nil || broken.reason != "too large" || epoch != 2 {
		t.Errorf("%+v of epoch %d", broken, epoch)
	}
	if broken, _ := q.removeBreak(); broken != nil {
		t.Errorf("%+v twice", broken)
	}
	q.put(records(0, 3), 3) // records after the loss of data
	if got, _ := q.remove(nil, 10); len(got) != 0 {
		t.Errorf("%d records came behind the break", len(got))
	}
}

// TestAQueueIsBusyUntilWhatWasFetchedIsDurable shows when a queue counts as busy. Other partitions
// wait for a busy partition before they write.
func TestAQueueIsBusyUntilWhatWasFetchedIsDurable(t *testing.T) {
	var busy atomic.Int64
	q := newQueue(shared{new(atomic.Int64), &busy, func(int) bool { return false }, func() {}, func() {}})
	for _, step := range []struct {
		what string
		do   func()
		want int64
	}{
		{"fetched", func() { q.put(records(0, 5), 5) }, 1},
		{"fetched again", func() { q.put(records(5, 5), 10) }, 1},
		{"decoded", func() { q.remove(nil, 10) }, 1},
		{"the first durable", func() { q.durable(5) }, 1},
		{"all durable", func() { q.durable(10) }, 0},
		{"durable twice", func() { q.durable(10) }, 0},
		{"many fetched", func() { q.put(records(10, fewRecords), 10+fewRecords); q.put(records(10+fewRecords, 1), 11+fewRecords) }, 0},
		{"many durable", func() { q.durable(11 + fewRecords) }, 0},
		{"fetched later", func() { q.put(records(11+fewRecords, 1), 12+fewRecords) }, 1},
		{"delayed", q.delayed, 0},
		{"fetched meanwhile", func() { q.put(records(12+fewRecords, 1), 13+fewRecords) }, 1},
		{"restarted", func() { q.restart(2) }, 0},
		{"fetched in the next epoch", func() { q.put(records(3, 1), 13+fewRecords) }, 1},
		{"closed", func() { q.close() }, 0},
		{"fetched too late", func() { q.put(records(4, 1), 11) }, 0},
	} {
		if step.do(); busy.Load() != step.want {
			t.Errorf("%s: %d busy, want %d", step.what, busy.Load(), step.want)
		}
	}
}
