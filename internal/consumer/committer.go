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
	"projector/internal/pace"
)

// committer commits offsets to Kafka, after the transactions. There is only one committer, so
// commits never overtake each other. It stores which partitions this member owns, because after a
// cooperative rebalance Kafka would accept a commit for a lost partition, and the group's offset
// would move back.
//
// Only the member id that claimed a partition may commit for it. A member that is evicted during a
// rebalance joins again with another id, but its partitions are not revoked. Other members may have
// owned these partitions meanwhile, so the member has to claim them again.
type committer struct {
	commit   func(ctx context.Context, member string, offsets map[int32]int64) error
	member   func() string         // returns the current member id of this process
	evicted  func(partition int32) // called for a partition that was claimed with another member id
	failing  func(error)
	interval time.Duration
	timeout  time.Duration

	mu     sync.Mutex       // guards owned and marked
	owned  map[int32]string // member id at the claim, by partition
	marked map[int32]int64  // offset that is durable in PostgreSQL, not yet committed, by partition
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

func (c *committer) acceptMarks(partition int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owned[partition] = ""
}

// claimed stores the member id with which the partition was claimed. It drops offsets that were
// marked before the claim.
func (c *committer) claimed(partition int32, member string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, owned := c.owned[partition]; owned {
		c.owned[partition] = member
		delete(c.marked, partition)
	}
}

// disown commits the marked offsets of the partitions. After that, mark ignores these partitions.
// If lost is true, nothing is committed.
func (c *committer) disown(ctx context.Context, partitions []int32, lost bool) {
	if !lost {
		c.flush(ctx)
	}
	c.busy.Lock() // waits for a running commit, which must end first
	defer c.busy.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range partitions {
		delete(c.owned, p)
		delete(c.marked, p)
	}
}

// mark stores the offset next for the next commit. Everything before this offset is durable in
// PostgreSQL.
func (c *committer) mark(partition int32, next int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, owned := c.owned[partition]; owned {
		c.marked[partition] = next
	}
}

// confirm commits an offset immediately, for example one that is already committed. The commit
// shows whether this member still owns the partition. Kafka accepts such a commit only from a
// member of the group's current generation.
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

// errGivenUp is returned by confirm if this member no longer owns the partition.
var errGivenUp = errors.New("the partition was given up")

// errOtherMember means that this process has a new member id, so a commit with the old id is not
// sent.
var errOtherMember = errors.New("evicted from the group meanwhile")

// run commits at a fixed interval until ctx ends.
func (c *committer) run(ctx context.Context) {
	// The deadline of Every is not used. A flush may first wait for other commits. Its own timeout
	// begins after that.
	pace.Every(ctx, c.interval, c.timeout, func(context.Context) { c.flush(ctx) })
}

// flush commits the marked offsets. If the commit fails, flush marks the same offsets again, except
// for partitions that were meanwhile marked, given up or claimed with another member id.
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

// collect removes all marks. It returns the marks of the partitions that were claimed with this
// member id, and the other marked partitions.
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

// A stop may take 10 s. Config.DrainWithin limits the last flush, and the constants in this block
// limit the other steps. When a broker does not answer, a call of the client may not return when
// its context ends. So each step has a time limit. After the limit, the next step begins. A step
// that was abandoned has no effect later, because its context has ended or the client is closed.
const (
	// lastCommitWithin limits the time of the last commit.
	lastCommitWithin = time.Second
	// leaveWithin limits the time in which the client may leave the group. After that, a separate
	// connection has the same time to remove the member from the group.
	leaveWithin = time.Second
	// abandonAfter is how long a stop waits for a task whose context has ended.
	abandonAfter = 200 * time.Millisecond
)

// patiently calls fn. It returns when fn has returned, but at the latest after the duration within.
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

// shutDown stops all workers, commits and leaves the group. The channel left is closed when the
// client is closed.
func (c *Consumer) shutDown() (left <-chan struct{}) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.cfg.DrainWithin, errors.New("shutting down"))
	defer cancel()
	patiently(func() { c.release(ctx, c.assignment(), false) }, c.cfg.DrainWithin+lastCommitWithin)
	return c.leave()
}

// leave leaves the group and closes the client.
//
// A join lasts until all members have joined or the dead members have timed out. During a join, the
// client cannot leave, because it uses the same connection for both. A stop must not wait that
// long. So the client is closed, and a separate connection removes the member from the group.
// Otherwise, the next rebalance would wait until this member's session times out.
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

// leaveFor removes a member from the group, with a separate client.
func (c *Consumer) leaveFor(ctx context.Context, member string) error {
	cl, err := kgo.NewClient(c.cfg.Client...)
	if err != nil {
		return err
	}
	defer cl.Close()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = c.cfg.Group, member // for old brokers; new ones read Members
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
