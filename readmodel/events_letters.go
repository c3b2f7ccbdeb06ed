package readmodel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"projector/projection"
	"projector/projection/event"
)

// eventLetters deals with the dead letters of an EventKind. Its transactions need no
// fence: which event stands at a key is decided by the table, whoever writes.
type eventLetters struct {
	kind  EventKind
	cfg   RepairConfig
	table EventTable
}

var _ Letters = (*eventLetters)(nil)

// planPiece is how many events are looked up at a time.
const planPiece = 5000

// Standings implements Letters.
func (l *eventLetters) Standings(ctx context.Context, subjects []Subject) ([]projection.Standing, error) {
	keys := make([]Key, len(subjects))
	for i, s := range subjects {
		keys[i] = l.table.Key(&event.Event{ID: s.EventID, AccountID: s.AccountID, Version: s.Version})
	}
	found, err := l.find(ctx, l.cfg.Pool, keys)
	if err != nil {
		return nil, err
	}
	doubt, err := l.doubts(ctx, l.cfg.Pool)
	if err != nil {
		return nil, err
	}
	standings := make([]projection.Standing, len(subjects))
	for i := range subjects {
		s := &subjects[i]
		if _, present := found[keys[i]]; present {
			standings[i].Passed = true
			continue
		}
		standings[i].Verdict = judgeAbsent(s.Decoded, doubt(s.FailedAt))
	}
	return standings, nil
}

// find leaves out what PostgreSQL cannot hold: it knows nothing of it.
func (l *eventLetters) find(ctx context.Context, db Querier, keys []Key) (map[Key]string, error) {
	asked := slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return !storable(k.Text) })
	if len(asked) == 0 {
		return nil, nil
	}
	return l.table.Find(ctx, db, asked)
}

// doubts never answers a nil function without an error.
func (l *eventLetters) doubts(ctx context.Context, db Querier) (func(time.Time) string, error) {
	if l.kind.Doubts == nil {
		return func(time.Time) string { return "" }, nil
	}
	return l.kind.Doubts(ctx, db)
}

// judgeAbsent judges an event that cannot be found in the table.
func judgeAbsent(d *event.Decoded, doubt string) projection.Verdict {
	switch {
	case d.Fault != nil:
		return projection.Verdict{Outcome: projection.DeadLettered, Class: d.Fault.Class, Message: d.Fault.Error()}
	case doubt != "":
		return projection.Verdict{Outcome: projection.DeadLettered, Class: event.VersionConflict, Message: doubt}
	default:
		return projection.Verdict{Outcome: takenAs(&d.Event)}
	}
}

// judgePresent judges an event at whose key one stands already.
func judgePresent(entry *Entry) projection.Verdict {
	if entry.conflicts() {
		return projection.Verdict{Outcome: projection.DeadLettered, Class: event.VersionConflict, Message: conflictMessage}
	}
	return projection.Verdict{Outcome: projection.Duplicate}
}

// Plan implements Letters.
func (l *eventLetters) Plan(ctx context.Context, records []*RepairRecord) error {
	taken := map[Key]string{}
	for piece := range slices.Chunk(records, planPiece) {
		attempt, cancel := context.WithTimeout(ctx, repairAttempt)
		judged, err := l.judge(attempt, l.cfg.Pool, piece)
		cancel()
		if err != nil {
			return fmt.Errorf("plan: %w", err)
		}
		for i, rec := range piece {
			entry := l.entry(rec)
			if id, before := taken[entry.Key]; before && judged[i].Outcome != projection.DeadLettered {
				entry.Present = id
				judged[i] = judgePresent(&entry)
			}
			if judged[i].Outcome == projection.Applied || judged[i].Outcome == projection.Ignored {
				taken[entry.Key] = entry.Event.ID
			}
			rec.Verdict = judged[i]
		}
	}
	return nil
}

// judge judges records by what is in the table now.
func (l *eventLetters) judge(ctx context.Context, db Querier, records []*RepairRecord) ([]projection.Verdict, error) {
	keys := make([]Key, len(records))
	for i, rec := range records {
		keys[i] = l.table.Key(&rec.Decoded.Event)
	}
	found, err := l.find(ctx, db, keys)
	if err != nil {
		return nil, err
	}
	doubt, err := l.doubts(ctx, db)
	if err != nil {
		return nil, err
	}
	verdicts := make([]projection.Verdict, len(records))
	for i, rec := range records {
		entry := l.entry(rec)
		if id, present := found[keys[i]]; present {
			entry.Present = id
			verdicts[i] = judgePresent(&entry)
			continue
		}
		verdicts[i] = judgeAbsent(&rec.Decoded, doubt(rec.FailedAt))
	}
	return verdicts, nil
}

func (l *eventLetters) entry(rec *RepairRecord) Entry {
	ev := &rec.Decoded.Event
	return Entry{Event: *ev, Key: l.table.Key(ev), Offset: rec.Record.Offset, Before: rec.JudgedBefore}
}
