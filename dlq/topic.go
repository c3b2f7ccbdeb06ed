package dlq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	configMaxMessageBytes = "max.message.bytes"
	configCleanupPolicy   = "cleanup.policy"

	// addedHeaderBytes is room for the headers a dead letter has more than its
	// original, so that the largest record of the source still fits whole.
	addedHeaderBytes = 64 << 10

	brokerDefault = -1
)

// EnsureTopic creates the DLQ topic when it is missing: with as many partitions
// as the source topic, the broker's default replication factor (the source's
// where the broker has none), and room for the source's largest record. A topic
// that exists is left as it is.
//
// An error for a missing grant names the topic, the grant and the way without
// it. Every error is worth another try.
func EnsureTopic(ctx context.Context, adm *kadm.Client, dlqTopic, sourceTopic string) error {
	_, exists, err := describeTopic(ctx, adm, dlqTopic)
	if err != nil || exists {
		return err
	}
	source, exists, err := describeTopic(ctx, adm, sourceTopic)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("topic %q does not exist: without it the number of partitions of %q is not known",
			sourceTopic, dlqTopic)
	}
	err = createLike(ctx, adm, dlqTopic, source)
	switch {
	case err == nil, errors.Is(err, kerr.TopicAlreadyExists): // another instance was faster
		return nil
	case unauthorized(err):
		return fmt.Errorf("missing ACL: CREATE on topic %s: grant it, "+
			"or create the topic beforehand with %d partitions: %w", dlqTopic, len(source.Partitions), err)
	default:
		return fmt.Errorf("create topic %q: %w", dlqTopic, err)
	}
}

// describeTopic returns what the brokers know of topic and whether it exists.
func describeTopic(ctx context.Context, adm *kadm.Client, topic string) (kadm.TopicDetail, bool, error) {
	details, err := firstAnswer(ctx, func(ctx context.Context) (kadm.TopicDetails, error) {
		return adm.ListTopics(ctx, topic)
	})
	detail := details[topic]
	if err == nil {
		err = detail.Err
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return kadm.TopicDetail{}, false, nil
	case unauthorized(err):
		return kadm.TopicDetail{}, false, fmt.Errorf("missing ACL: DESCRIBE on topic %s: %w", topic, err)
	case err != nil:
		return kadm.TopicDetail{}, false, fmt.Errorf("describe topic %q: %w", topic, err)
	}
	return detail, true, nil
}

const (
	askAnother = time.Second // a broker that is well has answered by then
	askAtMost  = 6
)

// firstAnswer asks, and asks again beside that while nothing is answered: each question goes
// to the next broker. A frozen one takes a connection and keeps it, and the client waits for
// that one alone.
func firstAnswer[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, askAtMost)
	again := time.NewTicker(askAnother)
	defer again.Stop()
	asked, waited := 0, 0
	for {
		if asked < askAtMost {
			asked++
			go func() {
				value, err := ask(ctx)
				answers <- answer{value, err}
			}()
		}
		select {
		case a := <-answers:
			waited++
			if !timedOut(a.err) || ctx.Err() != nil || waited == askAtMost {
				return a.value, a.err
			}
		case <-again.C:
		}
	}
}

// timedOut reports whether a broker could not be reached in time.
func timedOut(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

func createLike(ctx context.Context, adm *kadm.Client, dlqTopic string, source kadm.TopicDetail) error {
	partitions := int32(len(source.Partitions)) //nolint:gosec // Kafka counts them in an int32
	configs := configsLike(ctx, adm, source.Topic)
	_, err := adm.CreateTopic(ctx, partitions, brokerDefault, configs, dlqTopic)
	if errors.Is(err, kerr.InvalidReplicationFactor) || errors.Is(err, kerr.UnsupportedVersion) {
		replicas := int16(source.Partitions.NumReplicas()) //nolint:gosec // Kafka counts them in an int16
		_, err = adm.CreateTopic(ctx, partitions, replicas, configs, dlqTopic)
	}
	return err
}

// configsLike are the settings of the new topic. Compaction would throw evidence
// away, and refuses records without a key. The size limit is the source's when it
// can be read, else the broker's default: a larger record is cut, not lost.
func configsLike(ctx context.Context, adm *kadm.Client, source string) map[string]*string {
	configs := map[string]*string{configCleanupPolicy: new("delete")}
	described, err := adm.DescribeTopicConfigs(ctx, source)
	if err != nil {
		return configs
	}
	resource, err := described.On(source, nil)
	if err != nil || resource.Err != nil {
		return configs
	}
	for _, c := range resource.Configs {
		if limit, err := strconv.ParseInt(c.MaybeValue(), 10, 32); c.Key == configMaxMessageBytes && err == nil {
			limit = min(limit+addedHeaderBytes, math.MaxInt32)
			configs[configMaxMessageBytes] = new(strconv.FormatInt(limit, 10))
		}
	}
	return configs
}

func unauthorized(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

// extentsWithin bounds the question how far the logs reach. The client asks a leader that
// is away again and again, and the other partitions must not wait for that.
const extentsWithin = 10 * time.Second

// Extents is how far the logs of a topic's partitions reach.
type Extents struct {
	TopicID    string
	Partitions []Extent // in order
}

// Extent is how far the log of one partition reaches.
type Extent struct {
	Partition int32
	Start     int64 // the first offset there is
	// End is the last stable offset: behind it a transaction is open, and waiting for it
	// may take for ever.
	End int64
	// Err says why neither is known; nil when both are.
	Err *PartitionError
}

// Extents asks the brokers how far the logs of the topic reach. A partition that cannot be
// asked has an error of its own: the others are known. exists is false when there is no
// such topic.
func (r *Reader) Extents(ctx context.Context) (all Extents, exists bool, err error) {
	asking, cancel := context.WithTimeout(ctx, extentsWithin)
	defer cancel()
	topic, exists, err := describeTopic(asking, r.adm, r.topic)
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

// extent is what is known of a partition.
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
	e.End = max(e.Start, ends[partition.Partition].Offset)
	return e
}

type lister func(context.Context, ...string) (kadm.ListedOffsets, error)

// listed returns offsets by partition, with the reason for each that cannot be had; none
// for a topic that does not exist.
func (r *Reader) listed(ctx context.Context, list lister) (map[int32]kadm.ListedOffset, error) {
	all, err := list(ctx, r.topic)
	offsets := all[r.topic]
	var some *kadm.ShardErrors
	if errors.As(err, &some) {
		offsets, err = r.withFailures(offsets, some.Errs), nil
	}
	if whole, is := offsets[-1]; is && err == nil { // of the topic as a whole
		err = whole.Err
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list offsets of topic %q: %w", r.topic, r.explain(err))
	}
	return offsets, nil
}

// withFailures adds the partitions whose leaders have not answered.
func (r *Reader) withFailures(offsets map[int32]kadm.ListedOffset, failed []kadm.ShardError) map[int32]kadm.ListedOffset {
	complete := make(map[int32]kadm.ListedOffset, len(offsets)+len(failed))
	maps.Copy(complete, offsets)
	for _, part := range failed {
		request, is := part.Req.(*kmsg.ListOffsetsRequest)
		if !is {
			continue
		}
		for _, topic := range request.Topics {
			for _, p := range topic.Partitions {
				complete[p.Partition] = kadm.ListedOffset{Topic: r.topic, Partition: p.Partition, Err: part.Err}
			}
		}
	}
	return complete
}
