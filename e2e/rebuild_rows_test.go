package e2e_test

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/internal/testbank"
)

// spoiling has statements that make rows of a projection wrong, and a query that shows whether the
// rows are wrong.
type spoiling struct {
	statements []string
	// query is SQL about the changed rows. It returns "wrong" if all of them are wrong and
	// "right" if all are correct. Otherwise it returns a description.
	query string
}

// The rows of daily_turnover are changed and not deleted. A consumer adds to these rows, and would
// insert a deleted row again.
var spoilings = map[string]spoiling{
	"account_statement": {[]string{
		`CREATE TABLE gone AS SELECT * FROM account_statement WHERE abs(hashtext(event_id)) % 50 = 0`,
		`DELETE FROM account_statement s USING gone g WHERE s.account_id = g.account_id AND s.version = g.version`,
		`CREATE TABLE spoilt AS SELECT * FROM account_statement WHERE abs(hashtext(event_id)) % 50 = 1`,
		`UPDATE account_statement s SET amount = 7.77, event_id = 'spoilt' FROM spoilt g WHERE s.account_id = g.account_id AND s.version = g.version`,
		`INSERT INTO account_statement (account_id, version, event_id, event_type, occurred_at)
		 SELECT 'phantom', n, 'phantom-' || n, 'AccountOpened', now() FROM generate_series(1, 20) n`,
	}, `SELECT CASE
		WHEN back = 0 AND spoilt = (SELECT count(*) FROM spoilt) AND phantoms = 20 THEN 'wrong'
		WHEN back = (SELECT count(*) FROM gone) AND spoilt = 0 AND phantoms = 0 THEN 'right'
		ELSE concat_ws(' ', back, spoilt, phantoms) END
	 FROM (SELECT (SELECT count(*) FROM account_statement s JOIN gone g ON g.account_id = s.account_id AND g.version = s.version) AS back,
		(SELECT count(*) FROM account_statement WHERE event_id = 'spoilt') AS spoilt,
		(SELECT count(*) FROM account_statement WHERE account_id = 'phantom') AS phantoms) AS now`},
	"daily_turnover": {[]string{
		`CREATE TABLE spoilt AS SELECT day, currency FROM daily_turnover WHERE currency IN ('EUR', 'USD')`,
		`UPDATE daily_turnover t SET credited = credited - 1000000000000, events = events + 3
		 FROM spoilt g WHERE g.day = t.day AND g.currency = t.currency`,
		`INSERT INTO daily_turnover SELECT date '1999-01-01' + n, 'EUR', 1.00, 0.00, 1 FROM generate_series(1, 20) n`,
	}, `SELECT CASE WHEN spoilt = (SELECT count(*) FROM spoilt) AND phantoms = 20 THEN 'wrong'
		WHEN spoilt = 0 AND rows >= (SELECT count(*) FROM spoilt) AND phantoms = 0 THEN 'right'
		ELSE concat_ws(' ', rows, spoilt, phantoms) END
	 FROM (SELECT count(*) FILTER (WHERE day >= '2000-01-01') AS rows,
		count(*) FILTER (WHERE day >= '2000-01-01' AND credited < 0) AS spoilt,
		count(*) FILTER (WHERE day < '2000-01-01') AS phantoms FROM daily_turnover) AS now`},
}

