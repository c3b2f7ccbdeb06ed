package rebuild_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/readmodel/rebuild"
)

// millionRows has the statements that fill the tables of each projection, and the statements that
// damage every hundredth of the first rows.
var millionRows = map[string]struct {
	tables       []string
	fill, damage string
}{
	"account_balance": {
		[]string{"account_balance"},
		`INSERT INTO account_balance (account_id, currency, balance, version, status, last_event_id)
		 SELECT 'acc-' || n, 'EUR', n, 5, 'open', 'e-' || n FROM generate_series(1, %d) AS n`,
		`UPDATE account_balance SET balance = balance + 1 WHERE account_id LIKE 'acc-%%99' AND balance <= %d`,
	},
	"account_statement": {
		[]string{"account_statement"},
		`INSERT INTO account_statement (account_id, version, event_id, event_type, amount, currency, occurred_at)
		 SELECT 'acc-' || n %% 10000, n, 'e-' || n, 'FundsCredited', n, 'EUR', '2026-01-01' FROM generate_series(1, %d) AS n`,
		`UPDATE account_statement SET amount = amount + 1 WHERE version %% 100 = 99 AND version <= %d`,
	},
	"daily_turnover": {
		[]string{"daily_turnover", "inbox"},
		`INSERT INTO daily_turnover SELECT date '1900-01-01' + n / 20, 'C' || lpad((n %% 20)::text, 2, '0'), n, 0, 1 FROM generate_series(1, %[1]d) AS n;
		 INSERT INTO inbox (message_id, handler) SELECT 'e-' || n, 'daily_turnover' FROM generate_series(1, %[1]d) AS n`,
		`UPDATE daily_turnover SET debited = 1 WHERE credited::bigint %% 100 = 99 AND credited <= %d`,
	},
	"counted": {
		[]string{"counted", "inbox"},
		`INSERT INTO counted SELECT 'acc-' || n, 5, 1 FROM generate_series(1, %[1]d) AS n;
		 INSERT INTO inbox (message_id, handler) SELECT 'e-' || n, 'counted' FROM generate_series(1, %[1]d) AS n`,
		`UPDATE counted SET events = 7 WHERE substr(account_id, 5)::bigint %% 100 = 99 AND substr(account_id, 5)::bigint <= %d`,
	},
	"summed": {
		[]string{"summed", "projection_account"},
		`INSERT INTO summed SELECT 'acc-' || n, 1, '' FROM generate_series(1, %[1]d) AS n;
		 INSERT INTO projection_account (projection, account_id, version) SELECT 'summed', 'acc-' || n, 5 FROM generate_series(1, %[1]d) AS n`,
		`UPDATE summed SET amount = 2 WHERE substr(account_id, 5)::bigint %% 100 = 99 AND substr(account_id, 5)::bigint <= %d`,
	},
}

// waitingRows has the table of the waiting events of a projection. The statement fillWaiting fills it
// with one event for every fifth account. A tenth of the events belongs to accounts without a row.
var waitingRows = map[string]struct{ table, columns, values string }{
	"account_balance": {"parked_event", "", ""},
	"summed":          {"projection_parked_event", "projection, ", "'summed', "},
}

const fillWaiting = `INSERT INTO %[1]s (%[2]saccount_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, key, value, headers)
	SELECT %[3]sCASE WHEN n %% 10 = 0 THEN 'new-' ELSE 'acc-' END || n * 5, 7, 'version_gap', 'p-' || n, 6, 'events', 0, n, 0, 'k', repeat('v', 300)::bytea, '{}'
	FROM generate_series(1, %[4]d) AS n`

