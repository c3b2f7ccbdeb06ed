package appended

import (
	"context"
	"fmt"
	"slices"
	"time"

	"projector/internal/pace"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/sql"
)

// replayer replays and discards the dead letters of a Definition. A replay needs no fence, because
// the table's unique key decides which event is stored. A discard needs one, see Discard.
type replayer struct {
	kind  Definition
	cfg   readmodel.RepairConfig
	table Table
}

var _ readmodel.Replayer = (*replayer)(nil)

// ReplayStatuses implements Replayer.
func (l *replayer) ReplayStatuses(ctx context.Context, subjects []readmodel.Subject) ([]projection.ReplayStatus, error) {
	return l.statuses(ctx, l.cfg.Pool, subjects)
}

func (l *replayer) statuses(ctx context.Context, db readmodel.Querier, subjects []readmodel.Subject) ([]projection.ReplayStatus, error) {
	keys := make([]Key, len(subjects))
	for i, s := range subjects {
		keys[i] = l.table.Key(&event.Event{ID: s.EventID, AccountID: s.AccountID, Version: s.Version})
	}
	found, doubt, err := l.find(ctx, db, keys)
	if err != nil {
		return nil, err
	}
	statuses := make([]projection.ReplayStatus, len(subjects))
	for i := range subjects {
		s := &subjects[i]
		if _, present := found[keys[i]]; present {
			statuses[i].Passed = true
			continue
		}
		statuses[i].Decision = decideAbsent(s.Decoded, doubt(s.FailedAt))
	}
	return statuses, nil
}

// find queries the stored events with the given keys. It leaves out keys that PostgreSQL cannot
// store, because they cannot be in the table. The result doubt is the function from
// Definition.Doubts, or a function that returns an empty string.
func (l *replayer) find(ctx context.Context, db readmodel.Querier, keys []Key) (
	found map[Key]string, doubt func(failedAt time.Time) string, err error,
) {
	storable := slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return !readmodel.CanStore(k.Text) })
	if len(storable) > 0 {
		if found, err = l.table.Find(ctx, db, storable); err != nil {
			return nil, nil, err
		}
	}
	if l.kind.Doubts == nil {
		return found, func(time.Time) string { return "" }, nil
	}
	doubt, err = l.kind.Doubts(ctx, db)
	return found, doubt, err
}

// decideAbsent decides about an event that is not in the table.
func decideAbsent(d *event.Decoded, doubt string) projection.Decision {
	switch {
	case d.Fault != nil:
		return projection.Refused(d.Fault)
	case doubt != "":
		return projection.Decision{Outcome: projection.DeadLettered, Class: event.VersionConflict, Message: doubt}
	default:
		return projection.Decision{Outcome: appliedAs(&d.Event)}
	}
}

// decidePresent decides about an event whose key is already in the table.
func decidePresent(entry *Entry) projection.Decision {
	if entry.conflicts() {
		return projection.Decision{Outcome: projection.DeadLettered, Class: event.VersionConflict, Message: conflictMessage}
	}
	return projection.Decision{Outcome: projection.Duplicate}
}

// Plan implements Replayer.
func (l *replayer) Plan(ctx context.Context, records []*readmodel.RepairRecord) error {
	if err := l.cfg.Decisions.Read(ctx); err != nil { // Apply then reads only the later ones
		return fmt.Errorf("plan: %w", err)
	}
	planned := map[Key]string{}
	for piece := range slices.Chunk(records, readmodel.PlanPiece) {
		attempt, cancel := context.WithTimeout(ctx, readmodel.RepairAttempt)
		decided, err := l.decide(attempt, l.cfg.Pool, piece)
		cancel()
		if err != nil {
			return fmt.Errorf("plan: %w", err)
		}
		for i, rec := range piece {
			entry := l.entry(rec)
			if id, before := planned[entry.Key]; before && decided[i].Outcome != projection.DeadLettered {
				entry.Present = id
				decided[i] = decidePresent(&entry)
			}
			if decided[i].Outcome == projection.Applied || decided[i].Outcome == projection.Ignored {
				planned[entry.Key] = entry.Event.ID
			}
			rec.Decision = decided[i]
		}
	}
	return nil
}

