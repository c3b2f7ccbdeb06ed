package accountdb

import (
	"bytes"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accounts"
)

var columnOIDs = []uint32{
	pgtype.TextArrayOID, pgtype.TextArrayOID, pgtype.Int8ArrayOID, pgtype.Int2ArrayOID,
	pgtype.Int8ArrayOID, pgtype.BoolArrayOID, pgtype.TextArrayOID, pgtype.TimestamptzArrayOID,
}

// slicesOf returns the columns of the rows as slices, which pgx can encode.
func slicesOf(rows []accounts.Row) []any {
	n := len(rows)
	ids, currencies, events := make([]string, n), make([]string, n), make([]string, n)
	minor, versions, digits := make([]int64, n), make([]int64, n), make([]int16, n)
	closed, times := make([]bool, n), make([]*time.Time, n)
	for i, r := range rows {
		s := r.Account
		ids[i], currencies[i], events[i] = r.AccountID, s.Currency.Code(), s.LastEventID
		minor[i], versions[i], closed[i], digits[i] = s.Balance, s.Version, s.Closed, int16(s.Currency.Digits())
		if s.LastEventAt != projection.NoTime {
			at := time.UnixMicro(s.LastEventAt)
			times[i] = &at
		}
	}
	return []any{ids, currencies, minor, digits, versions, closed, events, times}
}

func TestColumnsAreWhatPgxWouldSend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) accounts.Row {
			s := projection.Account{
				Version: rapid.Int64().Draw(t, "version"), Balance: rapid.Int64().Draw(t, "balance"), Closed: rapid.Bool().Draw(t, "closed"),
				LastEventID: rapid.StringN(0, 200, 200).Draw(t, "event"), LastEventAt: projection.NoTime,
			}
			s.Currency, _ = event.CurrencyByCode(rapid.SampledFrom([]string{"", "EUR", "JPY", "CLF"}).Draw(t, "currency"))
			if rapid.Bool().Draw(t, "dated") {
				s.LastEventAt = rapid.Int64Range(-62_135_596_800_000_000, 253_402_300_799_999_999).Draw(t, "time")
			}
			return accounts.Row{AccountID: rapid.StringN(1, 50, 200).Draw(t, "id"), Account: s}
		}), 1, 20).Draw(t, "rows")
		types := pgtype.NewMap()
		for i, want := range slicesOf(rows) {
			sent, err := types.Encode(columnOIDs[i], pgtype.BinaryFormatCode, want, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := BalanceColumns(rows)[i].(*readmodel.Column).Fields; !bytes.Equal(got, sent) {
				t.Fatalf("column %d: %x, want %x", i, got, sent)
			}
		}
	})
}

// BenchmarkColumns encodes the columns of an upsert, with pgx and with our own code.
func BenchmarkColumns(b *testing.B) {
	euro, _ := event.CurrencyByCode("EUR")
	rows := make([]accounts.Row, readmodel.SliceRows)
	for i := range rows {
		rows[i] = accounts.Row{AccountID: "acc-00000042", Account: projection.Account{
			Currency: euro, LastEventID: "7f9c24e8-3b12-4d0f-9c7e-2f1f00000042", LastEventAt: 1_767_225_600_000_000,
		}}
	}
	for name, columns := range map[string]func([]accounts.Row) []any{"pgx": slicesOf, "own": BalanceColumns} {
		b.Run(name, func(b *testing.B) {
			types := pgtype.NewMap()
			readmodel.RegisterColumns(types)
			b.ReportAllocs()
			for b.Loop() {
				var buf []byte
				var err error
				for i, arg := range columns(rows) {
					if buf, err = types.Encode(columnOIDs[i], pgtype.BinaryFormatCode, arg, buf); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
		})
	}
}
