package process

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/consumer"
	"projector/internal/pace"
	"projector/internal/retry"
	"projector/internal/telemetry"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
)

const (
	// beyondEvery is how often to search for events beyond the park limit whose turn has come. When
	// some were found, the next search is after beyondAgain.
	beyondEvery, beyondAgain = 5 * time.Second, time.Second
	// beyondWithin limits one search and one write.
	beyondWithin = 30 * time.Second
	// The limits of what is read again for an account at a time. One event is always read.
	beyondEvents, beyondBytes = 10_000, 4 << 20
)

// beyond reads events beyond the park limit again when their turn has come, and parks them. Then the
// consumer heals them as all others. It reads the topic next to the consumer, which never waits for it.
type beyond struct {
	pool      *pgxpool.Pool
	name      string // of the projection
	topic     string
	reader    *topic.Reader
	formats   event.Resolver
	decisions *readmodel.Decisions
	working   func() []int32 // returns the partitions of this instance that are not stopped
	reclaim   func(partition int32)
	log       *slog.Logger
	failing   *retry.Throttled
}

// beyondLimit returns what parks events beyond the park limit, or nil if the projection parks none.
func (p *Process) beyondLimit(formats event.Resolver) *beyond {
	if !p.kind.Reports().Parked {
		return nil
	}
	return &beyond{
		pool: p.pool, name: p.kind.Name(), topic: p.topic, reader: topic.NewReader(p.admin, p.topic), formats: formats,
		decisions: readmodel.NewDecisions(p.pool, p.kind), working: p.working,
		reclaim: func(partition int32) { p.consumer.Reclaim(partition) }, log: p.log,
		failing: retry.Throttle(p.log, nil, "read events beyond the park limit again", telemetry.KeyDependency, "kafka"),
	}
}

// run searches until ctx ends.
func (b *beyond) run(ctx context.Context) {
	for pause := beyondEvery; pace.Sleep(ctx, pause) == nil; {
		parked, err := b.round(ctx)
		if ctx.Err() != nil {
			return
		}
		b.failing.Note(err, beyondEvery)
		if pause = beyondEvery; parked && err == nil {
			pause = beyondAgain
		}
	}
}

// round reads and parks the events of some accounts. It reports whether there were any.
func (b *beyond) round(ctx context.Context) (parked bool, err error) {
	partitions := b.working()
	if len(partitions) == 0 {
		return false, nil
	}
	searching, cancel := context.WithTimeout(ctx, beyondWithin)
	due, until, err := accountdb.LoadBeyond(searching, b.pool, b.name, b.topic, partitions)
	if err == nil && len(due) > 0 {
		err = b.decisions.Read(searching)
	}
	cancel()
	if err != nil || len(due) == 0 {
		return false, err
	}
	partition := due[0].Partition // one at a time: the rows are in the order of partitions
	due = slices.DeleteFunc(due, func(d accountdb.Beyond) bool { return d.Partition != partition })
	found, err := b.read(ctx, due, until[partition])
	if err != nil {
		return false, err
	}
	start, err := b.start(ctx, partition)
	if err != nil {
		return false, err
	}
	for i := range due {
		w := found[due[i].AccountID]
		if err := b.park(ctx, &due[i], w, start); err != nil {
			return parked, err
		}
		parked = parked || len(w.first) > 0
	}
	if parked {
		b.reclaim(partition)
	}
	return parked, nil
}

// read returns the events of accounts of one partition, in its records before the offset until.
func (b *beyond) read(ctx context.Context, due []accountdb.Beyond, until int64) (map[string]*waiting, error) {
	found, from := map[string]*waiting{}, due[0].FirstOffset
	for i := range due {
		found[due[i].AccountID] = &waiting{above: due[i].Version}
		from = min(from, due[i].FirstOffset)
	}
	var events []projection.DecodedRecord
	span := topic.Span{Partition: due[0].Partition, From: from, To: until, Full: true}
	for record, err := range b.reader.Range(ctx, span, nil) {
		if err != nil {
			return nil, err
		}
		format, err := b.formats.Resolve(ctx, consumer.FromKafka(record).Message)
		if err != nil {
			return nil, err
		}
		events = projection.AppendDecoded(events[:0], consumer.FromKafka(record), format)
		b.decisions.MarkDiscarded(events)
		for i := range events {
			if w := found[events[i].Decoded.Event.AccountID]; w != nil && w.wants(&events[i]) {
				w.add(copied(record, format, i))
			}
		}
	}
	return found, nil
}

