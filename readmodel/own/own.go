// Package own runs custom projections. The statements of a SQL file get the events, in the
// transaction that moves the position. See docs/decisions/0034.
package own

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/appended"
	"projector/readmodel/balance"
	"projector/readmodel/inbox"
	"projector/sql"
)

// Definition returns the projection that a file describes. Its events are identified by their ids,
// as in daily_turnover, or by the versions of their accounts, as in account_balance.
func Definition(p file.Projection) readmodel.Definition {
	s := &statements{file: p}
	check := func(ctx context.Context, pool *pgxpool.Pool) error { return ready(ctx, pool, p) }
	rebuilds := func(ctx context.Context, rebuilt *pgxpool.Pool) error { return rebuildable(ctx, rebuilt, p) }
	var tables []readmodel.RebuildTable
	for _, table := range p.Tables {
		tables = append(tables, readmodel.RebuildTable{Name: table})
	}
	if p.Mode == file.Ordered {
		return balance.Definition{Writer: s.write, Label: p.Name, Check: check, RebuildTables: tables, Rebuildable: rebuilds}
	}
	d := inbox.Define(p.Name, sql.Query("custom_ready"), s.add)
	d.Check, d.Own = check, true
	d.Rebuildable, d.RebuildTables = rebuilds, tables
	return d
}

// add implements inbox.Add.
func (s *statements) add(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry) error {
	events := make([]projection.CustomEvent, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		if e.Present != "" || e.Event.Type == event.Ignorable {
			continue
		}
		events = append(events, projection.CustomEvent{
			Event: e.Event, Record: projection.RecordRef{Topic: e.Topic, Partition: e.Partition, Offset: e.Offset},
		})
	}
	if len(events) == 0 {
		return nil
	}
	return s.write(ctx, tx, events)
}
