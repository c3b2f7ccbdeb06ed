package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"projector/internal/consumer"
	"projector/internal/pace"
	"projector/internal/retry"
	"projector/internal/telemetry"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/repair"
)

const (
	// beyondEvery is how often to search for accounts whose next event is beyond the park limit. If
	// such an event was found, the next search begins after beyondAgain.
	beyondEvery, beyondAgain = 5 * time.Second, time.Second
	// beyondRest is how long a partition is left out of the searches if it cannot be read or has no
	// next event.
	beyondRest = 10 * time.Second
	// beyondWithin limits the time of one search, and of one write.
	beyondWithin = 30 * time.Second
	// These limit the events that are parked for one account at a time. At least one event is
	// parked, also if it is larger than the limit.
	beyondEvents, beyondBytes = 10_000, 4 << 20
)

// beyond handles events beyond the park limit, which are in the topic but not in the database. If
// the next event of an account is beyond the limit, the account's events are read from the topic
// again and parked, up to the limits above. Then the consumer applies them like other parked
// events. The consumer does not wait for this reading.
type beyond struct {
	p         *Process
	reader    *topic.Reader
	decisions *readmodel.Decisions
	store     *repair.Repair
	failing   *retry.Throttled
	rests     map[int32]time.Time // partitions that cannot be read, and when to try again
}

// beyondLimit returns the handler of events beyond the park limit, or nil if the projection parks
// no events.
func (p *Process) beyondLimit() *beyond {
	store, parks := p.kind.Replayer(readmodel.RepairConfig{Pool: p.pool, Formats: p.formats, FirstVersion: p.cmd.FirstVersion}).(*repair.Repair)
	if !parks {
		return nil
	}
	return &beyond{
		p: p, reader: topic.NewReader(p.admin, p.cmd.Topic).Accept(int(p.cmd.MaxBatchBytes)), decisions: readmodel.NewDecisions(p.pool, p.kind), store: store,
		failing: retry.Throttle(p.log, "read events beyond the park limit again", telemetry.KeyDependency, "kafka"),
		rests:   map[int32]time.Time{},
	}
}

func (b *beyond) run(ctx context.Context) {
	for pause := beyondEvery; pace.Sleep(ctx, pause) == nil; {
		next, err := b.round(ctx)
		if ctx.Err() != nil {
			return
		}
		b.failing.Note(err, beyondEvery)
		if pause = beyondEvery; next && err == nil {
			pause = beyondAgain
		}
	}
}

// round reads and parks the events of some accounts of one partition. It returns true if it has
// parked the next event of at least one account.
func (b *beyond) round(ctx context.Context) (next bool, err error) {
	partitions := slices.DeleteFunc(b.p.working(), func(p int32) bool { return time.Now().Before(b.rests[p]) })
	if len(partitions) == 0 {
		return false, nil
	}
	searching, cancel := context.WithTimeout(ctx, beyondWithin)
	due, until, err := accountdb.LoadBeyond(searching, b.p.pool, b.p.kind.Name(), b.p.cmd.Topic, partitions, b.p.cmd.FirstVersion)
	if err == nil && len(due) > 0 {
		err = b.decisions.Read(searching)
	}
	cancel()
	if err != nil || len(due) == 0 {
		return false, err
	}
	partition := due[0].Partition // the rows are sorted by partition
	due = slices.DeleteFunc(due, func(d accountdb.Beyond) bool { return d.Partition != partition })
	next, err = b.readAgain(ctx, due, until[partition])
	if err != nil || !next {
		b.rests[partition] = time.Now().Add(beyondRest)
	}
	if next {
		b.p.consumer.Reclaim(partition)
	}
	return next, err
}

// readAgain reads one partition again up to the offset until, and parks the events of the accounts
// in due.
func (b *beyond) readAgain(ctx context.Context, due []accountdb.Beyond, until int64) (next bool, err error) {
	log, err := b.extent(ctx, due[0].Partition)
	if err != nil {
		return false, err
	}
	until = min(until, log.End)
	found, err := b.read(ctx, due, until)
	if err == nil {
		log, err = b.extent(ctx, due[0].Partition) // retention may have deleted records meanwhile
	}
	if err != nil {
		return false, err
	}
	for i := range due {
		w := found[due[i].AccountID]
		a := &repair.ReadAgain{Of: due[i], First: w.first, Rest: w.left(&due[i], log.Start), Until: until, HighestAt: until}
		if w.highest >= due[i].Highest {
			a.HighestAt = w.highestAt
		}
		writing, cancel := context.WithTimeout(ctx, beyondWithin)
		failed := b.store.ParkBeyond(writing, a, b.decisions)
		cancel()
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		next = next || w.hasNext()
		b.p.log.Info("events beyond the park limit were read again, because it is their turn",
			slog.String("account", due[i].AccountID), slog.Int("parked", a.Events), slog.Int64("beyond", a.Rest.Events))
	}
	return next, err
}

