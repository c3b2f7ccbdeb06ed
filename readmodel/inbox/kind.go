package inbox

import (
	"context"

	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/appended"
)

// Add adds events to a projection's table, within tx. It only adds entries whose Present is empty.
// It also sends its statements.
type Add func(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry) error

// Define returns a projection whose table holds sums. An inbox with the projection's name makes the
// projection idempotent. The text ready is the ReadyQuery of appended.Definition.
func Define(name, ready string, add Add) appended.Definition {
	marks := Of(name)
	return appended.Definition{
		Label:      name,
		ReadyQuery: ready,
		Tables: func(p readmodel.Partition) appended.Table {
			return &table{&guard{inbox: marks, partition: p}, add, appended.NewcomersTo(p)}
		},
		Background: marks.Tasks,
		Doubts:     marks.Doubts,
		Remembers:  marks,
	}
}

// table is a table of sums, written by one partition.
type table struct {
	*guard
	add       Add
	newcomers appended.Newcomers
}

var _ appended.Guarded = &table{}

// Key implements appended.Table.
func (*table) Key(ev *event.Event) appended.Key { return appended.Key{Text: ev.ID} }

// Find implements appended.Table.
func (t *table) Find(ctx context.Context, db readmodel.Querier, keys []appended.Key) (map[appended.Key]string, error) {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.Text
	}
	marked, err := t.inbox.Find(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[appended.Key]string, len(marked))
	for _, id := range marked {
		found[appended.Key{Text: id}] = id
	}
	return found, nil
}

// Write implements appended.Table. It marks the entries and adds those that were not marked before.
func (t *table) Write(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry) error {
	ids := make([]string, len(entries))
	for i := range entries {
		ids[i], entries[i].Present = entries[i].Key.Text, ""
	}
	mark := t.mark
	if t.newcomers.Expected(entries) {
		mark = t.copy
	}
	if err := mark(ctx, tx, entries, ids); err != nil {
		return err
	}
	return t.add(ctx, tx, entries)
}

// copy writes, by COPY, the markers of entries that are assumed to be new.
func (t *table) copy(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry, ids []string) error {
	if err := t.newcomers.Copied(t.inbox.Copy(ctx, tx, ids)); err != nil {
		return err
	}
	return t.check(ctx, tx, entries)
}

// mark marks entries, and sets Present of those that were marked before.
func (t *table) mark(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry, ids []string) error {
	marked := t.inbox.Mark(tx, ids)
	if err := t.check(ctx, tx, entries); err != nil {
		return err
	}
	t.newcomers.Inserted(len(marked.fresh), len(ids))
	marked.Each(func(n int, fresh bool) {
		if !fresh {
			entries[n].Present = ids[n]
		}
	})
	return nil
}