// result runs the query.
func (s *spoiling) result(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (seen string, err error) {
	err = db.QueryRow(ctx, s.query).Scan(&seen)
	return seen, err
}

// The method polled runs the query of s in a loop. The returned function stops the loop and returns
// all different results.
func (w *world) polled(s *spoiling) (stop func() []string) {
	ctx, cancel := context.WithCancel(w.t.Context())
	all := make(chan []string, 1)
	go func() {
		var different []string
		for ctx.Err() == nil {
			if seen, err := s.result(ctx, w.db); err == nil && !slices.Contains(different, seen) {
				different = append(different, seen)
			}
			pause(ctx, 5*time.Millisecond)
		}
		all <- different
	}()
	return func() []string { cancel(); return <-all }
}

// TestRowsAreRebuiltBesideALiveConsumer spoils rows by hand and rebuilds them while events arrive,
// many of them twice. In the end every row must equal the row of the oracle. In every read, either
// all spoiled rows must be wrong or all of them must be right.
func TestRowsAreRebuiltBesideALiveConsumer(t *testing.T) {
	t.Parallel()
	for _, b := range books {
		t.Run(b.projection, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t, 4), spoilings[b.projection]
			records := testbank.Generate(testbank.Options{
				Seed: seed(t), Records: scaled(16_000), Partitions: w.partitions, Accounts: 300, Clean: true, Ranges: true,
			})
			choose := "--projection=" + b.projection
			half, rest := len(records)/2, len(records)*9/10
			w.produce(records[:half])
			p := w.start(choose)
			await(t, "the first half consumed", w.arrived)
			for _, statement := range s.statements {
				w.exec(statement)
			}
			plan := w.rebuild(choose)
			if plan.Different < 20 || plan.Result != nil {
				t.Errorf("%d rows were spoilt at least, but: %+v", 20, plan)
			}

			before, err := w.db.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = before.Rollback(context.WithoutCancel(t.Context())) }()
			if seen, err := s.result(t.Context(), before); err != nil || seen != "wrong" {
				t.Fatalf("before the rebuild: %s, %v", seen, err)
			}
			seen := w.polled(&s)
			finish := w.feed(records[half:rest], max(1, len(records)/400), 20*time.Millisecond)
			at := sum(w.positions())
			await(t, "the second half is being consumed", w.passed(at+1))
			done := w.rebuild(choose, "--yes", "--remove", "--max-differences=100000")
			if done.Changed != plan.Different || done.Result == nil {
				t.Errorf("planned %+v, done %+v", plan, done)
			}
			if seen, err := s.result(t.Context(), before); err != nil || seen != "wrong" {
				t.Errorf("a snapshot of before the swap sees: %s, %v", seen, err)
			}
			finish()
			w.produce(records[rest:])
			await(t, "every record consumed", w.arrived)
			await(t, "the table is the oracle's", w.differs(b, records))
			if all := seen(); !slices.Equal(all, []string{"wrong", "right"}) {
				t.Errorf("readers have seen: %v", all)
			}
			if again := w.rebuild(choose); again.Different != 0 || again.LeftAlone != 0 || again.Checked == 0 {
				t.Errorf("rebuilt again, it differs: %+v", again)
			}
			await(t, "ready", p.answers("/readyz", 200, ""))
			p.terminate()
			w.atRest()
		})
	}
}

// TestAStoppedRebuildOfRowsChangesNothing freezes one rebuild and kills another. This happens after
// the rebuild has replaced the rows and before it commits.
func TestAStoppedRebuildOfRowsChangesNothing(t *testing.T) {
	t.Parallel()
	for _, b := range books {
		t.Run(b.projection, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t, 2), spoilings[b.projection]
			records := testbank.Generate(testbank.Options{Seed: seed(t), Records: 1000, Partitions: w.partitions, Accounts: 20, Clean: true})
			rest := len(records) - 20
			choose := "--projection=" + b.projection
			w.produce(records[:rest])
			p := w.start(choose)
			await(t, "every record consumed", w.arrived)
			for _, statement := range s.statements {
				w.exec(statement)
			}
			launched := func() *program {
				return launch(t, nil, []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]}, "rebuild", "--topic="+w.topic,
					"--group="+w.group, "--ignore-event-types="+testbank.IgnoredType, choose, "--yes", "--remove", "--max-differences=100000", "--output=json")
			}
			still := func(when string) {
				t.Helper()
				if seen, err := s.result(t.Context(), w.db); err != nil || seen != "wrong" {
					t.Errorf("%s: %s, %v", when, seen, err)
				}
			}
			release := w.lockAudit()
			killed := launched()
			await(t, "the swap is at its last statement", w.waitingToAudit)
			killed.kill()
			release()
			still("killed")

			release = w.lockAudit()
			frozen := launched()
			await(t, "the swap is at its last statement", w.waitingToAudit)
			frozen.Freeze()
			release()
			w.produce(records[rest:])
			awaitWithin(t, swapHoldsLocks, "the consumer goes on", w.arrived)
			still("stopped")
			frozen.Signal(syscall.SIGCONT)
			if status := frozen.exit(swapHoldsLocks); status != 1 {
				t.Errorf("exit status %d, want 1", status)
			}
			await(t, "a message that names what happened", frozen.logged("the swap was given up", "nothing was changed"))
			still("continued")

			if again := w.rebuild(choose, "--yes", "--remove", "--max-differences=100000"); again.Changed < 20 {
				t.Errorf("repeated: %+v", again)
			}
			if wrong := w.differs(b, records)(); wrong != "" {
				t.Errorf("repeated: %s", wrong)
			}
			p.terminate()
		})
	}
}
