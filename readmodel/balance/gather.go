package balance

import (
	"sync"
	"time"
)

const (
	// gatherFor is the longest time that the first partition waits for others. On a busy machine,
	// the other partitions need some milliseconds to arrive.
	gatherFor = 4 * time.Millisecond
	// checkEvery is the interval at which the first partition checks whether another one can still
	// join.
	checkEvery = time.Millisecond
)

// A gathering brings together partitions that need the database at about the same time. The
// consumer's poller gives fetched records to many partitions at once. Each of them reads the
// accounts it does not know, and then writes.
//
//	records ─▶ partition ─▶ reads ──┐          ┌─▶ writes ──┐
//	        ─▶ partition ─▶ reads ──┴ a query ─┴─▶ writes ──┤
//	        ─▶ partition ──────────────────────────▶ writes ┴ a transaction
//
// The first partition is the leader. It waits until no other partition can join, or for gatherFor,
// and then reads or writes for all.
type gathering struct {
	// busy returns how many partitions are expected to join. If it is nil, the leader always waits
	// for gatherFor.
	busy func() int

	mu     sync.Mutex
	reads  meeting[*read]
	writes meeting[*member]
}

// A meeting holds the partitions that wait for the same step.
type meeting[T any] struct {
	waiting []T
	acting  int           // number of partitions for which a leader reads or writes now
	all     chan struct{} // receives a value when no other partition can join
}

func newGathering(busy func() int) gathering {
	return gathering{busy: busy, reads: meeting[*read]{all: make(chan struct{}, 1)}, writes: meeting[*member]{all: make(chan struct{}, 1)}}
}

// join adds the read or write of one partition to those that wait for the same step. The first one
// is the leader. For the leader, join waits for others and returns all of them. For the others,
// join returns nil at once. The leader calls done after it has read or written for all.
func join[T any](g *gathering, m *meeting[T], one T) (together []T) {
	g.mu.Lock()
	m.waiting = append(m.waiting, one)
	leads := len(m.waiting) == 1
	g.check()
	g.mu.Unlock()
	if !leads {
		return nil
	}
	await(g, m)
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-m.all: // the value arrived just when the wait ended
	default:
	}
	together, m.waiting = m.waiting, nil
	m.acting += len(together)
	return together
}

// await waits until no other partition can join, or for gatherFor.
func await[T any](g *gathering, m *meeting[T]) {
	timer := time.NewTimer(checkEvery)
	defer timer.Stop()
	for waited := time.Duration(0); waited < gatherFor; waited += checkEvery {
		select {
		case <-m.all:
			return
		case <-timer.C:
			timer.Reset(checkEvery)
		}
		g.mu.Lock()
		g.check()
		g.mu.Unlock()
	}
}

// done is called when a leader has finished for n members.
func done[T any](g *gathering, m *meeting[T], n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.acting -= n
}

// check lets a leader start if no other partition can join. A partition that reads now will join
// the writes later. A partition that writes now will not join again with these records.
func (g *gathering) check() {
	if g.busy == nil {
		return
	}
	others := g.busy() - len(g.writes.waiting) - g.writes.acting
	if others <= 0 {
		g.writes.complete()
	}
	if others <= len(g.reads.waiting)+g.reads.acting {
		g.reads.complete()
	}
}

// complete lets the leader start, if a leader waits.
func (m *meeting[T]) complete() {
	if len(m.waiting) == 0 {
		return
	}
	select {
	case m.all <- struct{}{}:
	default:
	}
}
