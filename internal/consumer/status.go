package consumer

import (
	"sync"
	"sync/atomic"
	"time"

	"projector/projection"
)

// status is what others may know of a worker.
type status struct {
	position atomic.Int64 // durable
	fence    atomic.Int64
	oldest   atomic.Int64 // timestamp in ms of the first record pending, 0: none
	lagging  atomic.Int64 // since when the partition has been seen behind, ms, 0: is not
	end      atomic.Int64 // as last asked of the broker, -1: not yet

	mu     sync.Mutex
	state  State
	since  time.Time
	reason string
}

// State is what a partition is doing.
type State string

// The states of a partition.
const (
	Starting State = "starting" // its position is not known yet
	Flowing  State = "flowing"  // consuming, or idle at the end
	Retrying State = "retrying" // backing off
	Stopped  State = "stopped"  // needs a person
)

func (s *status) claimed(pos projection.Position) {
	s.position.Store(pos.Next)
	s.fence.Store(pos.Fence)
}

func (s *status) set(state State, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != state {
		s.since = time.Now()
	}
	s.state, s.reason = state, reason
}
