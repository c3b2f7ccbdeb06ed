package accounts

import (
	"slices"

	"projector/projection"
	"projector/projection/event"
)

// eventRef identifies an event by its record, or by its id if the record is unknown.
type eventRef struct {
	record projection.RecordRef
	id     string
}

// Refuse is called after PostgreSQL has refused the event of the last decision. The event is
// dead-lettered when it is read again. Refuse returns false if the event was refused before, or if
// there is no such event.
func (f *Fold) Refuse(reason string) bool {
	ref := f.last
	if ref == (eventRef{}) {
		return false
	}
	_, again := f.refused[ref]
	f.refused[ref] = reason
	return !again
}

// refusal returns why PostgreSQL has refused an event. The result is empty if PostgreSQL has not
// refused the event.
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

// forgetRefused removes from f.refused the events whose dead letters are durable. If entries of the
// last record are not processed yet, the refused events of this record stay. The position is before
// this record, so the record may be read again.
func (f *Fold) forgetRefused() {
	f.refusedDecided = slices.DeleteFunc(f.refusedDecided, func(ref eventRef) bool {
		if f.partly != (projection.RecordRef{}) && ref.record == f.partly {
			return false
		}
		delete(f.refused, ref)
		return true
	})
}

// conclude counts the decision. If the event is dead-lettered, conclude adds the dead letter and
// parks the event.
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

// noteDuplicate adds an event to Duplicates if its version was already applied, although its record
// is read for the first time.
func (f *Fold) noteDuplicate(r *projection.DecodedRecord, decision projection.Decision) {
	if !f.opts.Duplicates || decision.Outcome != projection.Duplicate || r.Reprocessed || r.Discarded {
		return
	}
	ev := &r.Decoded.Event
	f.duplicates = append(f.duplicates, projection.SkippedEvent{AccountID: ev.AccountID, Version: ev.Version, Record: r.Record.Ref()})
}

// Duplicates returns the events noted by noteDuplicate; see Options.Duplicates. The events share
// the memory of their records, so copy the strings that you store.
func (f *Fold) Duplicates() []projection.SkippedEvent { return f.duplicates }

// ForgetDuplicates removes all events from Duplicates.
func (f *Fold) ForgetDuplicates() { f.duplicates = emptied(f.duplicates) }

func (f *Fold) deadLetter(rec projection.Record, d *event.Decoded, a *account, decision projection.Decision) {
	l := projection.NewDeadLetter(rec, d, decision)
	if a != nil {
		if a.version < projection.LastVersion {
			l.Expected = new(a.version + 1)
		}
		if !a.decidedOn {
			a.decidedOn = true
			f.changes.DecidedOn = append(f.changes.DecidedOn, f.storedVersion(a))
			f.touch(a)
		}
	}
	f.changes.DeadLetters = append(f.changes.DeadLetters, l)
	f.changes.Bytes += parkedBytes + rec.Bytes()
}

// park stores the event until its version is the account's next one. An event beyond the park limit
// is added to Changes.Overflows instead. If an event of the same version is already parked, that
// event usually stays. It is replaced only if it cannot be applied and the new event only waits for
// earlier versions. The new event may then exceed the limit of bytes. It would otherwise be neither
// parked nor beyond the limit, because one event of a version is either of them.
func (f *Fold) park(a *account, rec projection.Record, d *event.Decoded, class event.Class) {
	version, q, size := d.Event.Version, f.queueOf(a), sizeOf(&rec)
	parked := func() *projection.Parked {
		f.changes.Bytes += parkedBytes
		return &projection.Parked{Record: rec, Decoded: *d, Class: class, Expected: a.version + 1}
	}
	first, isNext := q.pending[version], q.inDatabase && q.next == version
	switch {
	case first != nil && givesWay(first.Class, class):
		q.bytes += size - sizeOf(&first.Record)
		q.pending[version] = parked()
		return
	case first == nil && isNext && givesWay(q.nextClass, class):
		q.nextClass = class
		q.bytes += size
		f.replace(a, q, parked())
		return
	case first != nil || isNext:
		return
	}
	isGap := version == a.version+1 // the event that causes the gap is always stored
	if (q.parked >= f.opts.ParkLimit || !f.fits(q, size)) && !isGap || f.hasVersionBeyond(a, q, version, class) {
		q.overflowed = true
		f.touch(a)
		f.changes.Overflows = append(f.changes.Overflows,
			Overflow{AccountID: f.idOf(a), Version: version, Expected: a.version + 1, Place: rec.Ref()})
		// The database may have a parked event of this version, and this event may replace it. That is
		// rare, so q.bytes does not count this event.
		if a.hasParked && class == event.VersionGap {
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

// hasVersionBeyond reports whether an event that cannot be applied has the version of an event
// beyond the limit since the last flush. If it were parked, the other event would not be stored,
// and could not replace this one.
func (f *Fold) hasVersionBeyond(a *account, q *queue, version int64, class event.Class) bool {
	return class != event.VersionGap && q.overflowed && slices.ContainsFunc(f.changes.Overflows, func(o Overflow) bool {
		return o.Version == version && o.AccountID == f.idOf(a)
	})
}

// givesWay reports whether a new event replaces the parked event of the same version. This is the
// case if the parked event cannot be applied and the new event only waits for earlier versions.
func givesWay(parked, by event.Class) bool {
	return parked != event.VersionGap && by == event.VersionGap
}

// replace adds an event that replaces the parked event of the same version in the database. The
// parked event is only replaced if it cannot be applied.
func (f *Fold) replace(a *account, q *queue, p *projection.Parked) {
	version := p.Decoded.Event.Version
	if q.instead[version] != nil {
		return
	}
	if q.instead == nil {
		q.instead = map[int64]*projection.Parked{}
	}
	q.instead[version] = p
	f.touch(a)
}

// fits reports whether the parked events of the account may grow by size bytes.
func (f *Fold) fits(q *queue, size int64) bool {
	return f.opts.ParkBytes == 0 || q.bytes+size <= f.opts.ParkBytes
}

// sizeOf returns the size of a record for the park limit. This size is never less than the size
// that the database counts.
func sizeOf(r *projection.Record) int64 { return int64(r.Bytes()) }
