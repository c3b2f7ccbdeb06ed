package consumer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"projector/internal/pace"
	"projector/projection"
)

// searching is a Database whose search for overdue events takes a long time.
type searching struct{ *script }

func (searching) Overdue(ctx context.Context, partitions []int32) ([]int32, error) {
	return partitions, pace.Sleep(ctx, 10*time.Second)
}

// TestASlowSearchFindsOverdueEvents shows that parked events which can be applied now are found also
// if very many events are parked, so that the search takes several seconds.
func TestASlowSearchFindsOverdueEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scriptedConsumer(t, &script{}, func(cfg *Config) { cfg.Database = searching{&script{}} })
		w := newWorker(t.Context(), c, 0)
		w.status.claimed(projection.Position{Fence: 1})
		w.status.set(projection.StateFlowing, "")
		c.workers[0] = w
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c.watchOverdue(ctx)
		select {
		case <-w.recheck:
		default:
			t.Error("the partition is not claimed again")
		}
	})
}
