package accountdb

import (
	"github.com/jackc/pgx/v5/pgtype"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accounts"
)

// BalanceColumns converts rows into the arrays that insert_balance.sql unnests.
//
// This package encodes the arrays itself, because pgx uses interfaces and reflection for each
// element. This reduced BenchmarkColumns from 910 to 230 ns per row, and from 7 allocations per row
// to a few in total.
func BalanceColumns(rows []accounts.Row) []any {
	n := len(rows)
	var (
		ids        = readmodel.NewColumn(pgtype.TextOID, n, 16)
		currencies = readmodel.NewColumn(pgtype.TextOID, n, 4)
		minor      = readmodel.NewColumn(pgtype.Int8OID, n, 8)
		digits     = readmodel.NewColumn(pgtype.Int2OID, n, 2)
		versions   = readmodel.NewColumn(pgtype.Int8OID, n, 8)
		closed     = readmodel.NewColumn(pgtype.BoolOID, n, 1)
		events     = readmodel.NewColumn(pgtype.TextOID, n, 36)
		times      = readmodel.NewColumn(pgtype.TimestamptzOID, n, 8)
	)
	for i := range rows {
		s := &rows[i].Account
		ids.Text(rows[i].AccountID)
		currencies.Text(s.Currency.Code())
		minor.Int8(s.Balance)
		digits.Int2(int16(s.Currency.Digits())) //nolint:gosec // 0 to 4
		versions.Int8(s.Version)
		closed.Bool(s.Closed)
		events.Text(s.LastEventID)
		if s.LastEventAt == projection.NoTime {
			times.Null()
		} else {
			times.Time(s.LastEventAt)
		}
	}
	return readmodel.ColumnArgs(ids, currencies, minor, digits, versions, closed, events, times)
}

// storedColumn returns the array of the versions that the rows replace.
func storedColumn(rows []accounts.Row) *readmodel.Column {
	stored := readmodel.NewColumn(pgtype.Int8OID, len(rows), 8)
	for i := range rows {
		stored.Int8(rows[i].Stored)
	}
	return stored
}
