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

// topicInfo caches Kafka's answers about the topic, because after a rebalance many workers ask at
// the same time.
type topicInfo struct {
	mu      sync.Mutex
	asked   time.Time // time of the requests
	id      string
	starts  kadm.ListedOffsets
	ends    kadm.ListedOffsets
	stable  kadm.ListedOffsets // last stable offsets, where known
	missing error              // why some starts and ends are not known
}

// partitionInfo is Kafka's answer about a partition: the topic's id, the first offset, and the
// offset after the last record, even if that record is not committed.
type partitionInfo struct {
	id         string
	start, end int64
	epoch      int32 // current leader epoch; projection.NoEpoch if not known
	stable     int64 // last stable offset; projection.NoOffset if not known
}

// infoAge is how old a cached answer may be.
const infoAge = time.Second

// partitionInfo returns Kafka's answer about the partition p. The answer is at most infoAge old.
// One request covers all partitions. If the leader of a partition does not answer, only that
// partition fails.
func (c *Consumer) partitionInfo(ctx context.Context, p int32) (partitionInfo, error) {
	return c.partitionInfoSince(ctx, p, time.Now().Add(-infoAge))
}

// partitionInfoSince is like partitionInfo, but the answer is not older than the time since.
func (c *Consumer) partitionInfoSince(ctx context.Context, p int32, since time.Time) (partitionInfo, error) {
	t := &c.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, watchWithin) // because other workers wait for the lock
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
	// The partition is new, so the answers do not have it. The next call asks again.
	t.asked = time.Time{}
	return partitionInfo{}, kerr.UnknownTopicOrPartition
}

func (t *topicInfo) ask(ctx context.Context, adm *kadm.Client, topic string) error {
	now := time.Now()
	topics, err := adm.ListTopics(ctx, topic)
	if err == nil {
		err = topics[topic].Err
	}
	if err != nil {
		return err
	}
	// All requests run at the same time, because a leader that does not answer must not delay the
	// answers of others.
	var (
		starts, ends, stable kadm.ListedOffsets
		noStarts, noEnds     error
		all                  sync.WaitGroup
	)
	all.Go(func() { starts, noStarts = adm.ListStartOffsets(ctx, topic) })
	all.Go(func() { ends, noEnds = adm.ListEndOffsets(ctx, topic) })
	// An error is ignored, because watchLag asks again.
	all.Go(func() { stable, _ = adm.ListCommittedOffsets(ctx, topic) })
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

// allMissing reports whether err means that no leader has answered.
func allMissing(err error) bool {
	var some *kadm.ShardErrors
	return err != nil && (!errors.As(err, &some) || some.AllFailed)
}

// epochEnd asks for the offset after the last record of a leader epoch, or of an earlier epoch if
// this one has no records. It returns projection.NoOffset if the brokers do not know the offset. An
// error may be retried.
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
		return projection.NoOffset, nil // the broker does not know the epoch, or not this request
	}
	return 0, err
}
