package consumer

import (
	"context"
	"time"
)

// strandedEvery is how often parked events are looked for that could be applied and
// are not.
const strandedEvery = 10 * time.Second

// strandedShare bounds what looking costs where very many events are parked: so many
// times as long as a look took, there is no other.
const strandedShare = 50

// watchStranded has partitions claimed anew that hold parked events whose turn has come.
// A worker heals an account when it applies the version before; it does not know what
// the worker of another partition has parked since it read the account. That happens
// only when an account's events are in several partitions: after partitions were added,
// or when a producer does not key them by account.
func (c *Consumer) watchStranded(ctx context.Context) {
	var rest time.Time
	every(ctx, strandedEvery, watchWithin, func(look context.Context) {
		assigned, start := c.assignment(), time.Now()
		if len(assigned) == 0 || start.Before(rest) {
			return
		}
		stranded, err := c.cfg.Database.Stranded(look, assigned)
		rest = start.Add(strandedShare * time.Since(start))
		if err != nil {
			return // watchDatabase tells
		}
		for _, p := range stranded {
			if w := c.worker(p); w != nil && w.status.fence.Load() > 0 {
				w.log.Info("parked events wait although their turn has come: claiming the partition anew")
				w.lookAgain()
			}
		}
	})
}
