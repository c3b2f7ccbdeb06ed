package dlq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"projector/internal/topic"
)

const (
	configMaxMessageBytes = "max.message.bytes"
	configCleanupPolicy   = "cleanup.policy"

	// addedHeaderBytes is added for the headers of a dead letter, so that the largest
	// record of the source still fits.
	addedHeaderBytes = 64 << 10

	brokerDefault = -1
)

// EnsureTopic creates the DLQ topic when it is missing: with as many partitions
// as the source topic, the broker's default replication factor (the source's
// where the broker has none), and space for the source's largest record. A topic
// that exists is left as it is.
//
// An error for a missing grant names the topic, the grant and the way without
// it. Every error is worth another try.
func EnsureTopic(ctx context.Context, adm *kadm.Client, dlqTopic, sourceTopic string) error {
	_, exists, err := topic.Describe(ctx, adm, dlqTopic)
	if err != nil || exists {
		return err
	}
	source, exists, err := topic.Describe(ctx, adm, sourceTopic)
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
	case topic.Unauthorized(err):
		return fmt.Errorf("missing ACL: CREATE on topic %s: grant it, "+
			"or create the topic beforehand with %d partitions: %w", dlqTopic, len(source.Partitions), err)
	default:
		return fmt.Errorf("create topic %q: %w", dlqTopic, err)
	}
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
