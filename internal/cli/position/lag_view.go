package position

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"projector/internal/cli/exit"
	"projector/internal/cli/unread"
	"projector/internal/consumer"
	"projector/internal/topic"
	"projector/projection"
	"projector/readmodel"
)

// lagView sees the lag of one group from outside: from the positions in the
// database and the ends in Kafka.
type lagView struct {
	pool         *pgxpool.Pool
	reader       *topic.Reader
	group, topic string
}

func newLagView(pool *pgxpool.Pool, client *kgo.Client, group, events string) *lagView {
	return &lagView{pool: pool, reader: topic.NewReader(client, events), group: group, topic: events}
}

// partitionLag is how far one partition is behind.
type partitionLag struct {
	partition int32
	position  *int64         // the next record to project; nil: none is stored
	recreated bool           // a position is stored, of another topic of this name
	start     int64          // the first offset there is; 0 when end is not known
	end       *int64         // behind the last committed record; nil: not known
	records   *int64         // from the position to the end; nil: not known
	age       *time.Duration // of the oldest record not projected; nil: not known
	waits     bool           // there is such a record
	// unread is why something is not known; nil when nobody is to blame.
	unread *topic.PartitionError
}

const (
	// agesAtOnce is how many partitions are asked for their oldest record at a time.
	agesAtOnce = 8
	// agesWithin bounds the search for all of them: a long stretch of aborted transactions
	// may lie before one, and the rest must not wait for that.
	agesWithin = 10 * time.Second
)

// read reads the lag of all partitions, in order. Of one that Kafka cannot be asked for it
// has the position.
func (v *lagView) read(ctx context.Context) ([]partitionLag, error) {
	// The positions first: they only grow, so none can be beyond its end.
	stored, err := readmodel.LoadPositions(ctx, v.pool, v.group, v.topic)
	if err != nil {
		return nil, err
	}
	return v.readWith(ctx, stored)
}

// readWith is read with positions that were stored a moment ago.
func (v *lagView) readWith(ctx context.Context, stored []projection.StoredPosition) ([]partitionLag, error) {
	partitions, err := v.ends(ctx, stored)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, agesWithin)
	defer cancel()
	ages, searching := errgroup.WithContext(within)
	ages.SetLimit(agesAtOnce)
	for i := range partitions {
		ages.Go(func() error { return v.findAge(searching, &partitions[i]) })
	}
	if err := ages.Wait(); err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return nil, err
	}
	return partitions, nil
}

// ends lists the partitions with their positions and ends.
func (v *lagView) ends(ctx context.Context, stored []projection.StoredPosition) ([]partitionLag, error) {
	extents, exists, err := v.reader.Extents(ctx)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, exit.Refusef("topic %q does not exist", v.topic)
	}
	partitions := make([]partitionLag, len(extents.Partitions))
	for i, e := range extents.Partitions {
		p := partitionLag{partition: e.Partition, unread: e.Err}
		p.place(stored, extents.TopicID)
		if e.Err == nil {
			p.reaches(e.Start, e.End)
		}
		partitions[i] = p
	}
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
}

// reaches takes note of how far the partition's log reaches.
func (p *partitionLag) reaches(start, end int64) {
	p.start, p.end = start, &end
	p.records = new(max(0, end-p.next()))
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
	if p.end == nil {
		return nil
	}
	if *p.records == 0 {
		p.age = new(time.Duration)
		return nil
	}
	record, err := v.reader.First(ctx, topic.Span{Partition: p.partition, From: p.next(), To: *p.end})
	switch {
	case err == nil:
		p.waits = true
		if at := consumer.TimestampOf(record); at > 0 {
			p.age = new(max(0, time.Since(time.UnixMilli(at))))
		}
	case errors.Is(err, topic.ErrNoRecord): // markers of transactions only: nothing waits
		p.age = new(time.Duration)
	case errors.As(err, &p.unread): // it has lost its leader since
	default:
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
			remarks = append(remarks, fmt.Sprintf("partition %d: the stored position belongs to another topic of this name (deleted, or of another cluster); "+
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

// unread are the partitions that Kafka could not be asked for.
func (v *lagView) unread(partitions []partitionLag) unread.Partitions {
	u := unread.Partitions{Topic: v.topic}
	for i := range partitions {
		if lost := partitions[i].unread; lost != nil {
			u.Add(lost)
		}
	}
	return u
}

// left reports whether records are left to project, or may be. The markers of transactions
// are none.
func (p partitionLag) left() bool {
	return p.recreated || p.records == nil || *p.records > 0 && (p.waits || p.age == nil)
}

func (p *partitionLag) document(ofTopic string) lagDocument {
	d := lagDocument{Topic: ofTopic, Partition: p.partition, Position: p.position, End: p.end, LagRecords: p.records}
	if p.age != nil {
		d.LagSeconds = new(math.Round(p.age.Seconds()*1000) / 1000)
	}
	return d
}