// BenchmarkAMillionRows compares a table of 1,000,000 rows and replaces the 100 or
// 10,000 rows that are wrong. During the swap, another session writes the position again and again. For each iteration
// the benchmark measures the longest time that such a write took, and reports the average of these
// times. Accounts are also compared with 200,000 waiting events, with and without the statistics of
// ANALYZE, and after all waiting events were lost.
func BenchmarkAMillionRows(b *testing.B) {
	for _, d := range definitions(b) {
		b.Run(d.Name(), func(b *testing.B) { compareAMillion(b, d, 100, 0, true) })
		b.Run(d.Name()+"/wrong", func(b *testing.B) { compareAMillion(b, d, 10_000, 0, true) })
		if waitingRows[d.Name()].table != "" {
			b.Run(d.Name()+"/waiting", func(b *testing.B) { compareAMillion(b, d, 100, 200_000, true) })
			b.Run(d.Name()+"/waiting,unknown", func(b *testing.B) { compareAMillion(b, d, 100, 200_000, false) })
		}
	}
}

func compareAMillion(b *testing.B, d definition, wrong, waiting int, analyzed bool) {
	b.Helper()
	const rows = 1_000_000
	of, tables := millionRows[d.Name()], append([]string{"projector_position"}, millionRows[d.Name()].tables...)
	pool := openPool(b)
	execute(b, pool, fmt.Sprintf(of.fill, rows))
	if waiting > 0 {
		w := waitingRows[d.Name()]
		tables = append(tables, w.table)
		execute(b, pool, fmt.Sprintf(fillWaiting, w.table, w.columns, w.values, waiting))
	}
	execute(b, pool, `INSERT INTO projector_position (projection, consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence)
		VALUES ($1, 'g', 'events', 0, 1, 1, 'id', 'me', 1)`, d.Name())
	shadow, err := rebuild.OpenShadow(b.Context(), pool, d.Definition, 100, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := shadow.Close(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	}()
	for _, table := range tables {
		execute(b, pool, fmt.Sprintf("INSERT INTO projector_rebuild.%[1]s SELECT * FROM %[1]s", table))
	}
	if analyzed {
		execute(b, pool, "ANALYZE")
	}
	var compared, locked, waited time.Duration
	for b.Loop() {
		execute(b, pool, fmt.Sprintf(of.damage, 100*wrong))
		start := time.Now()
		report, err := shadow.Compare(b.Context(), rebuild.CompareOptions{Topic: topicName}, upToDate)
		if err != nil || report.Different() != int64(wrong) {
			b.Fatal(report, err)
		}
		compared += time.Since(start)
		longest := writing(b, pool)
		var from time.Time
		done, err := shadow.Swap(b.Context(), rebuild.SwapOptions{Topic: topicName, Actor: "me"}, func(context.Context, []rebuild.TopicPosition) error {
			from = time.Now() // at the last call, the positions are locked
			return nil
		})
		if err != nil || done.Replaced != int64(wrong) {
			b.Fatal(done, err)
		}
		locked += time.Since(from)
		waited += longest()
	}
	n := float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(compared.Seconds()/n, "s-to-compare")
	b.ReportMetric(float64(locked.Milliseconds())/n, "ms-locked")
	b.ReportMetric(float64(waited.Milliseconds())/n, "ms-waited")
	if waiting > 0 {
		execute(b, pool, "DELETE FROM "+waitingRows[d.Name()].table)
		start := time.Now()
		if report, err := shadow.Compare(b.Context(), rebuild.CompareOptions{Topic: topicName}, upToDate); err != nil || report.Different() != int64(waiting) {
			b.Fatal(report, err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s-to-compare-lost")
	}
}

// The function writing writes the position again and again, as a consumer does. The returned
// function stops the writes and returns the longest time of a write.
func writing(b *testing.B, pool *pgxpool.Pool) (longest func() time.Duration) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	took := make(chan time.Duration, 1)
	go func() {
		var most time.Duration
		for ctx.Err() == nil {
			start := time.Now()
			_, _ = pool.Exec(ctx, "UPDATE projector_position SET updated_at = now()") // the last write is cancelled
			most = max(most, time.Since(start))
		}
		took <- most
	}()
	return func() time.Duration { cancel(); return <-took }
}
