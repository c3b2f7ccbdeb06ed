// Package statement is the projection account_statement. It has one row per event, with the natural
// key account and version. A redelivered event is recognized by its row. The order of the rows does
// not matter, so no event waits.
package statement

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/appended"
	"projector/readmodel/recent"
	"projector/sql"
)

// Name is the name of the projection.
const Name = "account_statement"

// Definition returns the projection.
func Definition() readmodel.Definition {
	return appended.Definition{
		Label:      Name,
		ReadyQuery: sql.Query("statement_ready"),
		Tables:     func(p readmodel.Partition) appended.Table { return &table{appended.NewcomersTo(p)} },
		Recent:     recent.Of,

		// A row has the source partition and offset at which its event was read first. A rebuild
		// may read another delivery of the event first.
		RebuildTables: []readmodel.RebuildTable{{Name: Name, Uncompared: []string{"source_partition", "source_offset"}}},
	}
}

// table is the table account_statement, written by one partition.
type table struct{ newcomers appended.Newcomers }

// Key implements appended.Table.
func (*table) Key(ev *event.Event) appended.Key {
	return appended.Key{Text: ev.AccountID, Number: ev.Version}
}

// Find implements appended.Table.
func (*table) Find(ctx context.Context, db readmodel.Querier, keys []appended.Key) (map[appended.Key]string, error) {
	accounts, versions := make([]string, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		accounts[i], versions[i] = k.Text, k.Number
	}
	rows, _ := db.Query(ctx, sql.Query("statement_find"), accounts, versions)
	found := map[appended.Key]string{}
	var (
		key appended.Key
		id  string
	)
	_, err := pgx.ForEachRow(rows, []any{&key.Text, &key.Number, &id}, func() error {
		found[key] = id
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look into the statement: %w", err)
	}
	return found, nil
}

// Write implements appended.Table.
func (t *table) Write(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry) error {
	for i := range entries {
		entries[i].Present = ""
	}
	if t.newcomers.Expected(entries) {
		return t.newcomers.Copied(tx.Copy(ctx, sql.Query("copy_statement"), copyRows(entries)))
	}
	var inserted int64
	for piece := range slices.Chunk(entries, readmodel.SliceRows) {
		tx.Queue(sql.Query("statement_insert"), columns(piece)...).
			Exec(func(tag pgconn.CommandTag) error { inserted += tag.RowsAffected(); return nil })
	}
	if err := tx.Send(ctx); err != nil {
		return err
	}
	t.newcomers.Inserted(int(inserted), len(entries))
	if inserted == int64(len(entries)) {
		return nil
	}
	return findPresent(ctx, tx, entries)
}

// copyRows returns entries as rows for copy_statement.sql.
func copyRows(entries []appended.Entry) *readmodel.CopyRows {
	const size = 144 // approximate bytes of a row's values
	rows := readmodel.NewCopyRows(10, len(entries), size)
	for i := range entries {
		ev := &entries[i].Event
		rows.Begin()
		rows.Text(ev.AccountID)
		rows.Int8(ev.Version)
		rows.Text(ev.ID)
		rows.Text(ev.TypeName)
		if minor := ev.Signed(); minor != 0 {
			rows.Money(minor, ev.Currency.Digits())
		} else {
			rows.Null()
		}
		rows.TextOrNull(ev.Currency.Code())
		rows.Time(ev.OccurredAt)
		rows.TextOrNull(ev.CorrelationID)
		rows.Int4(entries[i].Partition)
		rows.Int8(entries[i].Offset)
	}
	return rows
}

// columns returns entries as the arrays that statement_insert.sql unnests.
func columns(entries []appended.Entry) []any {
	n := len(entries)
	var (
		accounts, ids, types, currencies, correlations = make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		versions, minor, offsets                       = make([]int64, n), make([]int64, n), make([]int64, n)
		digits, partitions                             = make([]int16, n), make([]int32, n)
		times                                          = make([]time.Time, n)
	)
	for i := range entries {
		ev := &entries[i].Event
		accounts[i], versions[i], ids[i], types[i] = ev.AccountID, ev.Version, ev.ID, ev.TypeName
		minor[i], digits[i], currencies[i] = ev.Signed(), int16(ev.Currency.Digits()), ev.Currency.Code() //nolint:gosec // 0 to 4
		times[i], correlations[i] = time.UnixMicro(ev.OccurredAt), ev.CorrelationID
		partitions[i], offsets[i] = entries[i].Partition, entries[i].Offset
	}
	return []any{accounts, versions, ids, types, minor, digits, currencies, times, correlations, partitions, offsets}
}
