package consumer

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"projector/errclass"
	"projector/projection"
)

// topicInfo caches what Kafka says of the topic: a rebalance makes many workers
// ask at once.
type topicInfo struct {
	mu      sync.Mutex
	asked   time.Time // not later than the answers
	id      string
	starts  kadm.ListedOffsets
	ends    kadm.ListedOffsets
	stable  kadm.ListedOffsets // the ends of what is committed, as far as they are known
	missing error              // why some starts and ends are not known
}

// partitionInfo is what Kafka says of a partition: the topic's id, the first offset and
// the one after the last record, committed or not.
type partitionInfo struct {
	id         string
	start, end int64
	epoch      int32 // the leader epoch that the log is in; projection.NoEpoch: not known
	stable     int64 // the end of what is committed; projection.NoOffset: not known
}

// infoAge is how old an answer may be where nothing depends on it being newer.
const infoAge = time.Second

// partitionInfo returns what Kafka says of partition p, at most infoAge old. All partitions
// are asked for at once. A partition without a leader that answers fails alone.
func (c *Consumer) partitionInfo(ctx context.Context, p int32) (partitionInfo, error) {
	return c.partitionInfoSince(ctx, p, time.Now().Add(-infoAge))
}

// partitionInfoSince returns no answer to a question older than since.
func (c *Consumer) partitionInfoSince(ctx context.Context, p int32, since time.Time) (partitionInfo, error) {
	t := &c.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, watchWithin) // the others wait for the lock
	defer cancel()
	if t.asked.Before(since) {
		if err := t.ask(ctx, c.adm, c.cfg.Topic); err != nil {
			return partitionInfo{}, err
		}
	}
	start, startKnown := t.starts.Lookup(c.cfg.Topic, p)
	end, endKnown := t.ends.Lookup(c.cfg.Topic, p)
	switch {
	case startKnown && endKnown:
		stable := projection.NoOffset
		if s, known := t.stable.Lookup(c.cfg.Topic, p); known && s.Err == nil {
			stable = s.Offset
		}
		return partitionInfo{t.id, start.Offset, end.Offset, end.LeaderEpoch, stable}, cmp.Or(start.Err, end.Err)
	case t.missing != nil:
		return partitionInfo{}, t.missing
	}
	t.asked = time.Time{} // made since
	return partitionInfo{}, kerr.UnknownTopicOrPartition
}

// ask asks for everything now.
func (t *topicInfo) ask(ctx context.Context, adm *kadm.Client, topic string) error {
	now := time.Now()
	topics, err := adm.ListTopics(ctx, topic)
	if err == nil {
		err = topics[topic].Err
	}
	if err != nil {
		return err
	}
	// At the same time, so that a leader that does not answer delays no other question.
	var (
		starts, ends, stable kadm.ListedOffsets
		noStarts, noEnds     error
		all                  sync.WaitGroup
	)
	all.Go(func() { starts, noStarts = adm.ListStartOffsets(ctx, topic) })
	all.Go(func() { ends, noEnds = adm.ListEndOffsets(ctx, topic) })
	all.Go(func() { stable, _ = adm.ListCommittedOffsets(ctx, topic) }) // watchLag asks again
	all.Wait()
	switch {
	case allMissing(noStarts):
		return noStarts
	case allMissing(noEnds):
		return noEnds
	}
	t.asked, t.id, t.missing = now, topics[topic].ID.String(), cmp.Or(noStarts, noEnds)
	t.starts, t.ends, t.stable = starts, ends, stable
	return nil
}

// allMissing reports whether err means that nothing was answered.
func allMissing(err error) bool {
	var some *kadm.ShardErrors
	return err != nil && (!errors.As(err, &some) || some.AllFailed)
}

// epochEnd asks where the records of a leader epoch end, and with them those of all
// before it; projection.NoOffset when that is not known. An error may pass.
func (c *Consumer) epochEnd(ctx context.Context, p, epoch int32) (int64, error) {
	var request kadm.OffsetForLeaderEpochRequest
	request.Add(c.cfg.Topic, p, epoch)
	ends, err := c.adm.OffsetForLeaderEpoch(ctx, request)
	end, answered := ends[c.cfg.Topic][p]
	switch {
	case answered:
		err = end.Err
	case err == nil:
		err = kerr.UnknownTopicOrPartition
	}
	switch {
	case err == nil && end.EndOffset >= 0:
		return end.EndOffset, nil
	case err == nil, errclass.Kafka(err) != errclass.Retry && ctx.Err() == nil:
		return projection.NoOffset, nil // an epoch, or a question, that the broker does not know
	}
	return 0, err
}
