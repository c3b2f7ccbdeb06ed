package rebuild

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/exit"
	"projector/internal/consumer"
	"projector/internal/retry"
	"projector/internal/topic"
	"projector/projection"
)

type topicSource struct {
	adm    *kadm.Client
	reader *topic.Reader
	topic  string
}

func newTopicSource(client *kgo.Client, name string) *topicSource {
	return &topicSource{adm: kadm.NewClient(client), reader: topic.NewReader(client, name), topic: name}
}

// Records implements rebuild.Source. A log that ends before the end of the range is an error.
// Otherwise an account whose events are missing would look as if it had never existed.
func (s *topicSource) Records(ctx context.Context, partition int32, from, to int64) iter.Seq2[projection.Record, error] {
	return func(yield func(projection.Record, error) bool) {
		for r, err := range s.reader.Range(ctx, topic.Span{Partition: partition, From: from, To: to, Full: true}) {
			var record projection.Record
			if err == nil {
				record = consumer.FromKafka(r)
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// extents reads the first and last offsets of the topic. A rebuild needs all partitions, so it waits
// some time for a partition without a leader, which usually gets one soon.
func (s *topicSource) extents(ctx context.Context) (all topic.Extents, err error) {
	err = leaderPatience.Do(ctx, func(ctx context.Context) (err error) {
		exists := false
		if all, exists, err = s.reader.Extents(ctx); err != nil {
			return err
		}
		if !exists {
			return exit.Refusef("topic %q (--topic, KAFKA_TOPIC) does not exist; check the name and --brokers (KAFKA_BROKERS)", s.topic)
		}
		for _, p := range all.Partitions {
			if p.Err != nil {
				return p.Err
			}
		}
		return nil
	})
	return all, err
}

// leaderPatience is how long a partition may be without a leader.
var leaderPatience = retry.Bound{Within: 10 * time.Second, Pause: 500 * time.Millisecond, Passing: func(err error) bool {
	return errors.As(err, new(*topic.PartitionError))
}}
