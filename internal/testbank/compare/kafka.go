// Package compare reads the results of a projector from PostgreSQL, from the DLQ topic and from
// Kafka's committed offsets. It compares them with the oracle, which computes the expected results.
// Like the oracle, it shares no code with the projector.
package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/testbank"
)

// Ends returns the end offsets of a topic's partitions. The map is empty if there is no such topic. If
// the offset of one partition cannot be read, Ends returns an error.
func Ends(ctx context.Context, admin *kadm.Client, topic string) (map[int32]int64, error) {
	listed, err := admin.ListEndOffsets(ctx, topic)
	return offsets(listed, topic, err)
}

// Starts returns the first offsets of a topic's partitions, like Ends.
func Starts(ctx context.Context, admin *kadm.Client, topic string) (map[int32]int64, error) {
	listed, err := admin.ListStartOffsets(ctx, topic)
	return offsets(listed, topic, err)
}

func offsets(listed kadm.ListedOffsets, topic string, err error) (map[int32]int64, error) {
	found := map[int32]int64{}
	for partition, o := range listed[topic] {
		switch {
		case errors.Is(o.Err, kerr.UnknownTopicOrPartition): // the topic does not exist
		case o.Err != nil:
			err = cmp.Or(err, o.Err)
		default:
			found[partition] = o.Offset
		}
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", topic, err)
	}
	return found, nil
}

// Committed returns the group's committed offsets in Kafka.
func (w Reader) Committed(ctx context.Context, admin *kadm.Client) (map[int32]int64, error) {
	offsets, err := admin.FetchOffsets(ctx, w.Group)
	if err != nil {
		return nil, fmt.Errorf("committed offsets: %w", err)
	}
	committed := map[int32]int64{}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == w.Topic {
			committed[o.Partition] = o.At
		}
	})
	return committed, nil
}

// ReadTopic returns all committed records of a topic, in the order of each partition. opts are the
// options for the connection.
func ReadTopic(ctx context.Context, topic string, opts ...kgo.Opt) ([]testbank.Record, error) {
	plain, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topic, err)
	}
	defer plain.Close()
	admin := kadm.NewClient(plain)
	starts, err := Starts(ctx, admin, topic)
	if err != nil {
		return nil, err
	}
	ends, err := Ends(ctx, admin, topic)
	if err != nil {
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	for p, end := range ends {
		if starts[p] < end {
			from[p] = kgo.NewOffset().At(starts[p])
		}
	}
	if len(from) == 0 {
		return nil, nil
	}
	client, err := kgo.NewClient(append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topic, err)
	}
	defer client.Close()
	var records []testbank.Record
	for len(from) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() && r.Offset < ends[r.Partition] {
				records = append(records, FromKafka(r))
			}
			if r.Offset+1 >= ends[r.Partition] {
				delete(from, r.Partition)
			}
		})
	}
	return records, nil
}

// FromKafka converts a record for the oracle.
func FromKafka(r *kgo.Record) testbank.Record {
	record := testbank.Record{
		Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value,
	}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, testbank.Header{Key: h.Key, Value: h.Value})
	}
	return record
}
