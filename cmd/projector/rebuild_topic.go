package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/consumer"
	"projector/projection"
)

// topicSource reads the topic of the events.
type topicSource struct {
	adm    *kadm.Client
	reader *dlq.Reader
	topic  string
}

func newTopicSource(client *kgo.Client, topic string) *topicSource {
	return &topicSource{adm: kadm.NewClient(client), reader: dlq.NewReader(client, topic), topic: topic}
}

// Records implements rebuild.Source. What was consumed, or is listed, must be there: an
// account whose events are not found would be taken for one that never was.
func (s *topicSource) Records(ctx context.Context, partition int32, from, to int64) iter.Seq2[projection.Record, error] {
	return func(yield func(projection.Record, error) bool) {
		for r, err := range s.reader.Range(ctx, dlq.Span{Partition: partition, From: from, To: to, Full: true}, nil) {
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

// topicExtent is what there is of a topic.
type topicExtent struct {
	id     string
	starts map[int32]int64 // first offsets
	ends   map[int32]int64 // last stable offsets
}

func (s *topicSource) extent(ctx context.Context) (topicExtent, error) {
	e := topicExtent{starts: map[int32]int64{}, ends: map[int32]int64{}}
	topics, err := s.adm.ListTopics(ctx, s.topic)
	if err != nil {
		return e, err
	}
	topic := topics[s.topic]
	if errors.Is(topic.Err, kerr.UnknownTopicOrPartition) {
		return e, refusef("topic %q does not exist", s.topic)
	}
	if topic.Err != nil {
		return e, fmt.Errorf("topic %q: %w", s.topic, topic.Err)
	}
	e.id = topic.ID.String()
	starts, err := s.adm.ListStartOffsets(ctx, s.topic)
	if err := cmp.Or(err, starts.Error()); err != nil {
		return e, fmt.Errorf("list the first offsets of topic %q: %w", s.topic, err)
	}
	ends, err := s.adm.ListCommittedOffsets(ctx, s.topic)
	if err := cmp.Or(err, ends.Error()); err != nil {
		return e, fmt.Errorf("list the ends of topic %q: %w", s.topic, err)
	}
	starts.Each(func(o kadm.ListedOffset) { e.starts[o.Partition] = o.Offset })
	ends.Each(func(o kadm.ListedOffset) { e.ends[o.Partition] = o.Offset })
	return e, nil
}

// compacted reports whether the topic keeps only the last record of a key.
func (s *topicSource) compacted(ctx context.Context) (bool, error) {
	configs, err := s.adm.DescribeTopicConfigs(ctx, s.topic)
	if err != nil {
		return false, err
	}
	config, err := configs.On(s.topic, nil)
	if err == nil {
		err = config.Err
	}
	if err != nil {
		return false, err
	}
	for _, c := range config.Configs {
		if c.Key == "cleanup.policy" {
			return strings.Contains(c.MaybeValue(), "compact"), nil
		}
	}
	return false, nil
}
