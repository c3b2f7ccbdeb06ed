package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
)

// assigned starts a worker for each new partition. Nothing is fetched until the worker has claimed
// the partition and the poller has set the client's offset. The client calls assigned after each
// join, also without a new partition.
func (c *Consumer) assigned(ctx context.Context, cl *kgo.Client, m map[string][]int32) {
	<-c.ready
	c.joinedAt.CompareAndSwap(nil, new(time.Now()))
	partitions := m[c.cfg.Topic]
	if len(partitions) == 0 {
		return
	}
	cl.PauseFetchPartitions(map[string][]int32{c.cfg.Topic: partitions})
	c.mu.Lock()
	defer c.mu.Unlock()
	// This comes before the workers start, because a worker reads its share when it starts.
	c.shareMemoryAmong(len(c.workers) + len(partitions))
	for _, p := range partitions {
		c.committer.acceptMarks(p)
		c.cfg.Observer.Assigned(p)
		w := newWorker(ctx, c, p)
		c.workers[p] = w
		w.start()
	}
	c.cfg.Log.Info("partitions assigned", slog.Any("partitions", partitions))
}

// offsetsFetched passes the committed offsets to the workers. A partition without a committed
// offset gets offset 0 as a placeholder. The placeholder has no effect, because the partition's
// worker seeks before anything is fetched.
//
// The brokers may not return the committed offset of a partition, for example because a permission
// is missing. The client would leave this partition out until it is assigned again. So
// offsetsFetched returns an error, and the client leaves the group and joins it again.
func (c *Consumer) offsetsFetched(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for p, o := range offsets[c.cfg.Topic] {
		committed := o.EpochOffset().Offset
		if committed < 0 {
			committed = -1
		}
		if w := c.worker(p); w != nil {
			w.offsetKnown.Store(true)
			select {
			case w.committed <- committed:
			default:
			}
		}
		offsets[c.cfg.Topic][p] = kgo.NewOffset().At(max(0, committed)).WithEpoch(-1)
	}
	if p, waits := c.withoutOffset(); waits {
		return nil, errclass.Text(fmt.Sprintf("the brokers have not returned the committed offset of partition %d", p))
	}
	return offsets, nil
}

// withoutOffset returns an assigned partition whose committed offset is not known yet, if there is
// one.
func (c *Consumer) withoutOffset() (partition int32, waits bool) {
	for _, p := range c.assignment() {
		if w := c.worker(p); w != nil && !w.offsetKnown.Load() {
			return p, true
		}
	}
	return 0, false
}

// revokeWithin limits the time for the last flush of revoked partitions. It is much shorter than
// the rebalance timeout, because the whole group waits.
const revokeWithin = 5 * time.Second

// commitWithin limits the last commit of a partition.
const commitWithin = 2 * time.Second

// unassigned ends the workers of partitions that this member no longer owns. The client calls it with
// lost whenever it is no longer a member of the group or could not join it, also without a partition.
func (c *Consumer) unassigned(ctx context.Context, m map[string][]int32, lost bool) {
	if lost {
		c.joinedAt.Store(nil)
	}
	partitions := m[c.cfg.Topic]
	if len(partitions) == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, revokeWithin, errors.New("revoked"))
	defer cancel()
	if lost {
		cancel()
	}
	c.release(ctx, partitions, lost)
	c.cfg.Log.Info("partitions given up", slog.Any("partitions", partitions), slog.Bool("lost", lost))
}

// release stops the workers of the partitions. Then it commits the partitions' offsets, unless the
// partitions are lost, and removes the workers.
func (c *Consumer) release(ctx context.Context, partitions []int32, lost bool) {
	var stopping sync.WaitGroup
	for _, p := range partitions {
		if w := c.worker(p); w != nil {
			stopping.Go(func() { w.stop(ctx) })
		}
	}
	stopping.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitWithin)
	defer cancel()
	c.committer.disown(last, partitions, lost)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range partitions {
		delete(c.workers, p)
		c.cfg.Observer.Revoked(p)
		c.cfg.Health.OK(c.condition(p))
		c.cfg.Health.OK(c.condition(p) + " leader")
		c.cfg.Health.OK(c.condition(p) + logCondition)
		c.cfg.Health.OK(c.condition(p) + schemaCondition)
		c.cfg.Health.OK(c.condition(p) + transactionCondition)
	}
	c.shareMemoryAmong(len(c.workers))
}
