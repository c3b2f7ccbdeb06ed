// Package inbox remembers which messages a handler has processed. It marks a message in the
// transaction that writes the message's effect, so either both are stored or neither is. The unique
// key (message_id, handler) lets only one of several concurrent deliveries succeed. Handlers that
// add to a sum need an inbox, because a sum does not show which events it contains.
//
// Markers are pruned by age. The inbox also stores the time before which markers may have been
// pruned. A missing marker says nothing about an event that is older than this time.
package inbox

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/readmodel"
	"projector/sql"
)

// Inbox is the inbox of one handler.
type Inbox struct{ handler string }

// Of returns the inbox of a handler. The name must never change, because under another name all
// messages would be new.
func Of(handler string) Inbox { return Inbox{handler} }

// Marked is the result of Mark. It is valid after the statements of Mark were sent.
type Marked struct {
	ids   []string
	fresh []string // ids that were not marked before
}

// Mark queues the statements that mark messages. The parameter ids is sorted.
func (i Inbox) Mark(tx *readmodel.Tx, ids []string) *Marked {
	m := &Marked{ids: ids, fresh: make([]string, 0, len(ids))}
	for piece := range slices.Chunk(ids, readmodel.SliceRows) {
		tx.Queue(sql.Query("inbox_mark"), i.handler, piece).Query(func(rows pgx.Rows) (err error) {
			m.fresh, err = pgx.AppendRows(m.fresh, rows, pgx.RowTo[string])
			return err
		})
	}
	return m
}

// Copy marks messages by COPY. The parameter ids is sorted. It returns projection.ErrStale if one
// of the messages is already marked. It sends the queued statements first.
func (i Inbox) Copy(ctx context.Context, tx *readmodel.Tx, ids []string) error {
	const size = 52 // approximate bytes of a row's values
	rows := readmodel.NewCopyRows(2, len(ids), size)
	for _, id := range ids {
		rows.Begin()
		rows.Text(id)
		rows.Text(i.handler)
	}
	return tx.Copy(ctx, sql.Query("copy_inbox"), rows)
}

// Each calls fn for each message in order. The argument fresh is true if the message was not marked
// before. If an id occurs several times, only its first message is fresh.
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
	return readmodel.Texts(ctx, db, "look into the inbox", "inbox_find", i.handler, ids)
}

// PrunedUntil implements readmodel.Memory.
func (i Inbox) PrunedUntil(ctx context.Context, db readmodel.Querier) (time.Time, error) {
	return i.prunedUntil(ctx, db, 0)
}

// prunedUntil returns the zero time if no marker was deleted. See the query for the margin.
func (i Inbox) prunedUntil(ctx context.Context, db readmodel.Querier, margin time.Duration) (time.Time, error) {
	until, err := readmodel.One[*time.Time](ctx, db, "ask what the inbox has forgotten", "inbox_pruned", i.handler, margin)
	if err != nil || until == nil {
		return time.Time{}, err
	}
	return *until, nil
}

var _ readmodel.Memory = Inbox{}

// Remembered implements readmodel.Memory.
func (i Inbox) Remembered(ctx context.Context, db readmodel.Querier, ids []string) ([]string, error) {
	return readmodel.Texts(ctx, db, "look into the inbox", "inbox_remembers", i.handler, ids, readmodel.MemoryMargin)
}

// Doubts returns a function that says why an event without a marker may have been processed. A
// dead-lettered event may have been counted later. The marker of this count may have been pruned if
// the event became a dead letter before the pruned time.
//
// The time failedAt is from the clock of the instance that has published the dead letter. The query
// adds a margin, because that clock may have been ahead of the database's clock.
func (i Inbox) Doubts(ctx context.Context, db readmodel.Querier) (func(failedAt time.Time) string, error) {
	until, err := i.prunedUntil(ctx, db, readmodel.MemoryMargin)
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
