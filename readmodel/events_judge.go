package readmodel

import (
	"context"

	"projector/projection"
	"projector/projection/event"
)

const (
	entryBytes  = 300 // an entry without its record
	letterBytes = 600
	// staysCareful is for how many flushes every event is looked up after a conflict:
	// where there is one, there are more.
	staysCareful = 64
)

const conflictMessage = "another event stands at this version"

// Judge judges records in order until all are judged or limit events are pending,
// and answers how many it judged.
func (e *Events) Judge(ctx context.Context, records []projection.Judgeable, limit int) (int, error) {
	n := min(len(records), max(0, limit-e.changes.Records))
	found, err := e.lookUp(ctx, records[:n])
	if err != nil {
		return 0, err
	}
	for i := range records[:n] {
		e.judge(&records[i], found)
	}
	return n, nil
}

// lookUp asks the table for the events that cannot be left to the write: those that
// would be dead-lettered, unless they are there already.
func (e *Events) lookUp(ctx context.Context, records []projection.Judgeable) (map[Key]string, error) {
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

func (e *Events) mustLookUp(r *projection.Judgeable) bool {
	if r.Decoded.Fault != nil || e.careful > 0 {
		return true
	}
	_, refused := e.refused[r.Record.Place()]
	return refused
}

func (e *Events) judge(r *projection.Judgeable, found map[Key]string) {
	d := &r.Decoded
	e.changes.Records++
	e.changes.Bytes += entryBytes + r.Record.Bytes() // an event's texts are parts of them
	e.sole = r.Record.Place()
	switch {
	case d.Tombstone, d.Skip:
		e.changes.Outcomes[projection.Ignored]++
	case d.Identity == event.Unidentified:
		e.letter(r, d.Fault.Class, d.Fault.Error())
	default:
		e.judgeEvent(r, found)
	}
}

// judgeEvent judges an event that can be told apart, in the order of the contract:
// one that is there already is a duplicate, or a conflict, whatever else is wrong
// with it.
func (e *Events) judgeEvent(r *projection.Judgeable, found map[Key]string) {
	rec := &r.Record
	entry := Entry{Event: r.Decoded.Event, Offset: rec.Offset, LeaderEpoch: rec.LeaderEpoch}
	entry.Before = e.position.Reprocessed(rec.Offset, rec.LeaderEpoch)
	entry.Key = e.cfg.Table.Key(&entry.Event)
	lookedUp := e.mustLookUp(r)
	if lookedUp {
		if id, present := e.present(entry.Key, found); present {
			entry.Present = id
			e.judgePresent(r, &entry)
			return
		}
	}
	switch reason, refused := e.refused[r.Record.Place()]; {
	case r.Decoded.Fault != nil:
		e.letterAbsent(r, entry.Key, r.Decoded.Fault.Class, r.Decoded.Fault.Error())
	case refused:
		e.letterAbsent(r, entry.Key, event.RejectedByDatabase, reason)
	case e.guard != nil && e.guard.Passed(&entry), e.seenLately(&entry):
		e.changes.Outcomes[projection.Duplicate]++
	default:
		e.take(entry)
	}
}

// present answers which event stands at a key, in the table or among the pending ones.
func (e *Events) present(key Key, found map[Key]string) (id string, present bool) {
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

// keep remembers the entry's key; of several entries with one key the first.
func (e *Events) keep(entry *Entry) {
	if _, taken := e.byKey[entry.Key]; !taken {
		e.byKey[entry.Key] = entry.Event.ID
	}
}

func (e *Events) judgePresent(r *projection.Judgeable, entry *Entry) {
	if !entry.conflicts() {
		e.changes.Outcomes[projection.Duplicate]++
		return
	}
	e.careful = staysCareful
	e.letter(r, event.VersionConflict, conflictMessage)
}

// conflicts reports whether another event stands in the entry's place.
func (e *Entry) conflicts() bool { return e.Present != e.Event.ID && !e.Before }

func (e *Events) take(entry Entry) {
	e.entries = append(e.entries, entry)
	if e.byKey != nil {
		e.keep(&entry)
	}
	e.changes.Outcomes[takenAs(&entry.Event)]++
}

// takenAs is the outcome of an event that is taken in.
func takenAs(ev *event.Event) projection.Outcome {
	if ev.Type == event.Ignorable {
		return projection.Ignored
	}
	return projection.Applied
}

func (e *Events) letterAbsent(r *projection.Judgeable, key Key, class event.Class, message string) {
	e.letters.absent = append(e.letters.absent, key)
	e.letter(r, class, message)
}

func (e *Events) letter(r *projection.Judgeable, class event.Class, message string) {
	e.changes.Outcomes[projection.DeadLettered]++
	e.changes.Bytes += letterBytes + r.Record.Bytes()
	e.letters.list = append(e.letters.list, projection.NewDeadLetter(r.Record, &r.Decoded, class, message))
}

// seenLately asks the recent-event cache. What it cannot answer is processed in full.
func (e *Events) seenLately(entry *Entry) bool {
	if e.cfg.Recent == nil {
		return false
	}
	seen, err := e.cfg.Recent.Check(Seen{entry.Key, entry.Event.ID})
	switch {
	case err != nil:
		e.cfg.Observer.DedupError(1)
		return false
	case seen:
		e.cfg.Observer.DedupHit(1)
	default:
		e.cfg.Observer.DedupMiss(1)
	}
	return seen
}
