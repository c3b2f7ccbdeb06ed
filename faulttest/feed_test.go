//go:build faults

package faulttest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"projector/faulttest/journal"
	"projector/internal/testbank"
)

// feed produces a stream at a steady pace while something happens to its consumers.
type feed struct {
	t     testing.TB
	hurry chan struct{}
	halt  chan struct{}
	done  chan error
	gate  sync.Mutex // held while records are on their way, or while none may be sent
}

const feedEvery = 25 * time.Millisecond

// startFeed begins to produce the scene's stream.
func (s *scene) startFeed() {
	records := s.records()
	chunk := chunkOf(records, s.setting.during)
	if s.setting.again {
		records = doubled(records, chunk)
		chunk *= 2
	}
	s.feed = s.feedBeside(records, chunk)
}

// chunkOf is how many records a tick sends if all are to take that long.
func chunkOf(records []testbank.Record, during time.Duration) int {
	return max(1, len(records)/max(1, int(during/feedEvery)))
}

// feedBeside begins to produce more records, next to the scene's stream.
func (s *scene) feedBeside(records []testbank.Record, chunk int) *feed {
	f := &feed{t: s.t, hurry: make(chan struct{}), halt: make(chan struct{}), done: make(chan error, 1)}
	go f.run(s.producer, records, chunk)
	return f
}

// doubled sends each piece of a stream twice.
func doubled(records []testbank.Record, chunk int) (twice []testbank.Record) {
	for i := 0; i < len(records); i += chunk {
		piece := records[i:min(i+chunk, len(records))]
		twice = append(append(twice, piece...), piece...)
	}
	return twice
}

func (f *feed) run(to *journal.Producer, rest []testbank.Record, chunk int) {
	tick := time.NewTicker(feedEvery)
	defer tick.Stop()
	for len(rest) > 0 {
		select {
		case <-tick.C:
		case <-f.hurry:
			chunk = len(rest)
		case <-f.halt:
			f.done <- nil
			return
		case <-f.t.Context().Done():
			f.done <- f.t.Context().Err()
			return
		}
		n := min(chunk, len(rest))
		f.gate.Lock()
		err := to.Send(f.t.Context(), rest[:n])
		f.gate.Unlock()
		if err != nil {
			f.done <- err
			return
		}
		rest = rest[n:]
	}
	f.done <- nil
}

// hold stops the feed, with all it has sent acknowledged, until release.
func (f *feed) hold() { f.gate.Lock() }

func (f *feed) release() { f.gate.Unlock() }

// ended reports whether everything has been sent.
func (f *feed) ended() bool { return len(f.done) > 0 }

// finish sends what is left at once and waits until it is acknowledged.
func (f *feed) finish() {
	f.t.Helper()
	close(f.hurry)
	if err := <-f.done; err != nil {
		f.t.Fatalf("feed: %v", err)
	}
}

// stop leaves the rest unsent, and waits until what was sent is acknowledged. A feed that
// had ended before has not lasted as long as it should.
func (f *feed) stop() {
	f.t.Helper()
	if f.ended() {
		f.t.Error("the stream ended before the test")
	}
	close(f.halt)
	if err := <-f.done; err != nil {
		f.t.Fatalf("feed: %v", err)
	}
}

// newcomers are accounts with one event each, spread over the partitions.
func (s *scene) newcomers(n int) []testbank.Record {
	prefix := fmt.Sprintf("new-%x-", s.rnd.Uint32())
	records := make([]testbank.Record, n)
	for i := range records {
		id := fmt.Sprint(prefix, i)
		records[i] = testbank.Record{
			Partition: int32(i) % s.setting.partitions, Key: []byte(id), Value: []byte(event(id, 1, "FundsCredited", good)),
		}
	}
	return records
}

// sendAndAwait produces records and waits until they are consumed.
func (s *scene) sendAndAwait(records []testbank.Record) {
	s.t.Helper()
	check(s.t, s.producer.Send(s.t.Context(), records))
	ends := s.ends()
	s.await("what was sent is consumed", func() string {
		positions := s.positions()
		for p, end := range ends {
			if positions[p] < end {
				return fmt.Sprintf("partition %d is at %d of %d", p, positions[p], end)
			}
		}
		return ""
	})
}
