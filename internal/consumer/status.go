package consumer

import (
	"sync"
	"sync/atomic"
	"time"

	"projector/projection"
)

// status is what others may know of a worker.
type status struct {
	position atomic.Int64 // durable; known when there is a fence
	fence    atomic.Int64 // 0: the position is not known, or means nothing
	first    atomic.Int64 // the first offset there is, -1: not known
	oldest   atomic.Int64 // timestamp in ms of the first record pending, 0: none
	lagging  atomic.Int64 // since when the partition has been seen behind, ms, 0: is not
	end      atomic.Int64 // as last asked of the broker, -1: not yet
	moved    atomic.Int64 // when the position last moved, ms, 0: not yet

	mu        sync.Mutex
	state     State
	since     time.Time
	reason    string
	obstacles [obstacles]string // why each of them stands, "": it does not
}

// State is what a partition is doing.
type State string

// The states of a partition.
const (
	Starting State = "starting" // its position is not known yet
	Flowing  State = "flowing"  // consuming
	Idle     State = "idle"     // at the end, and nothing has come for idleAfter
	Paused   State = "paused"   // more is fetched than can be written now; it goes on by itself
	Retrying State = "retrying" // backing off
	Stopped  State = "stopped"  // needs a person
)

// Working reports whether the partition needs nobody's attention.
func (s State) Working() bool { return s == Flowing || s == Idle || s == Paused }

// idleAfter is how long nothing may come before a partition is called idle.
const idleAfter = 10 * time.Second

// from is where the lag begins: at the position, without one at the first offset there
// is; -1: not known.
func (s *status) from() int64 {
	if s.fence.Load() > 0 {
		return s.position.Load()
	}
	return s.first.Load()
}

// noPosition says that the stored position means nothing.
func (s *status) noPosition() { s.fence.Store(0) }

// log takes note of where the partition's log begins and ends.
func (s *status) log(topic partitionInfo) {
	s.first.Store(topic.start)
	if topic.stable != projection.NoOffset {
		s.end.Store(topic.stable)
	}
}

func (s *status) claimed(pos projection.Position) {
	s.position.Store(pos.Next)
	s.fence.Store(pos.Fence)
}

func (s *status) set(state State, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(state, reason)
}

// change is set, under the lock.
func (s *status) change(state State, reason string) {
	if s.state != state {
		s.since = time.Now()
	}
	s.state, s.reason = state, reason
}
