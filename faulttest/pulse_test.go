//go:build faults

package faulttest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"projector/internal/testbank/compare"
)

// pulse polls the positions and the readiness of the replicas. It measures how long the position of
// a partition with unread records stays the same.
type pulse struct {
	s        *scene
	replicas []*replica
	stop     context.CancelFunc
	ended    sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	at       map[int32]int64
	since    map[int32]time.Time     // time of the last move, or the last time without unread records
	longest  map[int32]time.Duration // longest time without a move while there were unread records
	moves    map[int32]int
	blind    time.Duration // the longest time between two polls
	lastPoll time.Time
	unready  []string
}

const pulseEvery = 100 * time.Millisecond

// startPulse starts the polling. For each partition, the time without a move is measured from this
// call on.
func (s *scene) startPulse() *pulse {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	p := &pulse{
		s: s, stop: stop, replicas: append([]*replica(nil), s.replicas...), lastPoll: time.Now(),
		at: map[int32]int64{}, since: map[int32]time.Time{}, longest: map[int32]time.Duration{}, moves: map[int32]int{},
	}
	for partition := range s.setting.partitions {
		p.since[partition] = p.lastPoll
	}
	for partition, next := range s.positions() {
		p.at[partition] = next
	}
	p.ended.Go(func() { p.run(ctx) })
	s.t.Cleanup(p.end)
	return p
}

func (p *pulse) end() {
	p.stop()
	p.ended.Wait()
}

func (p *pulse) run(ctx context.Context) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		p.poll(ctx)
		p.knock()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	p.poll(ctx) // includes a move after the last poll
}

// poll reads the ends of the topic before the positions. In the other order, a record that arrives
// between the two reads would make a partition at its end count as stopped.
func (p *pulse) poll(ctx context.Context) {
	ends, err := compare.Ends(ctx, p.s.admin, p.s.reader.Topic)
	if err != nil {
		return // the failed poll makes blind longer
	}
	positions, err := p.s.reader.Positions(ctx, p.s.db)
	if err != nil {
		return
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blind, p.lastPoll = max(p.blind, now.Sub(p.lastPoll)), now
	for partition, end := range ends {
		next := positions[partition]
		p.longest[partition] = max(p.longest[partition], now.Sub(p.since[partition]))
		if next != p.at[partition] {
			p.moves[partition]++
		}
		if next != p.at[partition] || next >= end {
			p.since[partition] = now
		}
		p.at[partition] = next
	}
}

// knock queries /readyz of the replicas.
func (p *pulse) knock() {
	for i, r := range p.replicas {
		if status, body := r.Get("/readyz"); status != 200 {
			p.mu.Lock()
			p.unready = append(p.unready, fmt.Sprintf("replica %d: %d %s", i, status, body))
			p.mu.Unlock()
		}
	}
}

// movedTimes returns a check for await. It succeeds when each partition has moved at least n times.
// The test fails as soon as a partition has not moved for longer than limit.
func (p *pulse) movedTimes(n int, limit time.Duration) func() string {
	return func() string {
		p.keptUp(limit)
		p.mu.Lock()
		defer p.mu.Unlock()
		for partition := range p.s.setting.partitions {
			if p.moves[partition] < n {
				return fmt.Sprintf("partition %d has moved %d times, waiting for %d", partition, p.moves[partition], n)
			}
		}
		return ""
	}
}

// keptUp fails the test if a partition did not move for longer than limit. The measured time can be
// too long by the time between two polls, so that time is added to limit.
func (p *pulse) keptUp(limit time.Duration) {
	p.s.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for partition, stood := range p.longest {
		if stood > limit+p.blind {
			p.s.t.Fatalf("partition %d stood for %s with records waiting, at %d; allowed are %s (the looks were at most %s apart)",
				partition, stood.Round(time.Millisecond), p.at[partition], limit, p.blind.Round(time.Millisecond))
		}
	}
}

// The method steady ends the polling. It expects that no partition stopped for longer than limit
// and that every replica was ready at each poll.
func (p *pulse) steady(limit time.Duration) {
	p.s.t.Helper()
	p.end()
	p.s.t.Logf("longest standstill by partition %v, looks at most %s apart", p.longest, p.blind)
	if len(p.unready) > 0 {
		p.s.t.Errorf("unready %d times, first %s", len(p.unready), p.unready[0])
	}
	p.keptUp(limit)
}

// totalMoves returns the sum of the moves of all partitions.
func (p *pulse) totalMoves() (moves int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.moves {
		moves += n
	}
	return moves
}
