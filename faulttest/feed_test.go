//go:build faults

package faulttest

import (
	"testing"
	"time"

	"projector/e2e/stream"
	"projector/faulttest/journal"
)

// feed produces a stream at a steady pace while something happens to its consumers.
type feed struct {
	t     testing.TB
	hurry chan struct{}
	done  chan error
}

const feedEvery = 25 * time.Millisecond

// startFeed begins to produce the scene's stream.
func (s *scene) startFeed() {
	s.feed = &feed{t: s.t, hurry: make(chan struct{}), done: make(chan error, 1)}
	records := s.records()
	chunk := max(1, len(records)/max(1, int(s.setting.during/feedEvery)))
	if s.setting.again {
		records = doubled(records, chunk)
		chunk *= 2
	}
	go s.feed.run(s.producer, records, chunk)
}

// doubled sends each piece of a stream again behind itself.
func doubled(records []stream.Record, chunk int) (twice []stream.Record) {
	for i := 0; i < len(records); i += chunk {
		piece := records[i:min(i+chunk, len(records))]
		twice = append(append(twice, piece...), piece...)
	}
	return twice
}

func (f *feed) run(to *journal.Producer, rest []stream.Record, chunk int) {
	tick := time.NewTicker(feedEvery)
	defer tick.Stop()
	for len(rest) > 0 {
		select {
		case <-tick.C:
		case <-f.hurry:
			chunk = len(rest)
		case <-f.t.Context().Done():
			f.done <- f.t.Context().Err()
			return
		}
		n := min(chunk, len(rest))
		if err := to.Send(f.t.Context(), rest[:n]); err != nil {
			f.done <- err
			return
		}
		rest = rest[n:]
	}
	f.done <- nil
}

// finish sends what is left at once and waits until it is acknowledged.
func (f *feed) finish() {
	f.t.Helper()
	close(f.hurry)
	if err := <-f.done; err != nil {
		f.t.Fatalf("feed: %v", err)
	}
}
