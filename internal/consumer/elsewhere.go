package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/pace"
	"projector/projection"
)

const (
	// elsewhereEvery is the interval at which Kafka's committed offsets are compared with the
	// positions of the partitions that other members of the group own.
	elsewhereEvery = 30 * time.Second
	// elsewhereAfter is how long a committed offset must be ahead of the position before this is
	// reported. The owner of a partition needs some time after the database was restored.
	elsewhereAfter = 2 * time.Minute
	// elsewhereCondition is the name of the warning about another database.
	elsewhereCondition = "group"
)

// elsewhere is a partition whose committed offset is ahead of the position in the database. An
// instance commits an offset only when the position is durable. So the instance that committed this
// offset writes to another database.
type elsewhere struct {
	partition           int32
	position, committed int64
	topicID             string // of the position; empty if there is none
}

// watchElsewhere reports another instance of the group that writes to another database. Kafka
// divides the partitions between the two, and both read models are incomplete. Each instance is
// ready and has no lag, because it knows only the partitions that it owns.
func (c *Consumer) watchElsewhere(ctx context.Context) {
	defer c.cfg.Health.OK(elsewhereCondition) // the next client begins without warnings
	var (
		since  time.Time
		warned bool
	)
	pace.Every(ctx, elsewhereEvery, watchWithin, func(ctx context.Context) {
		found, is, err := c.findElsewhere(ctx)
		if err != nil {
			return // watchKafka, watchAccess and watchDatabase report what matters
		}
		switch {
		case !is:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		long := is && time.Since(since) >= elsewhereAfter
		c.noteElsewhere(found, long, warned)
		warned = long
	})
}

// findElsewhere returns a partition that an instance with another database has consumed. An instance
// that owns no partition checks this, too. The instance with the other database may own all of them.
func (c *Consumer) findElsewhere(ctx context.Context) (found elsewhere, is bool, err error) {
	// The committed offsets come first. Otherwise, an instance could write a position and commit its
	// offset between the two answers.
	committed, err := c.adm.FetchOffsets(ctx, c.cfg.Group)
	if err != nil {
		return elsewhere{}, false, err
	}
	stored, err := c.cfg.Database.Positions(ctx)
	if err != nil {
		return elsewhere{}, false, err
	}
	if found, is = c.elsewhere(committed, stored); is {
		log, err := c.partitionInfo(ctx, found.partition)
		if err != nil { // it is not known, so the last answer counts
			return elsewhere{}, false, err
		}
		is = projection.SameTopic(log.id, found.topicID)
	}
	return found, is, nil
}

// elsewhere returns the first partition that an instance with another database has consumed. It
// checks only partitions that this instance does not own.
func (c *Consumer) elsewhere(committed kadm.OffsetResponses, stored []projection.StoredPosition) (elsewhere, bool) {
	positions := projection.ByPartition(stored)
	for _, offset := range committed.Sorted() {
		if offset.Topic != c.cfg.Topic || offset.Err != nil || c.worker(offset.Partition) != nil {
			continue
		}
		e := elsewhere{partition: offset.Partition, committed: offset.At}
		if p := positions[offset.Partition]; p != nil {
			// A person may have changed the committed offset of a partition that does not run. A
			// position that a person has set is not committed until a member owns the partition.
			if !p.Continues() || p.SetByHand {
				continue
			}
			e.position, e.topicID = p.Next, p.TopicID
		}
		if e.committed > e.position {
			return e, true
		}
	}
	return elsewhere{}, false
}

func (c *Consumer) noteElsewhere(e elsewhere, is, warned bool) {
	reason := ""
	if is {
		reason = fmt.Sprintf("partition %d is consumed up to %d by an instance of group %s that writes to another database, where this one is at %d: "+
			"the instances of a group share the partitions, so both databases are incomplete. Give one of the two a --group (KAFKA_GROUP) of its own, "+
			"unless this database was just restored",
			e.partition, e.committed, c.cfg.Group, e.position)
	}
	if c.noteWarning(elsewhereCondition, reason, warned) {
		c.cfg.Log.Warn("the group writes to two databases", slog.String("reason", reason))
	}
}

// noteWarning warns about the whole instance, unless the reason is empty. The parameter warned says
// whether there was a warning before. It reports whether the warning begins.
func (c *Consumer) noteWarning(condition, reason string, warned bool) (begins bool) {
	switch {
	case reason != "":
		c.cfg.Health.Warn(condition, reason)
		return !warned
	case warned:
		c.cfg.Health.OK(condition)
	}
	return false
}
