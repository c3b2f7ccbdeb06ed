package consumer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/errclass"
	"projector/internal/failpoint"
)

// committer commits offsets to Kafka, after the transactions. There is only one, so a commit never
// overtakes another. It knows which partitions are owned: after a cooperative rebalance, Kafka would
// accept a commit for a lost partition, and the group would go back.
//
// Only the member that claimed a partition commits it. A member that is evicted during a rebalance
// joins again with another id, and its partitions are not revoked. Other members may have owned them
// meanwhile, so it has to claim them again.
type committer struct {
	commit   func(ctx context.Context, member string, offsets map[int32]int64) error
	member   func() string         // current member id of this process
	evicted  func(partition int32) // called if the partition was claimed with another id
	failing  func(error)
	interval time.Duration
	timeout  time.Duration

	mu     sync.Mutex       // guards the maps
	owned  map[int32]string // member id of the claim
	marked map[int32]int64  // durable and not committed yet
	busy   sync.Mutex       // held during a commit
}

func newCommitter(commit func(context.Context, string, map[int32]int64) error, failing func(error)) *committer {
	return &committer{
		commit: commit, failing: failing,
		member: func() string { return "" }, evicted: func(int32) {},
		interval: 500 * time.Millisecond, timeout: 5 * time.Second,
		owned: map[int32]string{}, marked: map[int32]int64{},
	}
}

// own starts to accept marks for a partition.
func (c *committer) own(partition int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owned[partition] = ""
}

// claimed stores the member id of the claim. Marks from before the claim are dropped.
func (c *committer) claimed(partition int32, member string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, owned := c.owned[partition]; owned {
		c.owned[partition] = member
		delete(c.marked, partition)
	}
}

// disown commits the marks of the partitions and accepts no more. If lost is true, it commits
// nothing.
func (c *committer) disown(ctx context.Context, partitions []int32, lost bool) {
	if !lost {
		c.flush(ctx)
	}
	c.busy.Lock() // waits for a running commit, which must not outlive the ownership
	defer c.busy.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range partitions {
		delete(c.owned, p)
		delete(c.marked, p)
	}
}

// mark stores that everything before next is durable.
func (c *committer) mark(partition int32, next int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, owned := c.owned[partition]; owned {
		c.marked[partition] = next
	}
}

// confirm commits an offset that is already committed. Kafka accepts that only from a member of the
// group's current generation.
func (c *committer) confirm(ctx context.Context, partition int32, member string, next int64) error {
	c.busy.Lock()
	defer c.busy.Unlock()
	c.mu.Lock()
	_, owned := c.owned[partition]
	c.mu.Unlock()
	if !owned {
		return errGivenUp
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.commit(ctx, member, map[int32]int64{partition: next})
}

// errGivenUp means that the partition is no longer owned.
var errGivenUp = errors.New("the partition was given up")

// errOtherMember means that this process has a new member id.
var errOtherMember = errors.New("evicted from the group meanwhile")

// run commits at a fixed interval until ctx ends.
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

// flush commits the marks. After a failure it marks the offsets again, unless there are newer marks.
func (c *committer) flush(ctx context.Context) {
	c.busy.Lock()
	defer c.busy.Unlock()
	member := c.member()
	batch, others := c.collect(member)
	for _, p := range others {
		c.evicted(p)
	}
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	failpoint.Here(failpoint.BeforeOffsetCommit)
	err := c.commit(ctx, member, batch)
	c.failing(err)
	if err == nil {
		failpoint.Here(failpoint.AfterOffsetCommit)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, next := range batch {
		if id, owned := c.owned[p]; owned && id == member && c.unmarked(p) {
			c.marked[p] = next
		}
	}
}

// collect returns the marks of partitions claimed with this member id, and the partitions that have
// to be claimed again.
func (c *committer) collect(member string) (batch map[int32]int64, others []int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch = map[int32]int64{}
	for p, next := range c.marked {
		if c.owned[p] == member {
			batch[p] = next
		} else {
			others = append(others, p)
		}
	}
	clear(c.marked)
	return batch, others
}

func (c *committer) unmarked(partition int32) bool {
	_, marked := c.marked[partition]
	return !marked
}

// A stop may take 10 s: DrainWithin for flushing, and the times here for the other steps.
// When a broker is silent, a call of the client may not return when its context ends. So each
// step has a time limit, and the next step follows. A step that was abandoned can do nothing
// more: its context has ended, or the client is cut off.
const (
	// lastCommitWithin is how long the last commit may take.
	lastCommitWithin = time.Second
	// leaveWithin bounds how long the client may take to leave the group. Another connection then
	// has the same time to leave for it.
	leaveWithin = time.Second
	// abandonAfter is how long to wait for a task after its context has ended.
	abandonAfter = 200 * time.Millisecond
)

// patiently calls fn. It returns when fn has returned or the time is over.
func patiently(fn func(), within time.Duration) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fn()
	}()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// shutDown drains all workers, commits and leaves the group. The channel is closed when the
// client is closed.
func (c *Consumer) shutDown() (left <-chan struct{}) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.cfg.DrainWithin, errors.New("shutting down"))
	defer cancel()
	patiently(func() { c.release(ctx, c.assignment(), false) }, c.cfg.DrainWithin+lastCommitWithin)
	return c.leave()
}

// leave leaves the group and closes the client.
//
// A join lasts until the whole group has joined or its dead members have timed out. The client
// can leave only after that, because it uses the same connection. A stop must not wait so
// long. So the client is cut off, and another connection leaves the group for it. Without
// that, the next rebalance would wait until this member's session times out.
func (c *Consumer) leave() <-chan struct{} {
	left := make(chan struct{})
	go func() {
		c.cl.CloseAllowingRebalance()
		close(left)
	}()
	select {
	case <-left:
		return left
	case <-time.After(leaveWithin):
	}
	member, _ := c.cl.GroupMetadata()
	c.cutOff()
	patiently(func() { <-left }, abandonAfter)
	if member == "" {
		return left
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- c.leaveFor(ctx, member) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.cfg.Log.Warn("could not leave the group: it waits until the session of this member times out",
			slog.Duration("session_timeout", c.cfg.SessionTimeout), slog.String("error", errclass.Safe(err)))
	}
	return left
}

// leaveFor removes a member from the group, on a separate connection.
func (c *Consumer) leaveFor(ctx context.Context, member string) error {
	cl, err := kgo.NewClient(c.cfg.Client...)
	if err != nil {
		return err
	}
	defer cl.Close()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = c.cfg.Group, member // old brokers read these, new ones Members
	leaving := kmsg.NewLeaveGroupRequestMember()
	leaving.MemberID = member
	req.Members = append(req.Members, leaving)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return err
	}
	for _, m := range resp.Members {
		if err := kerr.ErrorForCode(m.ErrorCode); err != nil {
			return err
		}
	}
	return nil
}
