package rebuild_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"projector/readmodel/readmodeltest"
	"projector/readmodel/rebuild"
	"projector/readmodel/statement"
)

// BenchmarkCompareRows compares a million rows of account_statement, of which 100 differ, and
// corrects these 100 rows. The comparison does not delay the consumer's writes.
func BenchmarkCompareRows(b *testing.B) {
	const rows = 1_000_000
	pool := readmodeltest.OpenPool(b)
	exec := func(statement string) {
		b.Helper()
		if _, err := pool.Exec(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
	exec(`SET statement_timeout = 0`)
	s, err := rebuild.OpenShadow(b.Context(), pool, statement.Definition(), 100, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close(context.WithoutCancel(b.Context())) }()
	for begin := 0; begin < rows; begin += 100_000 {
		for _, table := range []string{"account_statement", "projector_rebuild.account_statement"} {
			exec(fmt.Sprintf(`INSERT INTO %s SELECT 'acc-' || lpad((n / 20)::text, 8, '0'), n %% 20 + 1, md5(n::text), 'FundsCredited', 10.25, 'EUR',
				'2026-01-01'::timestamptz + n * interval '1 ms', md5((n + 1)::text) FROM generate_series(%d, %d) n`, table, begin, begin+99_999))
		}
	}
	exec(`VACUUM ANALYZE account_statement`)
	for b.Loop() {
		exec(`UPDATE account_statement SET amount = 99 WHERE account_id IN (SELECT 'acc-' || lpad((n * 7)::text, 8, '0') FROM generate_series(1, 100) n) AND version = 3`)
		began := time.Now()
		report, err := s.Compare(b.Context(), rebuild.CompareOptions{Topic: "events"}, upToDate)
		if err != nil || report.Different() != 100 || report.Checked != rows {
			b.Fatalf("%+v, %v", report, err)
		}
		compared := time.Since(began)
		swapped, err := s.Swap(b.Context(), rebuild.SwapOptions{Topic: "events", Actor: "me"}, upToDate)
		if err != nil || swapped.Replaced != 100 {
			b.Fatalf("%+v, %v", swapped, err)
		}
		b.ReportMetric(compared.Seconds(), "compare-s")
		b.ReportMetric((time.Since(began)-compared).Seconds()*1000, "swap-ms")
	}
}
