package accounts

import (
	"slices"
	"strings"

	"projector/projection"
	"projector/projection/event"
)

// eventRef names an event by its record's place, and by its id for those of which
// that is not known.
type eventRef struct {
	record projection.RecordRef
	id     string
}

// Refuse notes that PostgreSQL refuses the event that was decided about last: it is
// dead-lettered when it comes again. It returns false when it was refused before, or when
// nothing was decided.
func (f *Fold) Refuse(reason string) bool {
	ref := f.last
	if ref == (eventRef{}) {
		return false
	}
	ref.id = strings.Clone(ref.id)
	_, again := f.refused[ref]
	f.refused[ref] = reason
	return !again
}

// refusal is why PostgreSQL has refused an event that is decided about now; empty: it has
// not.
func (f *Fold) refusal(ref eventRef) string {
	if len(f.refused) == 0 {
		return ""
	}
	reason, refused := f.refused[ref]
	if refused {
		f.refusedDecided = append(f.refusedDecided, ref)
	}
	return reason
}

// forgetRefused forgets the refusals whose dead letters are durable. Those of a record of which
// entries are left stay: the position is before it, so it may be read again.
func (f *Fold) forgetRefused() {
	f.refusedDecided = slices.DeleteFunc(f.refusedDecided, func(ref eventRef) bool {
		if f.partly != (projection.RecordRef{}) && ref.record == f.partly {
			return false
		}
		delete(f.refused, ref)
		return true
	})
}

// conclude counts the decision and, for a dead letter, keeps it and parks the event.
func (f *Fold) conclude(r *projection.DecodedRecord, a *account, decision projection.Decision) {
	f.changes.Outcomes[decision.Outcome]++
	if f.opts.Replay {
		f.changes.Decisions = append(f.changes.Decisions, decision)
		return
	}
	if decision.Outcome != projection.DeadLettered {
		f.noteDuplicate(r, decision)
		f.breaker.Passed(r, decision.Outcome)
		return
	}
	f.breaker.DeadLettered(r, decision, f.waits(a))
	rec, kept := projection.Keep(r.Record, &r.Decoded)
	f.deadLetter(rec, &kept, a, decision)
	if a != nil && decision.Class != event.VersionConflict {
		f.park(a, rec, &kept, decision.Class)
	}
}

// noteDuplicate notes an event that has come for the first time, of a version that was applied
// before.
func (f *Fold) noteDuplicate(r *projection.DecodedRecord, decision projection.Decision) {
	if !f.opts.Duplicates || decision.Outcome != projection.Duplicate || r.Reprocessed || r.Discarded {
		return
	}
	ev := &r.Decoded.Event
	f.duplicates = append(f.duplicates, projection.SkippedEvent{
		AccountID: strings.Clone(ev.AccountID), Version: ev.Version, Record: r.Record.Ref(),
	})
}

// NewDuplicates returns the events that have come for the first time since it was called last,
// and whose versions were applied before; see Options.Duplicates.
func (f *Fold) NewDuplicates() []projection.SkippedEvent {
	duplicates := f.duplicates
	f.duplicates = nil
	return duplicates
}

// KeepDuplicates gives back what NewDuplicates has returned.
func (f *Fold) KeepDuplicates(list []projection.SkippedEvent) {
	f.duplicates = append(list, f.duplicates...)
}

func (f *Fold) deadLetter(rec projection.Record, d *event.Decoded, a *account, decision projection.Decision) {
	l := projection.DeadLetter{
		Record: rec, Class: decision.Class, Message: decision.Message,
		AccountID: d.Event.AccountID, EventID: d.Event.ID, CorrelationID: d.Event.CorrelationID, Received: d.Event.Version,
	}
	if a != nil {
		l.Identified, l.Expected = true, new(a.version+1)
		if !a.decidedOn {
			a.decidedOn = true
			f.changes.DecidedOn = append(f.changes.DecidedOn, f.storedVersion(a))
			f.touch(a)
		}
	}
	f.changes.DeadLetters = append(f.changes.DeadLetters, l)
	f.changes.Bytes += parkedBytes + rec.Bytes()
}

// park keeps the event until it is the account's next. Of two events for one version the
// first stays, unless it cannot be applied and the other can be read.
func (f *Fold) park(a *account, rec projection.Record, d *event.Decoded, class event.Class) {
	version, q, size := d.Event.Version, f.queueOf(a), sizeOf(&rec)
	parked := func() *projection.Parked {
		f.changes.Bytes += parkedBytes
		return &projection.Parked{Record: rec, Decoded: *d, Class: class, Expected: a.version + 1}
	}
	first, isNext := q.pending[version], q.waits && q.next == version
	switch {
	case first != nil && givesWay(first.Class, class) && f.fits(q, size-sizeOf(&first.Record)):
		q.bytes += size - sizeOf(&first.Record)
		q.pending[version] = parked()
		return
	case first == nil && isNext && givesWay(q.nextClass, class) && f.fits(q, size):
		q.nextClass = class
		f.replace(a, q, parked())
		return
	case first != nil || isNext:
		return
	}
	fits := f.fits(q, size)
	if isGap := version == a.version+1; (q.parked >= f.opts.ParkLimit || !fits) && !isGap { // the gap itself is always kept
		q.overflowed = true
		f.touch(a)
		f.changes.Overflows = append(f.changes.Overflows,
			Overflow{AccountID: f.idOf(a), Version: version, Expected: a.version + 1})
		if a.hasParked && class == event.VersionGap && fits { // it may replace one that is parked already
			f.replace(a, q, parked())
		}
		return
	}
	if q.pending == nil {
		q.pending = map[int64]*projection.Parked{}
	}
	q.parked++
	q.bytes += size
	q.pending[version] = parked()
	f.touch(a)
}

// givesWay reports whether a parked event of one class is replaced by another of its version:
// it cannot be applied, and the other one only waits.
func givesWay(parked, by event.Class) bool {
	return parked != event.VersionGap && by == event.VersionGap
}

// replace has the event replace the one of its version that is parked in the database, if there
// is one and it gives way.
func (f *Fold) replace(a *account, q *queue, p *projection.Parked) {
	version := p.Decoded.Event.Version
	if q.instead[version] != nil {
		return
	}
	if q.instead == nil {
		q.instead = map[int64]*projection.Parked{}
	}
	q.instead[version] = p
	q.bytes += sizeOf(&p.Record)
	f.touch(a)
}

// fits reports whether so much more may be parked of the account.
func (f *Fold) fits(q *queue, size int64) bool {
	return f.opts.ParkBytes == 0 || q.bytes+size <= f.opts.ParkBytes
}

// sizeOf is how much of the limit a record uses: at least what the database counts for it.
func sizeOf(r *projection.Record) int64 { return int64(r.Bytes()) }