// decide decides about records by the current content of the table.
func (l *replayer) decide(ctx context.Context, db readmodel.Querier, records []*readmodel.RepairRecord) ([]projection.Decision, error) {
	keys := make([]Key, len(records))
	for i, rec := range records {
		keys[i] = l.table.Key(&rec.Decoded.Event)
	}
	found, doubt, err := l.find(ctx, db, keys)
	if err != nil {
		return nil, err
	}
	decisions := make([]projection.Decision, len(records))
	for i, rec := range records {
		entry := l.entry(rec)
		if id, present := found[keys[i]]; present {
			entry.Present = id
			decisions[i] = decidePresent(&entry)
			continue
		}
		decisions[i] = decideAbsent(&rec.Decoded, doubt(rec.FailedAt))
	}
	return decisions, nil
}

func (l *replayer) entry(rec *readmodel.RepairRecord) Entry {
	ev := &rec.Decoded.Event
	return Entry{Event: *ev, Key: l.table.Key(ev), Topic: rec.Record.Topic, Offset: rec.Record.Offset, Partition: rec.Record.Partition, Before: rec.Reprocessed}
}

// Apply implements Replayer.
func (l *replayer) Apply(ctx context.Context, records []*readmodel.RepairRecord, observe func(readmodel.Step)) error {
	work := &replayWork{replay: l, records: records, refused: map[*readmodel.RepairRecord]string{}}
	return readmodel.InPieces(ctx, l.cfg, work, func(step readmodel.Step, took time.Duration, more bool) error {
		if observe != nil {
			observe(step)
		}
		if !more {
			return ctx.Err()
		}
		return pace.Sleep(ctx, l.cfg.Spread(step.Records)-took)
	})
}

// replayWork holds the records that are not processed yet.
type replayWork struct {
	replay  *replayer
	records []*readmodel.RepairRecord
	refused map[*readmodel.RepairRecord]string // why PostgreSQL refuses them
}

// Do implements the interface pieces of package readmodel.
func (w *replayWork) Do(ctx context.Context, limit int) (readmodel.Step, bool, error) {
	records := w.records[:min(limit, len(w.records))]
	var decisions []projection.Decision
	err := readmodel.TransactOnce(ctx, w.replay.cfg.Pool, func(attempt context.Context, tx *readmodel.Tx) (err error) {
		if decisions, err = w.replay.fold(attempt, tx, records, w.refused); err != nil {
			return err
		}
		actions := make([]readmodel.Action, len(records))
		for i, rec := range records {
			actions[i] = rec.Action.With(decisions[i]).In(w.replay.kind.Label, w.replay.kind.Own)
		}
		readmodel.QueueActions(tx, actions)
		return tx.Send(attempt)
	})
	if err != nil {
		return readmodel.Step{}, true, err
	}
	for i, rec := range records {
		rec.Decision, rec.Decided = decisions[i], true
	}
	w.records = w.records[len(records):]
	return readmodel.Step{Records: len(records)}, len(w.records) > 0, nil
}

// Refuse implements the interface pieces. It refuses the first record, because PostgreSQL has
// refused a transaction with this record alone.
func (w *replayWork) Refuse(reason string) bool {
	rec := w.records[0]
	_, again := w.refused[rec]
	w.refused[rec] = reason
	return !again
}

// fold writes the records that can be applied. It returns the decisions about all records.
func (l *replayer) fold(ctx context.Context, tx *readmodel.Tx, records []*readmodel.RepairRecord, refused map[*readmodel.RepairRecord]string) ([]projection.Decision, error) {
	tx.Queue(sql.Query("discards_prevent"), l.kind.Label)
	if err := tx.Send(ctx); err != nil {
		return nil, err
	}
	if err := l.cfg.Decisions.Check(ctx, tx, records); err != nil {
		return nil, err
	}
	decisions, err := l.decide(ctx, tx, records)
	if err != nil {
		return nil, err
	}
	var (
		entries []Entry
		of      []int // the index in records of each entry
	)
	for i, v := range decisions {
		switch {
		case v.Outcome != projection.Applied && v.Outcome != projection.Ignored:
		case refused[records[i]] != "":
			decisions[i] = projection.Decision{Outcome: projection.DeadLettered, Class: event.RejectedByDatabase, Message: refused[records[i]]}
		default:
			of = append(of, i)
		}
	}
	slices.SortStableFunc(of, func(a, b int) int {
		return l.table.Key(&records[a].Decoded.Event).Compare(l.table.Key(&records[b].Decoded.Event))
	})
	for _, i := range of {
		entries = append(entries, l.entry(records[i]))
	}
	if len(entries) == 0 {
		return decisions, nil
	}
	if err := l.table.Write(ctx, tx, entries); err != nil {
		return nil, err
	}
	for n, i := range of {
		if entries[n].Present != "" {
			decisions[i] = decidePresent(&entries[n])
		}
	}
	return decisions, tx.Send(ctx)
}
