package process

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sync/errgroup"

	"projector/internal/consumer"
	"projector/internal/pace"
	"projector/internal/telemetry"
	"projector/internal/topic"
)

// margins has the margin of each partition that was claimed when it was measured. A margin is the
// number of records, and the time, until retention removes the first unread record.
type margins map[int32]telemetry.Margin

// retention measures how far retention is from the first unread records of this instance's
// partitions, and how long dead letters are stored. The consumer does not wait for these
// measurements.
type retention struct {
	p       *Process
	reader  *topic.Reader // of the source topic
	adm     *kadm.Client
	refused map[string]bool           // topics for which the missing permission was logged
	compact map[string]bool           // topics that are reported as compacted
	limits  map[string]*time.Duration // how long each topic stores records, as last known
}

func newRetention(p *Process) *retention {
	return &retention{p: p, reader: topic.NewReader(p.admin, p.cmd.Topic), adm: kadm.NewClient(p.admin), refused: map[string]bool{}, compact: map[string]bool{}, limits: map[string]*time.Duration{}}
}

const (
	retentionEvery = 10 * time.Second
	// retentionWithin is longer than the time for which the reader waits for a partition without a
	// leader. Otherwise one such partition would leave the margins of all partitions unmeasured.
	retentionWithin = 20 * time.Second
	// assignedEvery is the interval of the checks for newly assigned partitions, which are measured
	// at once.
	assignedEvery = time.Second
	// recordsAtOnce is how many first unread records are read concurrently.
	recordsAtOnce = 8
)

func (r *retention) watch(ctx context.Context) {
	var lastMeasured time.Time
	pace.Every(ctx, assignedEvery, retentionWithin, func(within context.Context) {
		if time.Since(lastMeasured) > retentionEvery || r.unmeasured() {
			r.measureAll(within)
			lastMeasured = time.Now()
		}
	})
}

// unmeasured reports whether a partition that is claimed now was not claimed at the last
// measurement. A partition that was claimed but could not be read is not measured again before its
// time. Otherwise a partition without a leader would cause requests each second.
func (r *retention) unmeasured() bool {
	known := r.p.margins.Load()
	if known == nil {
		return false
	}
	return slices.ContainsFunc(r.p.PartitionStatus(), func(p consumer.PartitionStatus) bool {
		_, measured := (*known)[p.Partition]
		return p.Claimed && !measured
	})
}

// measureAll measures the retention of both topics, and the margins of this instance's partitions. It
// warns about a topic that is compacted. The margin of a partition that cannot be read is unknown. If
// the partitions cannot be listed, the previous margins stay. Brokers that cannot be reached are not
// logged here, because the consumer logs them.
func (r *retention) measureAll(ctx context.Context) {
	r.p.metrics.DLQRetention(r.stored(ctx, r.p.cmd.DeadLetterTopic(), "the dead letters of an account, except for the last one"))
	kept := r.stored(ctx, r.p.cmd.Topic, "the events of an account, except for the last one")
	extents, _, err := r.reader.Extents(ctx)
	if err != nil {
		return
	}
	var asking errgroup.Group
	asking.SetLimit(recordsAtOnce)
	partitions := r.p.PartitionStatus()
	found := make([]telemetry.Margin, len(partitions))
	for i := range partitions {
		asking.Go(func() error {
			found[i] = r.measure(ctx, &partitions[i], &extents, kept)
			return nil
		})
	}
	_ = asking.Wait()
	all := margins{}
	for i := range partitions {
		p := &partitions[i]
		r.p.metrics.Margin(p.Partition, found[i])
		if p.Claimed { // others are measured at once after the claim
			all[p.Partition] = found[i]
		}
	}
	r.p.margins.Store(&all)
}

// stored returns how long a topic stores records, or nil if there is no limit or it is not known. While
// no broker answers, it returns what was last known. It warns if the topic is compacted. The text
// removed says which records Kafka then removes.
func (r *retention) stored(ctx context.Context, name, removed string) *time.Duration {
	stored, err := topic.Stored(ctx, r.adm, name)
	r.refusal(name, err)
	condition := "topic " + name
	if err == nil || errors.As(err, new(*kerr.Error)) {
		r.limits[name] = stored.Limit
	}
	switch {
	case err != nil: // the last answer counts
	case stored.Compacted:
		reason := "is compacted, so Kafka removes " + removed + ": set cleanup.policy=delete"
		r.p.health.Warn(condition, reason)
		if !r.compact[name] {
			r.p.log.Warn("a topic is compacted", slog.String("topic", name), slog.String("reason", reason))
		}
		r.compact[name] = true
	case r.compact[name]:
		r.p.health.OK(condition)
		r.p.log.Info("the topic is no longer compacted", slog.String("topic", name))
		r.compact[name] = false
	}
	return r.limits[name]
}

func (r *retention) measure(ctx context.Context, p *consumer.PartitionStatus, extents *topic.Extents, kept *time.Duration) telemetry.Margin {
	e, known := extents.Of(p.Partition)
	if !known || e.Err != nil || !p.Claimed {
		return telemetry.Margin{}
	}
	margin := p.Position - e.Start
	var age *time.Duration
	if kept != nil && margin >= 0 && e.End > p.Position {
		// After an error the age is nil. One error is topic.ErrNoRecord, if there are only transaction
		// markers.
		age, _ = r.reader.Age(ctx, topic.Span{Partition: p.Partition, From: p.Position, To: e.End})
	}
	return telemetry.Margin{Records: &margin, Left: topic.RetentionLeft(margin, kept, age)}
}

// refusal logs that the permission to read the retention of a topic is missing. It logs this only
// one time for each topic.
func (r *retention) refusal(ofTopic string, err error) {
	if r.refused[ofTopic] || !errors.Is(err, kerr.TopicAuthorizationFailed) {
		return
	}
	r.refused[ofTopic] = true
	r.p.log.Warn("it is not known how long a topic keeps its records: missing ACL: DESCRIBE_CONFIGS on the topic",
		slog.String("topic", ofTopic), telemetry.Err(err))
}
