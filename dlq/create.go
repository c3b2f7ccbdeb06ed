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

// addedHeaderBytes is added to the size limit of the source topic, because a dead letter has more
// headers than its original.
const addedHeaderBytes = 64 << 10

// EnsureTopic creates the DLQ topic if it is missing. The new topic has as many partitions and
// replicas as the source topic, because a dead letter must not be lost more easily than its original.
// The broker's default is often a single replica. If the size limit of the source topic can be read,
// the new topic accepts records of that size and the added headers. An existing topic is not changed.
//
// If a permission is missing, the error names the topic, the permission and how to work without it.
// The caller may retry every error.
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
	partitions := int32(len(source.Partitions))        //nolint:gosec // Kafka counts them in an int32
	replicas := int16(source.Partitions.NumReplicas()) //nolint:gosec // Kafka counts them in an int16
	_, err = adm.CreateTopic(ctx, partitions, replicas, configsLike(ctx, adm, sourceTopic), dlqTopic)
	switch {
	case err == nil, errors.Is(err, kerr.TopicAlreadyExists): // another instance was faster
		return nil
	case topic.Unauthorized(err):
		return fmt.Errorf("missing ACL: CREATE on topic %s: grant it, "+
			"or create the topic beforehand with %d partitions: %w", dlqTopic, partitions, err)
	default:
		return fmt.Errorf("create topic %q: %w", dlqTopic, err)
	}
}

// configsLike returns the settings of the new topic. The topic is not compacted, because compaction
// deletes records and refuses those without a key. Its size limit is the limit of the source topic
// plus addedHeaderBytes. If that limit cannot be read, the broker's default applies. A dead letter
// above the limit is cut, not lost.
func configsLike(ctx context.Context, adm *kadm.Client, source string) map[string]*string {
	configs := map[string]*string{topic.CleanupPolicy: new("delete")}
	settings, err := topic.Settings(ctx, adm, source)
	if err != nil {
		return configs
	}
	if limit, err := strconv.ParseInt(settings[topic.MaxMessageBytes], 10, 32); err == nil {
		limit = min(limit+addedHeaderBytes, math.MaxInt32)
		configs[topic.MaxMessageBytes] = new(strconv.FormatInt(limit, 10))
	}
	return configs
}
