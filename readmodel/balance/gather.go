package balance

import (
	"sync"
	"time"
)

// gatherFor is how long the first waits for others at most.
const gatherFor = time.Millisecond

// gathering brings partitions together that need the database at about the same time: the
// poller hands out what it has fetched to many of them at once. Each reads the accounts
// that it does not know, if there are any, and then writes.
//
//	records ─▶ partition ─▶ reads ──┐          ┌─▶ writes ──┐
//	        ─▶ partition ─▶ reads ──┴ a query ─┴─▶ writes ──┤
//	        ─▶ partition ──────────────────────────▶ writes ┴ a transaction
//
// The first who comes leads: it waits until nobody else can come, and then acts for all.
type gathering struct {
	// busy is how many partitions have records that are not durable yet, as of now. nil: not
	// known, so the first always waits for gatherFor.
	busy func() int

	mu     sync.Mutex
	reads  meeting[*read]
	writes meeting[*member]
}

// meeting is of those who want the same.
type meeting[T any] struct {
	waiting []T
	acting  int           // for how many a leader acts now
	all     chan struct{} // has a value when nobody else can come
}

func newGathering(busy func() int) gathering {
	return gathering{busy: busy, reads: meeting[*read]{all: make(chan struct{}, 1)}, writes: meeting[*member]{all: make(chan struct{}, 1)}}
}

// join adds one to a meeting. It returns those to act for when this one leads, else nil.
// A leader calls done when it has acted.
func join[T any](g *gathering, m *meeting[T], one T) (together []T) {
	g.mu.Lock()
	m.waiting = append(m.waiting, one)
	leads := len(m.waiting) == 1
	g.check()
	g.mu.Unlock()
	if !leads {
		return nil
	}
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	select {
	case <-m.all:
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-m.all: // it came together with the timer
	default:
	}
	together, m.waiting = m.waiting, nil
	m.acting += len(together)
	return together
}

// done notes that a leader has acted for n.
func done[T any](g *gathering, m *meeting[T], n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.acting -= n
}

// check lets the leaders act for whom nobody else can come: who reads comes to write later,
// who writes does not come any more.
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

// complete lets the leader act, if there is one.
func (m *meeting[T]) complete() {
	if len(m.waiting) == 0 {
		return
	}
	select {
	case m.all <- struct{}{}:
	default:
	}
}
