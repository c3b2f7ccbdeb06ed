package topic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// extentsWithin limits the time for reading the start and the end of all logs. The client retries
// while a leader is down, and the other partitions must not wait for that leader longer than this
// time.
const extentsWithin = 10 * time.Second

// Extents has the start and end of the log of each partition of a topic.
type Extents struct {
	TopicID    string
	Partitions []Extent // sorted by partition number
}

// Of returns the extent of a partition. It returns false if the topic does not have the partition.
func (e *Extents) Of(partition int32) (Extent, bool) {
	for _, one := range e.Partitions {
		if one.Partition == partition {
			return one, true
		}
	}
	return Extent{}, false
}

// Extent is the start and end of the log of one partition.
type Extent struct {
	Partition int32
	Start     int64 // the first offset in the log
	// End is the last stable offset. Records at later offsets may belong to an open transaction.
	End   int64
	Epoch int32 // the leader's epoch, which no record before End exceeds; projection.NoEpoch if not known
	// Err is the reason why Start and End are not known, or nil.
	Err *PartitionError
}

// Extents reads the start and end of the topic's logs. If the leader of a partition does not
// answer, only this partition has an error. The result exists is false if the topic does not exist.
func (r *Reader) Extents(ctx context.Context) (all Extents, exists bool, err error) {
	asking, cancel := context.WithTimeout(ctx, extentsWithin)
	defer cancel()
	topic, exists, err := Describe(asking, r.adm, r.topic)
	if err != nil || !exists {
		return Extents{}, false, r.explain(err)
	}
	var (
		starts, ends       map[int32]kadm.ListedOffset
		startsErr, endsErr error
		both               sync.WaitGroup
	)
	both.Go(func() { starts, startsErr = r.listed(asking, r.adm.ListStartOffsets) })
	both.Go(func() { ends, endsErr = r.listed(asking, r.adm.ListCommittedOffsets) })
	both.Wait()
	if ctx.Err() != nil {
		return Extents{}, true, context.Cause(ctx)
	}
	if err := errors.Join(startsErr, endsErr); err != nil {
		return Extents{}, true, err
	}
	all.TopicID = topic.ID.String()
	for _, number := range slices.Sorted(maps.Keys(topic.Partitions)) {
		all.Partitions = append(all.Partitions, r.extent(topic.Partitions[number], starts, ends))
	}
	return all, true, nil
}

// extent makes the Extent of a partition from the brokers' answers. If an answer is missing or is
// an error, the Extent has an error.
func (r *Reader) extent(partition kadm.PartitionDetail, starts, ends map[int32]kadm.ListedOffset) Extent {
	e := Extent{Partition: partition.Partition}
	err := partition.Err
	for _, listed := range []map[int32]kadm.ListedOffset{starts, ends} {
		offset, answered := listed[partition.Partition]
		switch {
		case err != nil:
		case !answered:
			err = errNotAnswered
		default:
			err = offset.Err
		}
	}
	if err != nil {
		e.Err = r.unreadable(partition, partition.Partition, err)
		return e
	}
	e.Start = starts[partition.Partition].Offset
	e.End, e.Epoch = max(e.Start, ends[partition.Partition].Offset), ends[partition.Partition].LeaderEpoch
	return e
}

// lister is a method of kadm.Client that lists offsets.
type lister func(context.Context, ...string) (kadm.ListedOffsets, error)

func (r *Reader) listed(ctx context.Context, list lister) (map[int32]kadm.ListedOffset, error) {
	offsets, err := Offsets(ctx, r.topic, list)
	if err != nil {
		return nil, fmt.Errorf("list offsets of topic %q: %w", r.topic, r.explain(err))
	}
	return offsets, nil
}

// Offsets returns the offsets that list returns for a topic, by partition. A partition whose leader
// has not answered has an error. The map is empty for a topic that does not exist.
func Offsets(ctx context.Context, topic string, list lister) (map[int32]kadm.ListedOffset, error) {
	all, err := list(ctx, topic)
	offsets := all[topic]
	if some, is := errors.AsType[*kadm.ShardErrors](err); is {
		offsets, err = withFailures(topic, offsets, some.Errs), nil
	}
	if whole, is := offsets[-1]; is && err == nil { // partition -1 has an error of the whole topic
		err = whole.Err
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, nil
	}
	return offsets, err
}

// withFailures adds errors for the partitions whose leaders have not answered.
func withFailures(name string, offsets map[int32]kadm.ListedOffset, failed []kadm.ShardError) map[int32]kadm.ListedOffset {
	complete := make(map[int32]kadm.ListedOffset, len(offsets)+len(failed))
	maps.Copy(complete, offsets)
	for _, part := range failed {
		request, is := part.Req.(*kmsg.ListOffsetsRequest)
		if !is {
			continue
		}
		for _, topic := range request.Topics {
			for _, p := range topic.Partitions {
				complete[p.Partition] = kadm.ListedOffset{Topic: name, Partition: p.Partition, Err: part.Err}
			}
		}
	}
	return complete
}
