package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/pace"
	"projector/internal/topic"
	"projector/projection"
)

const (
	// unconsumedEvery is the interval at which the positions of the partitions that other members of
	// the group own are compared with the ends of the logs.
	unconsumedEvery = 30 * time.Second
	// unconsumedAfter is how long a position with unread records must stay the same before this is
	// reported.
	unconsumedAfter = 5 * time.Minute
	// unconsumedGap is the longest time between two successful comparisons that counts towards
	// unconsumedAfter. After a longer outage of Kafka or PostgreSQL, the owner also needs time to go
	// on.
	unconsumedGap = 3 * unconsumedEvery
	// unconsumedCondition is the name of the warning about such a partition.
	unconsumedCondition = "partitions"
)

// unconsumed is a partition with unread records that this instance does not own.
type unconsumed struct {
	partition       int32
	position, fence int64
	since           time.Time // when it was first seen with this position and fence
	seen            time.Time // when a comparison last found it
}

// watchUnconsumed reports a partition whose records nobody consumes. For example, another program
// uses the name of this group, and Kafka gives it some of the partitions. Each instance is ready and
// has no lag, because it knows only the partitions that it owns. If the other program commits
// offsets, watchElsewhere may report it, too.
func (c *Consumer) watchUnconsumed(ctx context.Context) {
	defer c.cfg.Health.OK(unconsumedCondition) // the next client begins without warnings
	var (
		seen   []unconsumed
		warned bool
	)
	pace.Every(ctx, unconsumedEvery, watchWithin, func(ctx context.Context) {
		now, err := c.findUnconsumed(ctx)
		if err != nil {
			return // watchKafka, watchAccess and watchDatabase report what matters
		}
		seen = sinceFirstSeen(seen, now)
		warned = c.noteUnconsumed(seen, time.Now(), warned)
	})
}

// findUnconsumed returns the partitions with unread records that this instance does not own. A
// partition that was stopped or paused is left out, because its status says why it is not consumed.
func (c *Consumer) findUnconsumed(ctx context.Context) ([]unconsumed, error) {
	stored, err := c.cfg.Database.Positions(ctx)
	if err != nil {
		return nil, err
	}
	starts, err := topic.Offsets(ctx, c.cfg.Topic, c.adm.ListStartOffsets)
	if err != nil {
		return nil, err
	}
	ends, err := topic.Offsets(ctx, c.cfg.Topic, c.adm.ListCommittedOffsets)
	if err != nil {
		return nil, err
	}
	return c.unconsumed(stored, starts, ends), nil
}

func (c *Consumer) unconsumed(stored []projection.StoredPosition, starts, ends map[int32]kadm.ListedOffset) (found []unconsumed) {
	positions := projection.ByPartition(stored)
	now := time.Now()
	for partition, end := range ends {
		start, known := starts[partition]
		if !known || start.Err != nil || end.Err != nil || c.worker(partition) != nil {
			continue
		}
		u := unconsumed{partition: partition, position: start.Offset, since: now, seen: now}
		if p := positions[partition]; p != nil {
			if !p.Continues() {
				continue
			}
			u.position, u.fence = p.Next, p.Fence
		}
		if u.position < end.Offset {
			found = append(found, u)
		}
	}
	return found
}

// sinceFirstSeen returns the partitions in now. If a partition had the same position and fence shortly
// before, it keeps the time at which it was first seen so. Each claim changes the fence, so an owner
// whose writes fail is not reported by the others.
func sinceFirstSeen(before, now []unconsumed) []unconsumed {
	for i := range now {
		for _, b := range before {
			if u := &now[i]; b.partition == u.partition && b.position == u.position && b.fence == u.fence &&
				u.seen.Sub(b.seen) <= unconsumedGap {
				u.since = b.since
			}
		}
	}
	return now
}

// noteUnconsumed warns about the first of the partitions that has not been consumed for long. It
// reports whether there is one.
func (c *Consumer) noteUnconsumed(seen []unconsumed, now time.Time, warned bool) (warns bool) {
	var first unconsumed
	for _, u := range seen {
		if now.Sub(u.since) >= unconsumedAfter && (!warns || u.partition < first.partition) {
			first, warns = u, true
		}
	}
	reason := ""
	if warns {
		reason = fmt.Sprintf("partition %d has records from offset %d on that have not been processed for more than %s, and this instance does not own it. "+
			"If no instance reports the cause, a program that is not projector may be a member of group %s",
			first.partition, first.position, unconsumedAfter, c.cfg.Group)
	}
	if c.noteWarning(unconsumedCondition, reason, warned) {
		c.cfg.Log.Warn("a partition is not consumed", slog.String("reason", reason))
	}
	return warns
}
