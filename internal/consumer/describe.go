package consumer

import (
	"slices"
	"time"
)

// PartitionStatus is one assigned partition, for people. End is -1 when unknown.
type PartitionStatus struct {
	Partition     int32
	State         State
	Since         time.Time // of Flowing, Idle and Paused together
	Reason        string
	Position, End int64
	Claimed       bool // Position is known
	LagKnown      bool
	LagRecords    int64
	LagSeconds    float64
}

// Status lists the assigned partitions in order. It waits for nothing.
func (c *Consumer) Status() []PartitionStatus {
	partitions := c.assignment()
	slices.Sort(partitions)
	now := time.Now()
	list := make([]PartitionStatus, 0, len(partitions))
	for _, p := range partitions {
		if w := c.worker(p); w != nil {
			list = append(list, w.describe(now))
		}
	}
	return list
}

func (w *worker) describe(now time.Time) PartitionStatus {
	s := &w.status
	s.mu.Lock()
	d := PartitionStatus{Partition: w.partition, State: s.state, Since: s.since, Reason: s.reason}
	s.mu.Unlock()
	d.Position, d.End, d.Claimed = s.position.Load(), s.end.Load(), s.fence.Load() > 0
	var age time.Duration
	d.LagRecords, age, d.LagKnown = w.lag(now)
	d.LagSeconds = age.Seconds()
	if d.Claimed && d.End >= 0 {
		d.End = max(d.End, d.Position) // the end was asked for some seconds ago
	}
	if d.State == Flowing {
		d.State = w.pace(d, now)
	}
	return d
}

// pace tells apart what a partition does that flows.
func (w *worker) pace(d PartitionStatus, now time.Time) State {
	switch {
	case w.queue.isPaused():
		return Paused
	case d.End == d.Position && now.Sub(time.UnixMilli(w.status.moved.Load())) > idleAfter:
		return Idle
	default:
		return Flowing
	}
}
