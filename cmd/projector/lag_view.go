package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"projector/dlq"
	"projector/internal/consumer"
	"projector/projection"
	"projector/readmodel"
)

// lagView sees the lag of one group from outside: from the positions in the
// database and the ends in Kafka.
type lagView struct {
	pool         *pgxpool.Pool
	adm          *kadm.Client
	reader       *dlq.Reader
	group, topic string
}

func newLagView(pool *pgxpool.Pool, client *kgo.Client, group, topic string) *lagView {
	return &lagView{pool: pool, adm: kadm.NewClient(client), reader: dlq.NewReader(client, topic), group: group, topic: topic}
}

// partitionLag is how far one partition is behind.
type partitionLag struct {
	partition int32
	position  *int64 // the next record to project; nil: none is stored
	recreated bool   // a position is stored, of another topic of this name
	start     int64  // the first offset there is
	end       int64  // behind the last committed record
	records   int64
	age       *time.Duration // of the oldest record not projected; nil: not known
}

const (
	// agesAtOnce is how many partitions are asked for their oldest record at a time.
	agesAtOnce = 8
	// ageWithin bounds the search for it: a long stretch of aborted transactions may
	// lie before it, and the rest must not wait for that.
	ageWithin = 10 * time.Second
)

// read reads the lag of all partitions, in order.
func (v *lagView) read(ctx context.Context) ([]partitionLag, error) {
	// The positions first: they only grow, so none can be beyond its end.
	stored, err := readmodel.LoadPositions(ctx, v.pool, v.group, v.topic)
	if err != nil {
		return nil, err
	}
	partitions, err := v.ends(ctx, stored)
	if err != nil {
		return nil, err
	}
	ages, searching := errgroup.WithContext(ctx)
	ages.SetLimit(agesAtOnce)
	for i := range partitions {
		ages.Go(func() error { return v.findAge(searching, &partitions[i]) })
	}
	return partitions, ages.Wait()
}

// ends lists the partitions with their positions and ends.
func (v *lagView) ends(ctx context.Context, stored []projection.StoredPosition) ([]partitionLag, error) {
	topics, err := v.adm.ListTopics(ctx, v.topic)
	if err != nil {
		return nil, err
	}
	topic := topics[v.topic]
	if errors.Is(topic.Err, kerr.UnknownTopicOrPartition) {
		return nil, refusef("topic %q does not exist", v.topic)
	}
	if topic.Err != nil {
		return nil, fmt.Errorf("topic %q: %w", v.topic, topic.Err)
	}
	starts, err := v.adm.ListStartOffsets(ctx, v.topic)
	if err := cmp.Or(err, starts.Error()); err != nil {
		return nil, fmt.Errorf("list the first offsets of topic %q: %w", v.topic, err)
	}
	ends, err := v.adm.ListCommittedOffsets(ctx, v.topic)
	if err := cmp.Or(err, ends.Error()); err != nil {
		return nil, fmt.Errorf("list the ends of topic %q: %w", v.topic, err)
	}
	var partitions []partitionLag
	for number, end := range ends[v.topic] {
		p := partitionLag{partition: number, start: starts[v.topic][number].Offset, end: end.Offset}
		p.place(stored, topic.ID.String())
		partitions = append(partitions, p)
	}
	slices.SortFunc(partitions, func(a, b partitionLag) int { return int(a.partition - b.partition) })
	return partitions, nil
}

// place finds the partition's position among those stored. One of another topic of
// the same name means nothing.
func (p *partitionLag) place(stored []projection.StoredPosition, topicID string) {
	for i := range stored {
		if stored[i].Partition != p.partition {
			continue
		}
		if p.recreated = !projection.SameTopic(stored[i].TopicID, topicID); !p.recreated {
			p.position = &stored[i].Next
		}
	}
	p.records = max(0, p.end-p.next())
}

// next is the first record that is not projected.
func (p *partitionLag) next() int64 {
	if p.position == nil {
		return p.start
	}
	return *p.position
}

// findAge sets the age of the oldest record that is not projected.
func (v *lagView) findAge(ctx context.Context, p *partitionLag) error {
	if p.records == 0 {
		p.age = new(time.Duration)
		return nil
	}
	within, cancel := context.WithTimeout(ctx, ageWithin)
	defer cancel()
	record, err := v.reader.First(within, dlq.Span{Partition: p.partition, From: p.next(), To: p.end})
	switch {
	case err == nil:
		if at := consumer.TimestampOf(record); at > 0 {
			p.age = new(max(0, time.Since(time.UnixMilli(at))))
		}
	case errors.Is(err, dlq.ErrNoRecord): // markers of transactions only: nothing waits
		p.age = new(time.Duration)
	case within.Err() == nil || ctx.Err() != nil:
		return err
	}
	return nil
}

// remarks is what somebody who reads the figures has to know.
func (v *lagView) remarks(partitions []partitionLag) []string {
	var remarks []string
	stored := false
	for i := range partitions {
		p := &partitions[i]
		stored = stored || p.position != nil || p.recreated
		switch {
		case p.recreated:
			remarks = append(remarks, fmt.Sprintf("partition %d: the stored position belongs to a topic of this name that was deleted; "+
				"see the runbook, \"topic recreated\"", p.partition))
		case p.position != nil && *p.position < p.start:
			remarks = append(remarks, fmt.Sprintf("partition %d: offsets %d to %d were removed by retention before they were consumed; "+
				"see the runbook, \"position expired\"", p.partition, *p.position, p.start-1))
		}
	}
	if !stored {
		remarks = append(remarks, fmt.Sprintf("group %s has no position in topic %s: nothing of it is projected yet", v.group, v.topic))
	}
	return remarks
}

func (p *partitionLag) document(topic string) lagDocument {
	d := lagDocument{Topic: topic, Partition: p.partition, Position: p.position, End: p.end, LagRecords: p.records}
	if p.age != nil {
		d.LagSeconds = new(math.Round(p.age.Seconds()*1000) / 1000)
	}
	return d
}
