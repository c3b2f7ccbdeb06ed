package consumer

import (
	"testing"
	"time"

	"projector/projection"
)

// TestDescribeReturnsThePartitionState shows when a running partition is reported as flowing, idle
// or throttled. It also checks that the reported end is not lower than the position if the end was
// queried before the position moved.
func TestDescribeReturnsThePartitionState(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		state         projection.State
		position, end int64
		moved         time.Duration // time since the position moved; 0 if it has not moved
		paused        bool
		want          projection.State
		wantEnd       int64
	}{
		"starting":                     {projection.StateStarting, 0, -1, 0, false, projection.StateStarting, -1},
		"flowing, its end unknown":     {projection.StateFlowing, 10, -1, 0, false, projection.StateFlowing, -1},
		"behind":                       {projection.StateFlowing, 10, 50, time.Second, false, projection.StateFlowing, 50},
		"behind and long without move": {projection.StateFlowing, 10, 50, time.Hour, false, projection.StateFlowing, 50},
		"at the end a moment ago":      {projection.StateFlowing, 50, 50, time.Second, false, projection.StateFlowing, 50},
		"beyond the end as last asked": {projection.StateFlowing, 60, 50, time.Second, false, projection.StateFlowing, 60},
		"idle":                         {projection.StateFlowing, 50, 50, time.Minute, false, projection.StateIdle, 50},
		"idle from the start":          {projection.StateFlowing, 50, 50, 0, false, projection.StateIdle, 50},
		"throttled":                    {projection.StateFlowing, 10, 50, time.Second, true, projection.StateThrottled, 50},
		"retrying, its queue full":     {projection.StateRetrying, 10, 50, time.Second, true, projection.StateRetrying, 50},
		"stopped at the end":           {projection.StateStopped, 50, 50, time.Hour, false, projection.StateStopped, 50},
	} {
		t.Run(name, func(t *testing.T) {
			w := scripted(t, pending(0))
			w.status.set(c.state, "")
			w.status.claimed(projection.Position{Next: c.position, Fence: 1})
			w.status.end.Store(c.end)
			if c.moved > 0 {
				w.status.moved.Store(now.Add(-c.moved).UnixMilli())
			}
			w.queue.paused = c.paused
			if d := w.describe(now); d.State != c.want || d.End != c.wantEnd || d.Position != c.position {
				t.Errorf("%s at %d of %d; want %s of %d", d.State, d.Position, d.End, c.want, c.wantEnd)
			}
		})
	}
}
