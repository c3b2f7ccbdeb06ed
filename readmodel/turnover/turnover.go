// Package turnover is the projection daily_turnover. Its table has the money that was moved per day
// and currency, over all accounts. A sum does not show which events it contains, so the projection
// uses the inbox. It marks each event in the transaction that adds the event, and adds only events
// that were not marked before.
package turnover

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/readmodel"
	"projector/readmodel/appended"
	"projector/readmodel/inbox"
	"projector/sql"
)

// Name is the name of the projection, and its name as a handler in the inbox.
const Name = "daily_turnover"

// Definition returns the projection.
func Definition() readmodel.Definition {
	d := inbox.Define(Name, sql.Query("turnover_ready"), add)
	d.RebuildTables = []readmodel.RebuildTable{{Name: Name, Adds: true}}
	return d
}

// add adds credits and debits to their days. Opening and closing an account move no money, so these
// events are marked but add nothing.
func add(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry) error {
	s := sums{}
	for i := range entries {
		if entries[i].Present == "" {
			s.add(&entries[i].Event)
		}
	}
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
