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
		Recent:     appended.RecentOf,

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
	rows, _ := db.Query(ctx, sql.Query("statement_find"), keyColumns(len(keys), func(i int) *appended.Key { return &keys[i] })...)
	found := map[appended.Key]string{}
	if err := eachStored(rows, func(i int, id string, _ bool) { found[keys[i]] = id }); err != nil {
		return nil, fmt.Errorf("look into the statement: %w", err)
	}
	return found, nil
}

// eachStored calls fn for each row of statement_find.sql.
func eachStored(rows pgx.Rows, fn func(key int, id string, ours bool)) error {
	var (
		key  int
		id   string
		ours bool
	)
	_, err := pgx.ForEachRow(rows, []any{&key, &id, &ours}, func() error {
		fn(key, id, ours)
		return nil
	})
	return err
}

// keyColumns returns n keys as the arrays that statement_find.sql unnests.
func keyColumns(n int, key func(i int) *appended.Key) []any {
	accounts, versions := make([]string, n), make([]int64, n)
	for i := range n {
		accounts[i], versions[i] = key(i).Text, key(i).Number
	}
	return []any{accounts, versions}
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
	return t.findPresent(ctx, tx, entries)
}

// findPresent finds the entries that were not inserted, and sets Present to the event ids of the
// stored rows. It is called only if there are such entries. A row that this transaction inserted
// belongs to the first entry with its key. Transaction ids are reused after a wraparound, so a row
// only counts as inserted here if it also has the entry's event id.
func (*table) findPresent(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry) error {
	found, first := 0, 0
	for piece := range slices.Chunk(entries, readmodel.SliceRows) {
		from := first
		args := keyColumns(len(piece), func(i int) *appended.Key { return &piece[i].Key })
		tx.Queue(sql.Query("statement_find"), args...).Query(func(rows pgx.Rows) error {
			return eachStored(rows, func(i int, id string, ours bool) {
				found++
				i += from
				if !ours || id != entries[i].Event.ID || i > 0 && entries[i-1].Key == entries[i].Key {
					entries[i].Present = id
				}
			})
		})
		first += len(piece)
	}
	if err := tx.Send(ctx); err != nil {
		return err
	}
	if found != len(entries) {
		return readmodel.ErrSuppressed
	}
	return nil
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
