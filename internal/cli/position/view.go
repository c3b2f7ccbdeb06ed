package position

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/topic"
	"projector/projection"
	"projector/readmodel"
)

type view struct {
	pool         *pgxpool.Pool
	client       *kgo.Client
	reader       *topic.Reader
	adm          *kadm.Client
	group, topic string
}

type viewFlags struct {
	flags.KafkaFlags
	flags.DatabaseFlags
	flags.GroupFlags
	output.LogFlags
	output.Flags
}

// open refuses wrong usage and connects to the database. The method read connects to Kafka.
func (f *viewFlags) open(ctx context.Context, std *output.Streams) (*view, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	log, err := f.Logger(std.Err)
	if err != nil {
		return nil, err
	}
	options, err := f.Client(log)
	if err != nil {
		return nil, err
	}
	f.WarnUnverified(log)
	pool, err := flags.OpenReadModel(ctx, &f.DatabaseFlags)
	if err != nil {
		return nil, err
	}
	if err := f.CheckGroup(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach Kafka by --brokers (KAFKA_BROKERS): %w", err)
	}
	return &view{
		pool: pool, client: client, reader: topic.NewReader(client, f.Topic), adm: kadm.NewClient(client),
		group: f.GroupName(), topic: f.Topic,
	}, nil
}

func (v *view) close() {
	v.client.Close()
	v.pool.Close()
}

const (
	// kafkaWithin is the deadline for reaching any broker.
	kafkaWithin = 10 * time.Second
	// endsWithin is the deadline for reading the ends of the partitions, which are only needed for
	// a remark.
	endsWithin = 2 * time.Second
	// agesAtOnce is how many partitions are queried for their oldest record at a time.
	agesAtOnce = 8
	// agesWithin is the deadline for reading the oldest records of all partitions. A long range of
	// aborted transactions may come before a record, and the command must not wait for it.
	agesWithin = 10 * time.Second
)

// read reads the state of all partitions. If Kafka cannot be reached, it uses the database only.
func (v *view) read(ctx context.Context) (*status, error) {
	// Read the positions before the ends of the log. Otherwise a consumer could move a position beyond
	// an end that was read earlier.
	stored, err := readmodel.LoadPositions(ctx, v.pool, v.group, v.topic)
	if err != nil {
		return nil, err
	}
	s := &status{topic: v.topic}
	exists, err := v.fromKafka(ctx, s, stored)
	switch {
	case err == nil && !exists:
		return nil, noTopic(v.topic)
	case err == nil:
	case ctx.Err() != nil, len(stored) == 0:
		return nil, err
	default:
		s.kafka = err
		slices.SortFunc(stored, func(a, b projection.StoredPosition) int { return int(a.Partition - b.Partition) })
		s.partitions = make([]partition, len(stored))
		for i := range stored {
			s.partitions[i] = partition{number: stored[i].Partition, stored: &stored[i], position: &stored[i].Next}
		}
	}
	for i := range s.partitions {
		s.partitions[i].decide()
	}
	if len(stored) == 0 {
		s.remarks = append(s.remarks, fmt.Sprintf("group %s has no position in topic %s: nothing of it is projected yet", v.group, v.topic))
	}
	return s, nil
}

// fromKafka adds the partitions of the topic and their stored positions, if the topic exists.
func (v *view) fromKafka(ctx context.Context, s *status, stored []projection.StoredPosition) (exists bool, err error) {
	if err := flags.Reach(ctx, v.client, kafkaWithin); err != nil {
		return false, err
	}
	// The ends come before the last stable offsets. Otherwise, a record that arrives between the two
	// answers would look like one of an open transaction.
	ends := v.ends(ctx)
	extents, exists, err := v.reader.Extents(ctx)
	if err != nil || !exists {
		return false, err
	}
	s.remarkOpen(ends, &extents)
	partitions := make([]partition, len(extents.Partitions))
	for i, e := range extents.Partitions {
		p := partition{number: e.Partition, unread: e.Err}
		p.place(stored, extents.TopicID)
		if e.Err == nil {
			p.start, p.end = e.Start, &e.End
			if records := e.End - p.next(); records >= 0 {
				p.records = &records
			}
		}
		partitions[i] = p
	}
	within, cancel := context.WithTimeout(ctx, agesWithin)
	defer cancel()
	ages, searching := errgroup.WithContext(within)
	ages.SetLimit(agesAtOnce)
	for i := range partitions {
		ages.Go(func() error { return v.findAge(searching, &partitions[i]) })
	}
	if err := ages.Wait(); err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return true, err
	}
	s.partitions = partitions
	return true, nil
}

// ends returns the ends of the partitions whose leaders answer soon.
func (v *view) ends(ctx context.Context) kadm.ListedOffsets {
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	ends, _ := v.adm.ListEndOffsets(ctx, v.topic)
	return ends
}

func (v *view) findAge(ctx context.Context, p *partition) error {
	if p.records == nil {
		return nil
	}
	if *p.records == 0 {
		p.age = new(time.Duration)
		return nil
	}
	age, err := v.reader.Age(ctx, topic.Span{Partition: p.number, From: p.next(), To: *p.end})
	switch {
	case err == nil:
		p.waits, p.age = true, age
	case errors.Is(err, topic.ErrNoRecord): // there are only transaction markers, so nothing waits
		p.age = new(time.Duration)
	case errors.As(err, &p.unread): // the partition has lost its leader since the first query
	default:
		return err
	}
	return nil
}

func (v *view) details(ctx context.Context, s *status) {
	if s.kafka != nil {
		return
	}
	stored, err := topic.Stored(ctx, v.adm, v.topic)
	if err != nil {
		s.remark("how long the topic keeps records", "DESCRIBE_CONFIGS on topic "+v.topic, err)
	}
	v.findOwners(ctx, s)
	for i := range s.partitions {
		p := &s.partitions[i]
		var unread *time.Duration
		if p.waits {
			unread = p.age
		}
		p.margin = topic.RetentionLeft(p.next()-p.start, stored.Limit, unread)
	}
}

// findOwners sets the owners of the partitions, if Kafka can be queried.
func (v *view) findOwners(ctx context.Context, s *status) {
	if s.kafka != nil {
		return
	}
	assigned, rebalancing := v.assigned(ctx, s)
	for i := range s.partitions {
		if p := &s.partitions[i]; p.stored != nil && (rebalancing || assigned.Lookup(v.topic, p.number)) {
			p.owner = p.stored.Owner
		}
	}
}

func describeGroup(ctx context.Context, adm *kadm.Client, name string) (kadm.DescribedGroup, error) {
	groups, err := adm.DescribeGroups(ctx, name)
	return groups[name], cmp.Or(err, groups[name].Err)
}

// assigned returns the partitions that are assigned to a member of the group now. During a rebalance,
// Kafka reports no assignments, but the members continue with their partitions.
func (v *view) assigned(ctx context.Context, s *status) (assigned kadm.TopicsSet, rebalancing bool) {
	group, err := describeGroup(ctx, v.adm, v.group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		s.ownersKnown = true
		s.remarks = append(s.remarks, fmt.Sprintf("Kafka does not know group %s: nobody owns the partitions", v.group))
		return nil, false
	}
	if err != nil {
		s.remark("who owns the partitions", "DESCRIBE on group "+v.group, err)
		return nil, false
	}
	s.ownersKnown = true
	if rebalancing = group.State == "PreparingRebalance" || group.State == "CompletingRebalance"; rebalancing {
		s.remarks = append(s.remarks, fmt.Sprintf("group %s is in a rebalance: the owners shown are those before it", v.group))
	}
	return group.AssignedPartitions(), rebalancing
}
