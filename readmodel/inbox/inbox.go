// Package inbox remembers which messages a handler has processed. A message is marked
// in the transaction of its effect, so both are there or neither is, and the unique
// key (message_id, handler) lets exactly one of several concurrent deliveries
// through. It is for handlers whose effect is a sum: nothing else makes those safe.
//
// Markers are pruned by age. Before when they may be gone is kept too, so that the
// absence of a marker is never taken for more than it proves.
package inbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/readmodel"
	"projector/sql"
)

// Inbox is the inbox of one handler.
type Inbox struct{ handler string }

// Of returns the inbox of a handler. Its name stays the same for ever: under another
// one, all messages would be new.
func Of(handler string) Inbox { return Inbox{handler} }

// sliceRows is how many messages one statement marks: what it unnests fits work_mem.
const sliceRows = 8192

// Marked is what a Mark has found, once it was sent.
type Marked struct {
	ids   []string
	fresh []string // those that were not marked before
}

// Mark queues the marking of messages, sorted by id.
func (i Inbox) Mark(tx *readmodel.Tx, ids []string) *Marked {
	m := &Marked{ids: ids, fresh: make([]string, 0, len(ids))}
	for piece := range slices.Chunk(ids, sliceRows) {
		tx.Queue(sql.Query("inbox_mark"), i.handler, piece).Query(func(rows pgx.Rows) (err error) {
			m.fresh, err = pgx.AppendRows(m.fresh, rows, pgx.RowTo[string])
			return err
		})
	}
	return m
}

// Copy marks messages that are taken to be new, sorted by id: projection.ErrStale when one
// of them is marked already. It sends what is queued.
func (i Inbox) Copy(ctx context.Context, tx *readmodel.Tx, ids []string) error {
	const size = 52 // about, of the values of a row
	rows := readmodel.NewCopyRows(2, len(ids), size)
	for _, id := range ids {
		rows.Begin()
		rows.Text(id)
		rows.Text(i.handler)
	}
	return tx.Copy(ctx, sql.Query("copy_inbox"), rows)
}

// Each calls fn for each message, in order, with whether it was not marked before; of
// equal ids that is the first.
func (m *Marked) Each(fn func(n int, fresh bool)) {
	if len(m.fresh) == len(m.ids) {
		for n := range m.ids {
			fn(n, true)
		}
		return
	}
	fresh := make(map[string]bool, len(m.fresh))
	for _, id := range m.fresh {
		fresh[id] = true
	}
	for n, id := range m.ids {
		fn(n, fresh[id])
		fresh[id] = false
	}
}

// Find returns which of the messages are marked.
func (i Inbox) Find(ctx context.Context, db readmodel.Querier, ids []string) ([]string, error) {
	return i.find(ctx, db, "inbox_find", ids)
}

func (i Inbox) find(ctx context.Context, db readmodel.Querier, query string, ids []string, more ...any) ([]string, error) {
	rows, err := db.Query(ctx, sql.Query(query), append([]any{i.handler, ids}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("look into the inbox: %w", err)
	}
	marked, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look into the inbox: %w", err)
	}
	return marked, nil
}

// PrunedUntil implements readmodel.Memory.
func (i Inbox) PrunedUntil(ctx context.Context, db readmodel.Querier) (time.Time, error) {
	rows, err := db.Query(ctx, sql.Query("inbox_pruned"), i.handler)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask what the inbox has forgotten: %w", err)
	}
	until, err := pgx.CollectOneRow(rows, pgx.RowTo[*time.Time])
	if err != nil {
		return time.Time{}, fmt.Errorf("ask what the inbox has forgotten: %w", err)
	}
	if until == nil {
		return time.Time{}, nil
	}
	return *until, nil
}

var _ readmodel.Memory = Inbox{}

// Remembered implements readmodel.Memory.
func (i Inbox) Remembered(ctx context.Context, db readmodel.Querier, ids []string) ([]string, error) {
	return i.find(ctx, db, "inbox_remembers", ids, readmodel.MemoryMargin)
}

// Doubts returns a function that says why an event without a marker may have been processed all the same:
// when it failed before markers were pruned, its marker may have been among them.
func (i Inbox) Doubts(ctx context.Context, db readmodel.Querier) (func(failedAt time.Time) string, error) {
	until, err := i.PrunedUntil(ctx, db)
	if err != nil {
		return nil, err
	}
	return func(failedAt time.Time) string {
		if failedAt.Before(until) {
			return "it failed longer ago than the inbox remembers, so it may have been counted since; " +
				"--to-topic delivers it once more"
		}
		return ""
	}, nil
}
