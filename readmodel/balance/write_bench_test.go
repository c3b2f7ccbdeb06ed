package balance_test

import (
	"fmt"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accounts"
	"projector/readmodel/balance"
)

// BenchmarkWrite writes one flush of sorted rows to a real PostgreSQL in each iteration. The
// accounts are the same each time, so the rows are inserted once and then updated. The server
// stores its data in memory if possible. Then this measures the statement and not the disk. `make
// bench` includes the cost of a disk.
func BenchmarkWrite(b *testing.B) {
	for _, rows := range []int{1, 100, 2000, 20_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) { benchmarkWrite(b, rows) })
	}
}

func benchmarkWrite(b *testing.B, rows int) {
	b.Helper()
	pool := openPool(b)
	pos, err := readmodel.ClaimPosition(b.Context(), pool, partition,
		projection.Claim{Owner: "benchmark", TopicID: "id", Committed: projection.NoOffset})
	if err != nil {
		b.Fatal(err)
	}
	euro, _ := event.CurrencyByCode("EUR")
	c := &accounts.Changes{Rows: make([]accounts.Row, rows)}
	for i := range c.Rows {
		c.Rows[i] = accounts.Row{AccountID: fmt.Sprintf("acc-%08d", i), Account: projection.Account{
			Currency: euro, LastEventID: fmt.Sprintf("7f9c24e8-3b12-4d0f-9c7e-2f1f%08d", i), LastEventAt: 1_767_225_600_000_000,
		}}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range c.Rows {
			c.Rows[i].Stored, c.Rows[i].Exists = c.Rows[i].Account.Version, pos.Next > 0
			c.Rows[i].Account.Version++
			c.Rows[i].Account.Balance += 100
		}
		next := pos.Next + int64(rows)
		if err := balance.Write(b.Context(), pool, partition, pos, pos.Moved(projection.NextOffset{Offset: next}), c, true); err != nil {
			b.Fatal(err)
		}
		pos.Next = next
	}
	b.ReportMetric(float64(b.N)*float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
