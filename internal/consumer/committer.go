package consumer

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"projector/internal/failpoint"
)

// committer commits to Kafka, behind the transactions. There is one, so that a
// commit can never overtake another, and it knows which partitions are owned: after
// a cooperative rebalance a commit for a lost partition would be accepted, and
// would take the group back.
type committer struct {
	commit   func(context.Context, map[int32]int64) error
	failing  func(error)
	interval time.Duration
	timeout  time.Duration

	mu     sync.Mutex // guards the maps
	owned  map[int32]bool
	marked map[int32]int64 // durable and not yet committed
	busy   sync.Mutex      // held while a commit is under way
}

func newCommitter(commit func(context.Context, map[int32]int64) error, failing func(error)) *committer {
	return &committer{
		commit: commit, failing: failing,
		interval: 500 * time.Millisecond, timeout: 5 * time.Second,
		owned: map[int32]bool{}, marked: map[int32]int64{},
	}
}

// own begins to accept marks for a partition.
func (c *committer) own(partition int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owned[partition] = true
}

// disown commits what is marked for the partitions and accepts no more of them.
// With lost, nothing is committed.
func (c *committer) disown(ctx context.Context, partitions []int32, lost bool) {
	if !lost {
		c.flush(ctx)
	}
	c.busy.Lock() // a commit that is under way must not outlive the ownership
	defer c.busy.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range partitions {
		delete(c.owned, p)
		delete(c.marked, p)
	}
}

// mark notes that everything before next is durable.
func (c *committer) mark(partition int32, next int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owned[partition] {
		c.marked[partition] = next
	}
}

// confirm commits an offset that Kafka has already, which only a member of the
// group's present generation can: whoever is not would act on what is long past.
func (c *committer) confirm(ctx context.Context, partition int32, next int64) error {
	c.busy.Lock()
	defer c.busy.Unlock()
	c.mu.Lock()
	owned := c.owned[partition]
	c.mu.Unlock()
	if !owned {
		return errGivenUp
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.commit(ctx, map[int32]int64{partition: next})
}

// errGivenUp says that the partition is no longer owned.
var errGivenUp = errors.New("the partition was given up")

// run commits at a steady pace until ctx ends.
func (c *committer) run(ctx context.Context) {
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// flush commits what is marked. What fails is marked again, unless it has moved on.
func (c *committer) flush(ctx context.Context) {
	c.busy.Lock()
	defer c.busy.Unlock()
	c.mu.Lock()
	batch := maps.Clone(c.marked)
	clear(c.marked)
	c.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	failpoint.Here(failpoint.BeforeOffsetCommit)
	err := c.commit(ctx, batch)
	c.failing(err)
	if err == nil {
		failpoint.Here(failpoint.AfterOffsetCommit)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, next := range batch {
		if _, moved := c.marked[p]; !moved && c.owned[p] {
			c.marked[p] = next
		}
	}
}