// start returns the first offset of a partition's log.
func (b *beyond) start(ctx context.Context, partition int32) (int64, error) {
	all, _, err := b.reader.Extents(ctx)
	if err != nil {
		return 0, err
	}
	for _, e := range all.Partitions {
		if e.Partition == partition && e.Err == nil {
			return e.Start, nil
		}
	}
	return 0, fmt.Errorf("the start of partition %d of topic %q is not known", partition, b.topic)
}

// park parks the first events of an account. The partition's log begins at start.
func (b *beyond) park(ctx context.Context, of *accountdb.Beyond, w *waiting, start int64) error {
	ctx, cancel := context.WithTimeout(ctx, beyondWithin)
	defer cancel()
	rest := w.left(of, start)
	if err := accountdb.ParkBeyond(ctx, b.pool, b.name, of, w.first, rest); err != nil {
		return err
	}
	b.log.Info("events beyond the park limit were read again, because it is their turn",
		slog.String("account", of.AccountID), slog.Int("events", len(w.first)), slog.Int64("beyond", rest.Events))
	return nil
}

// waiting has the events of an account that are above its version: the first ones by version, and
// what is left.
type waiting struct {
	above   int64
	first   []*projection.Parked // sorted by version
	bytes   int
	highest int64 // version
	rest    accountdb.BeyondRest
}

// wants reports whether an event waits for its turn, or is the next.
func (w *waiting) wants(r *projection.DecodedRecord) bool {
	return r.Decoded.Identity == event.Identified && !r.Discarded && r.Decoded.Event.Version > w.above
}

// add adds an event. Of two events of one version the first is used, unless it cannot be applied.
func (w *waiting) add(p *projection.Parked) {
	p.Expected = w.above + 1
	w.highest = max(w.highest, p.Decoded.Event.Version)
	at, known := slices.BinarySearchFunc(w.first, p, func(a, b *projection.Parked) int {
		return cmp.Compare(a.Decoded.Event.Version, b.Decoded.Event.Version)
	})
	switch {
	case !known:
		w.first = slices.Insert(w.first, at, p)
		w.bytes += p.Record.Bytes()
	case w.first[at].Class != event.VersionGap && p.Class == event.VersionGap:
		w.bytes += p.Record.Bytes() - w.first[at].Record.Bytes()
		w.first[at] = p
	}
	for len(w.first) > 1 && (len(w.first) > beyondEvents || w.bytes > beyondBytes) {
		last := w.first[len(w.first)-1]
		w.first = w.first[:len(w.first)-1]
		w.bytes -= last.Record.Bytes()
		w.leave(last)
	}
}

// leave counts an event that is not parked yet.
func (w *waiting) leave(p *projection.Parked) {
	offset, version := p.Record.Offset, p.Decoded.Event.Version
	if w.rest.Events++; w.rest.Events == 1 {
		w.rest.LowestVersion, w.rest.FirstOffset, w.rest.FirstVersion = version, &offset, &version
		return
	}
	*w.rest.FirstOffset, *w.rest.FirstVersion = min(*w.rest.FirstOffset, offset), min(*w.rest.FirstVersion, version)
	w.rest.LowestVersion = *w.rest.FirstVersion
}

// left returns what is still beyond the park limit. If the log does not have all events any more, the
// others can only be replayed from the DLQ: then the account stays stale.
func (w *waiting) left(of *accountdb.Beyond, start int64) accountdb.BeyondRest {
	switch {
	case start > of.FirstOffset:
		return accountdb.BeyondRest{Events: max(1, of.Events), LowestVersion: of.FirstVersion}
	case w.rest.Events == 0 && w.highest < of.Highest:
		return accountdb.BeyondRest{Events: 1, LowestVersion: of.Highest}
	default:
		return w.rest
	}
}

// copied returns the event with this number of a record. It shares no memory with the record, which
// is in the memory of a whole fetch.
func copied(record *kgo.Record, format event.Format, number int) *projection.Parked {
	r := consumer.FromKafka(record)
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	for i := range r.Headers {
		r.Headers[i].Value = bytes.Clone(r.Headers[i].Value)
	}
	e := projection.AppendDecoded(nil, r, format)[number]
	p := &projection.Parked{Record: e.Record, Decoded: e.Decoded, Class: event.VersionGap}
	if e.Decoded.Fault != nil {
		p.Class = e.Decoded.Fault.Class
	}
	return p
}
