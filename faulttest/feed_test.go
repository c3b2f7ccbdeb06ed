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

// feed produces a stream at a steady pace in the background.
type feed struct {
	t     testing.TB
	hurry chan struct{}
	halt  chan struct{}
	done  chan error
	gate  sync.Mutex // held while records are being sent, and while the feed is paused
}

const feedEvery = 25 * time.Millisecond

// startFeed starts to produce the scene's stream.
func (s *scene) startFeed() {
	records := s.records()
	chunk := chunkOf(records, s.setting.during)
	if s.setting.again {
		records = doubled(records, chunk)
		chunk *= 2
	}
	s.feed = s.feedMore(records, chunk)
}

// chunkOf returns how many records each tick must send if all records together take the given time.
func chunkOf(records []testbank.Record, during time.Duration) int {
	return max(1, len(records)/max(1, int(during/feedEvery)))
}

// feedMore starts to produce more records, in addition to the scene's stream.
func (s *scene) feedMore(records []testbank.Record, chunk int) *feed {
	f := &feed{t: s.t, hurry: make(chan struct{}), halt: make(chan struct{}), done: make(chan error, 1)}
	go f.run(s.producer, records, chunk)
	return f
}

// The function doubled returns a stream in which each piece of the given stream occurs twice.
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

// The method hold pauses the feed until release. When it returns, all records sent so far are
// acknowledged.
func (f *feed) hold() { f.gate.Lock() }

func (f *feed) release() { f.gate.Unlock() }

// The method ended reports whether the feed has sent all records or has failed.
func (f *feed) ended() bool { return len(f.done) > 0 }

// finish sends the remaining records at once and waits until they are acknowledged.
func (f *feed) finish() {
	f.t.Helper()
	close(f.hurry)
	if err := <-f.done; err != nil {
		f.t.Fatalf("feed: %v", err)
	}
}

// stop ends the feed without sending the rest, and waits until the sent records are acknowledged.
// If the feed has already sent all records, the test fails, because the feed was too short for the
// fault.
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

// newcomers returns one event for each of n new accounts. The accounts are spread over the
// partitions.
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