func (b *beyond) extent(ctx context.Context, partition int32) (topic.Extent, error) {
	all, _, err := b.reader.Extents(ctx)
	if err != nil {
		return topic.Extent{}, err
	}
	log, known := all.Of(partition)
	switch {
	case !known:
		return log, fmt.Errorf("topic %q has no partition %d", b.p.cmd.Topic, partition)
	case log.Err != nil:
		return log, log.Err
	}
	return log, nil
}

// read returns the events of the accounts in due. It reads their partition up to the offset until.
func (b *beyond) read(ctx context.Context, due []accountdb.Beyond, until int64) (map[string]*waiting, error) {
	found, from := map[string]*waiting{}, due[0].FirstOffset
	for i := range due {
		found[due[i].AccountID] = &waiting{above: due[i].Version}
		from = min(from, due[i].FirstOffset)
	}
	var events []projection.DecodedRecord
	span := topic.Span{Partition: due[0].Partition, From: from, To: until, Full: true}
	for record, err := range b.reader.Range(ctx, span) {
		if err != nil {
			return nil, err
		}
		r := consumer.FromKafka(record)
		format, err := b.p.formats.Resolve(ctx, r.Message)
		if err != nil {
			return nil, err
		}
		events = projection.AppendDecoded(events[:0], r, format)
		b.decisions.MarkDiscarded(events)
		for i := range events {
			e := &events[i]
			if w := found[e.Decoded.Event.AccountID]; w != nil && w.wants(e) {
				w.add(parkedOf(e))
			}
		}
	}
	return found, nil
}

// waiting has the events of an account that are above its version. It contains the events with the
// lowest versions, and a summary of the others.
type waiting struct {
	above   int64
	first   []*projection.Parked // sorted by version
	bytes   int
	highest int64 // highest version of all events of the account, also of discarded ones
	// highestAt is the offset of the first event of the highest version.
	highestAt int64
	rest      accountdb.BeyondRange
}

// wants reports whether an event should be parked. If there is no space for the event, the event is
// only counted.
func (w *waiting) wants(r *projection.DecodedRecord) bool {
	version := r.Decoded.Event.Version
	if r.Decoded.Identity != event.Identified || version <= w.above {
		return false
	}
	if version > w.highest {
		w.highest, w.highestAt = version, r.Record.Offset
	}
	if r.Discarded {
		return false
	}
	if n := len(w.first); n > 0 && (n >= beyondEvents || w.bytes >= beyondBytes) && version > w.first[n-1].Decoded.Event.Version {
		w.leave(r.Record.Offset, version)
		return false
	}
	return true
}

// add adds an event. Of two events of one version the first is parked, unless only the second can
// be applied.
func (w *waiting) add(p *projection.Parked) {
	p.Expected = w.above + 1
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
		w.leave(last.Record.Offset, last.Decoded.Event.Version)
	}
}

// leave counts an event that is not parked yet.
func (w *waiting) leave(offset, version int64) {
	if w.rest.Events == 0 {
		w.rest.FirstOffset, w.rest.FirstVersion = offset, version
	}
	w.rest.Events++
	w.rest.FirstOffset, w.rest.FirstVersion = min(w.rest.FirstOffset, offset), min(w.rest.FirstVersion, version)
	w.rest.Lowest, w.rest.Highest = w.rest.FirstVersion, max(w.rest.Highest, version)
}

func (w *waiting) hasNext() bool {
	return len(w.first) > 0 && w.first[0].Decoded.Event.Version == w.above+1
}

// left returns a summary of the events that are still beyond the park limit. The argument start is
// the first offset of the log. If the log no longer has all of these events, the missing ones can
// only be replayed from the DLQ topic. The account stays stale until then.
func (w *waiting) left(of *accountdb.Beyond, start int64) accountdb.BeyondRange {
	switch {
	case start > of.FirstOffset && !w.hasNext():
		return accountdb.BeyondRange{Events: max(1, of.Events), Lowest: max(of.FirstVersion, w.above+1), Highest: of.Highest, FirstOffset: projection.NoOffset}
	case w.rest.Events == 0 && (start > of.FirstOffset || w.highest < of.Highest):
		return accountdb.BeyondRange{Events: 1, Lowest: of.Highest, Highest: of.Highest, FirstOffset: projection.NoOffset}
	default:
		return w.rest
	}
}

// parkedOf returns an event in the form in which it is parked. It shares no memory with the fetch
// of the record.
func parkedOf(e *projection.DecodedRecord) *projection.Parked {
	rec, kept := projection.Keep(e.Record, &e.Decoded)
	kept.Event.TypeName, kept.Event.Data = "", "" // they are in the record
	p := &projection.Parked{Record: rec, Decoded: kept, Class: event.VersionGap}
	if kept.Fault != nil {
		p.Class = kept.Fault.Class
	}
	return p
}
