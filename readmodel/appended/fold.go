package appended

import (
	"context"

	"projector/projection"
	"projector/projection/event"
)

const (
	entryBytes      = 300 // memory of an entry without its record's data
	deadLetterBytes = 600
	// staysCareful is the number of flushes after a conflict that look up every event before the
	// write. More conflicts are likely in these flushes.
	staysCareful = 64
)

const conflictMessage = "another event has this version"

// Fold implements session.Projection.
func (e *Projection) Fold(ctx context.Context, records []projection.DecodedRecord, limit int) (int, error) {
	n := min(len(records), max(0, limit-e.counts.Records))
	e.position.MarkReprocessed(records[:n])
	e.cfg.Decisions.MarkDiscarded(records[:n])
	if e.breaker.Open() {
		return 0, nil
	}
	found, err := e.lookUp(ctx, records[:n])
	if err != nil {
		return 0, err
	}
	for i := range records[:n] {
		e.decide(&records[i], found)
		if e.breaker.Open() {
			return i + 1, nil
		}
	}
	return n, nil
}

// lookUp queries which events are already stored. Usually it queries only the events that would be
// dead-lettered otherwise, because the decision about such an event cannot wait for the write. For
// some flushes after a conflict, it queries all events.
func (e *Projection) lookUp(ctx context.Context, records []projection.DecodedRecord) (map[Key]string, error) {
	var keys []Key
	for i := range records {
		if d := &records[i].Decoded; d.Identity == event.Identified && e.mustLookUp(&records[i]) {
			keys = append(keys, e.cfg.Table.Key(&d.Event))
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return e.cfg.Table.Find(ctx, e.cfg.Pool, keys)
}

func (e *Projection) mustLookUp(r *projection.DecodedRecord) bool {
	if r.Decoded.Fault != nil || e.careful > 0 {
		return true
	}
	if len(e.refused) == 0 {
		return false
	}
	_, refused := e.refused[entryRefOf(&r.Record)]
	return refused
}

func (e *Projection) decide(r *projection.DecodedRecord, found map[Key]string) {
	d := &r.Decoded
	e.counts.Records++
	e.bytes += entryBytes + r.Record.Bytes() // the event's texts share this memory
	e.last = entryRefOf(&r.Record)
	switch {
	case r.Discarded:
		e.counts.Outcomes[projection.Duplicate]++
		e.breaker.Passed(r, projection.Duplicate)
	case d.Tombstone, d.Skip:
		e.counts.Outcomes[projection.Ignored]++
		e.breaker.Passed(r, projection.Ignored)
	case d.Identity == event.Unidentified:
		e.deadLetter(r, projection.Refused(d.Fault))
	default:
		e.decideEvent(r, found)
	}
}

// decideEvent decides about an event with a key. The order of the checks is defined in
// docs/events.md. An event whose key is already stored is a duplicate or a conflict, even if it
// also has a fault.
func (e *Projection) decideEvent(r *projection.DecodedRecord, found map[Key]string) {
	rec := &r.Record
	entry := Entry{Event: r.Decoded.Event, Topic: rec.Topic, Offset: rec.Offset, LeaderEpoch: rec.LeaderEpoch, Partition: rec.Partition, Before: r.Reprocessed}
	entry.Key = e.cfg.Table.Key(&entry.Event)
	lookedUp := e.mustLookUp(r)
	if lookedUp {
		if id, present := e.present(entry.Key, found); present {
			entry.Present = id
			e.decidePresent(r, &entry)
			return
		}
	}
	switch reason, refused := e.refused[entryRefOf(&r.Record)]; {
	case r.Decoded.Fault != nil:
		e.deadLetterAbsent(r, entry.Key, projection.Refused(r.Decoded.Fault))
	case refused:
		e.deadLetterAbsent(r, entry.Key, projection.Decision{Outcome: projection.DeadLettered, Class: event.RejectedByDatabase, Message: reason})
	case e.guard != nil && e.guard.Passed(&entry), e.seenLately(&entry):
		e.counts.Outcomes[projection.Duplicate]++
		e.breaker.Passed(r, projection.Duplicate)
	default:
		e.add(entry)
		e.breaker.Passed(r, projection.Applied) // also if the write finds a duplicate
	}
}

// present returns the id of the stored or pending event with a key.
func (e *Projection) present(key Key, found map[Key]string) (id string, present bool) {
	if id, present = found[key]; present {
		return id, true
	}
	if e.byKey == nil {
		e.byKey = make(map[Key]string, len(e.entries))
		for i := range e.entries {
			e.keep(&e.entries[i])
		}
	}
	id, present = e.byKey[key]
	return id, present
}

// keep remembers the entry's key. If several entries have the same key, it keeps the first one.
func (e *Projection) keep(entry *Entry) {
	if _, taken := e.byKey[entry.Key]; !taken {
		e.byKey[entry.Key] = entry.Event.ID
	}
}

func (e *Projection) decidePresent(r *projection.DecodedRecord, entry *Entry) {
	if !entry.conflicts() {
		e.counts.Outcomes[projection.Duplicate]++
		e.breaker.Passed(r, projection.Duplicate)
		return
	}
	e.careful = staysCareful
	e.deadLetter(r, projection.Decision{Outcome: projection.DeadLettered, Class: event.VersionConflict, Message: conflictMessage})
}

// conflicts reports whether the entry is in conflict with the event that is stored under its key.
// Call it only if there is such an event. An entry that was processed before is not in conflict.
func (e *Entry) conflicts() bool { return e.Present != e.Event.ID && !e.Before }

func (e *Projection) add(entry Entry) {
	e.entries = append(e.entries, entry)
	if e.byKey != nil {
		e.keep(&entry)
	}
	e.counts.Outcomes[appliedAs(&entry.Event)]++
}

// appliedAs returns the outcome of an event that is applied.
func appliedAs(ev *event.Event) projection.Outcome {
	if ev.Type == event.Ignorable {
		return projection.Ignored
	}
	return projection.Applied
}

func (e *Projection) deadLetterAbsent(r *projection.DecodedRecord, key Key, decision projection.Decision) {
	e.letters.absent = append(e.letters.absent, key)
	e.deadLetter(r, decision)
}

func (e *Projection) deadLetter(r *projection.DecodedRecord, decision projection.Decision) {
	e.counts.Outcomes[projection.DeadLettered]++
	e.bytes += deadLetterBytes + r.Record.Bytes()
	e.breaker.DeadLettered(r, decision, false) // false, because no account waits in this package
	rec, kept := projection.Keep(r.Record, &r.Decoded)
	e.letters.list = append(e.letters.list, projection.NewDeadLetter(rec, &kept, decision))
}

// seenLately queries the recent-event cache.
func (e *Projection) seenLately(entry *Entry) bool {
	if e.cfg.Recent == nil {
		return false
	}
	seen := e.cfg.Recent.Check(Seen{entry.Key, entry.Event.ID})
	if seen {
		e.cfg.Observer.DedupHit()
	} else {
		e.cfg.Observer.DedupMiss()
	}
	return seen
}
