package consumer

import (
	"testing"
	"time"

	"projector/projection"
)

// TestDescribeTellsWhatAPartitionDoes: the pace of one that flows, and an end that is
// never before the position, although it was asked for earlier.
func TestDescribeTellsWhatAPartitionDoes(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		state         State
		position, end int64
		moved         time.Duration // ago; 0: never
		paused        bool
		want          State
		wantEnd       int64
	}{
		"starting":                     {Starting, 0, -1, 0, false, Starting, -1},
		"flowing, its end unknown":     {Flowing, 10, -1, 0, false, Flowing, -1},
		"behind":                       {Flowing, 10, 50, time.Second, false, Flowing, 50},
		"behind and long without move": {Flowing, 10, 50, time.Hour, false, Flowing, 50},
		"at the end a moment ago":      {Flowing, 50, 50, time.Second, false, Flowing, 50},
		"beyond the end as last asked": {Flowing, 60, 50, time.Second, false, Flowing, 60},
		"idle":                         {Flowing, 50, 50, time.Minute, false, Idle, 50},
		"idle from the start":          {Flowing, 50, 50, 0, false, Idle, 50},
		"throttled":                    {Flowing, 10, 50, time.Second, true, Throttled, 50},
		"retrying, its queue full":     {Retrying, 10, 50, time.Second, true, Retrying, 50},
		"stopped at the end":           {Stopped, 50, 50, time.Hour, false, Stopped, 50},
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
