package consumer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// topicInfo caches what Kafka says of the topic: a rebalance makes many workers
// ask at once.
type topicInfo struct {
	mu      sync.Mutex
	asked   time.Time
	id      string
	starts  kadm.ListedOffsets
	missing error // why some of them are not known
}

// partitionInfo is what Kafka says of a partition: the topic's id and the first offset.
type partitionInfo struct {
	id    string
	start int64
}

// partitionInfo asks for all partitions at once. One that has no leader, or whose leader
// is away, is an error of its own and not of the others.
func (c *Consumer) partitionInfo(ctx context.Context, p int32) (partitionInfo, error) {
	t := &c.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, watchWithin) // the others wait for the lock
	defer cancel()
	if time.Since(t.asked) > time.Second {
		topics, err := c.adm.ListTopics(ctx, c.cfg.Topic)
		if err != nil {
			return partitionInfo{}, err
		}
		if err := topics[c.cfg.Topic].Err; err != nil {
			return partitionInfo{}, err
		}
		t.starts, t.missing = c.adm.ListStartOffsets(ctx, c.cfg.Topic)
		var some *kadm.ShardErrors
		if t.missing != nil && (!errors.As(t.missing, &some) || some.AllFailed) {
			return partitionInfo{}, t.missing
		}
		t.id, t.asked = topics[c.cfg.Topic].ID.String(), time.Now()
	}
	start, known := t.starts.Lookup(c.cfg.Topic, p)
	switch {
	case known:
		return partitionInfo{t.id, start.Offset}, start.Err
	case t.missing != nil:
		return partitionInfo{}, t.missing
	}
	t.asked = time.Time{} // made since
	return partitionInfo{}, kerr.UnknownTopicOrPartition
}
