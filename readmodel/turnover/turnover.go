// Package turnover is the projection daily_turnover: money moved a day and currency,
// over all accounts. A sum cannot tell what it holds already, so each event is
// marked in the inbox, in the transaction that adds it, and added only when it was
// not marked before.
package turnover

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/inbox"
	"projector/sql"
)

// Name is the name of the projection, and its name as a handler in the inbox.
const Name = "daily_turnover"

// Kind is the projection.
func Kind() readmodel.Kind {
	return readmodel.EventKind{
		Label:      Name,
		ReadyQuery: sql.Query("turnover_ready"),
		Tables:     func(p readmodel.Partition) readmodel.EventTable { return table{inbox.NewGuard(marks, p)} },
		Beside:     marks.Tasks,
		Doubts:     doubts,
	}
}

var marks = inbox.Of(Name)

// table is the turnover as one partition adds to it.
type table struct{ *inbox.Guard }

var _ readmodel.Guarded = table{}

// Key implements readmodel.EventTable.
func (table) Key(ev *event.Event) readmodel.Key { return readmodel.Key{Text: ev.ID} }

// Find implements readmodel.EventTable.
func (table) Find(ctx context.Context, db readmodel.Querier, keys []readmodel.Key) (map[readmodel.Key]string, error) {
	marked, err := marks.Find(ctx, db, texts(keys))
	if err != nil {
		return nil, err
	}
	found := make(map[readmodel.Key]string, len(marked))
	for _, id := range marked {
		found[readmodel.Key{Text: id}] = id
	}
	return found, nil
}

func texts(keys []readmodel.Key) []string {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.Text
	}
	return ids
}

// Write implements readmodel.EventTable.
func (t table) Write(ctx context.Context, tx *readmodel.Tx, entries []readmodel.Entry) error {
	ids := make([]string, len(entries))
	for i := range entries {
		ids[i] = entries[i].Key.Text
	}
	marked := marks.Mark(tx, ids)
	if err := t.Check(ctx, tx, entries); err != nil {
		return err
	}
	s := sums{}
	marked.Each(func(n int, fresh bool) {
		entries[n].Present = ids[n]
		if fresh {
			entries[n].Present = ""
			s.add(&entries[n].Event)
		}
	})
	return s.write(ctx, tx)
}

// write adds the sums to the table.
func (s sums) write(ctx context.Context, tx *readmodel.Tx) error {
	if len(s) == 0 {
		return nil
	}
	var added int64
	tx.Queue(sql.Query("turnover_add"), s.columns()...).
		Exec(func(tag pgconn.CommandTag) error { added = tag.RowsAffected(); return nil })
	if err := tx.Send(ctx); err != nil {
		return err
	}
	if added != int64(len(s)) {
		return readmodel.ErrSuppressed
	}
	return nil
}

// doubts answers why an event without a marker may have been counted all the same:
// when it failed before markers were pruned, its marker may have been among them.
func doubts(ctx context.Context, db readmodel.Querier) (func(time.Time) string, error) {
	until, err := marks.PrunedUntil(ctx, db)
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
