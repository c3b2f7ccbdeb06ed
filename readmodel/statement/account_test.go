package statement_test

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/statement"
	"projector/sql"
)

const placesOfRows = `SELECT concat_ws(' ', account_id, version, coalesce(source_partition || '/' || source_offset, '-'))
	FROM account_statement ORDER BY account_id, version`

// A row holds the offset at which its event was read first. A redelivery does not change it.
func TestARowKeepsItsFirstPlace(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Definition(), readmodel.Partition{Group: "g", Topic: "events", Number: 3})
	first, second := eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")), eventAs("e2", "FundsCredited", "a", 2, noon, eur("1"))
	f.Feed("", first, first, second, first)
	const want = "a 1 3/1\na 2 3/3"
	same(t, "places", lines(t, pool, placesOfRows), want)
	f.Feed(second, first)
	newFeeder(t, pool, statement.Definition(), readmodel.Partition{Group: "another", Topic: "events"}).Feed(second, first)
	same(t, "places", lines(t, pool, placesOfRows), want)
}

func inTx(t *testing.T, pool *pgxpool.Pool, statements string) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), statements)
		return err
	})
}

// The migration does not rewrite existing rows, and no session waits long because of a reader's
// lock.
func TestPlacesAreAddedToALargeTable(t *testing.T) {
	pool := openPool(t)
	migration, err := sql.Migrations.ReadFile("migrations/00010_statement_source.sql")
	if err != nil {
		t.Fatal(err)
	}
	up := string(migration)
	if err := inTx(t, pool, `DROP VIEW account_statement_balance, account_skipped; DROP INDEX dlq_action_skipped;
		ALTER TABLE account_statement DROP COLUMN source_partition, DROP COLUMN source_offset`); err != nil {
		t.Fatal(err)
	}
	if err := inTx(t, pool, `INSERT INTO account_statement (account_id, version, event_id, event_type, amount, currency, occurred_at)
		SELECT 'a', v, 'e' || v, 'FundsCredited', 1.00, 'EUR', '`+noon+`' FROM generate_series(1, 1000) v`); err != nil {
		t.Fatal(err)
	}
	const written = `SELECT pg_relation_filenode('account_statement')::text || max(xmin::text) FROM account_statement`
	before := lines(t, pool, written)

	reader, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), "SELECT FROM account_statement LIMIT 1"); err != nil {
		t.Fatal(err)
	}
	var refused *pgconn.PgError
	impatient := strings.Replace(up, "lock_timeout = '5s'", "lock_timeout = '10ms'", 1)
	if err := inTx(t, pool, impatient); !errors.As(err, &refused) || refused.Code != "55P03" {
		t.Errorf("beside a reader: %v, want 55P03", err)
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := inTx(t, pool, up); err != nil {
		t.Fatal(err)
	}
	same(t, "what is written", lines(t, pool, written), before)

	f := newFeeder(t, pool, statement.Definition(), partition)
	f.Feed(eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")), eventAs("b1", "FundsCredited", "b", 1, noon, eur("1")))
	same(t, "outcomes", f.Outcomes(), "1 1 0 0")
	same(t, "place of what is new", lines(t, pool, "SELECT source_partition || '/' || source_offset FROM account_statement WHERE source_offset IS NOT NULL"), "0/1")

	// The comparison of a rebuild accepts rows without an offset.
	if err := inTx(t, pool, "DELETE FROM account_statement WHERE version > 2; UPDATE account_statement SET amount = 7 WHERE version = 2"); err != nil {
		t.Fatal(err)
	}
	s := readmodeltest.OpenRowShadow(t, pool, statement.Definition(), []string{
		eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")), eventAs("b1", "FundsCredited", "b", 1, noon, eur("1")),
	})
	report := s.MustCompare()
	if report.Matched != 1 {
		t.Errorf("%+v", report)
	}
}

// shownStatement returns the output of statement.Account as "version balance", separated by commas.
func shownStatement(t *testing.T, pool *pgxpool.Pool, q statement.Query) (string, statement.Summary, error) {
	t.Helper()
	var shown []string
	sum, err := statement.Account(t.Context(), pool, q, func(l *statement.Line) error {
		running := "unknown"
		if l.Running != nil {
			running = *l.Running
		}
		shown = append(shown, fmt.Sprint(l.Version, " ", running))
		return nil
	})
	return strings.Join(shown, ", "), sum, err
}

// TestTheStatementOfAPart shows that the running balance in any part of a statement is the same as
// in the whole statement. The balance is unknown after a missing version.
func TestTheStatementOfAPart(t *testing.T) {
	devtest.FewerChecks(t, "25")
	pool := openPool(t)
	if _, _, err := shownStatement(t, pool, statement.Query{AccountID: "a", FirstVersion: 1}); !errors.Is(err, statement.ErrNeverRun) {
		t.Errorf("before anything has run: %v", err)
	}
	newFeeder(t, pool, statement.Definition(), partition).Feed("")
	run, began := 0, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(rt *rapid.T) {
		run++
		id := fmt.Sprint("account ", run)
		versions := rapid.SliceOfNDistinct(rapid.Int64Range(1, 10), 1, -1, rapid.ID[int64]).Draw(rt, "versions")
		skipped := rapid.SliceOfNDistinct(rapid.Int64Range(1, 10), 0, 3, rapid.ID[int64]).Draw(rt, "skipped")
		if rapid.Bool().Draw(rt, "whole") {
			slices.Sort(versions)
			for i := range versions {
				versions[i] = int64(i + 1)
			}
		}
		q := statement.Query{AccountID: id, FirstVersion: 1}
		if rapid.Bool().Draw(rt, "from") {
			q.From = new(rapid.Int64Range(0, 11).Draw(rt, "version from"))
		}
		if rapid.Bool().Draw(rt, "to") {
			q.To = new(rapid.Int64Range(0, 11).Draw(rt, "version to"))
		}
		if rapid.Bool().Draw(rt, "in time") {
			q.Since = began.Add(time.Duration(rapid.IntRange(0, 4).Draw(rt, "since")) * time.Hour)
			q.Until = began.Add(time.Duration(rapid.IntRange(2, 6).Draw(rt, "until")) * time.Hour)
		}
		for _, v := range skipped {
			mustExec(t, rt, pool, `INSERT INTO dlq_action (action, account_id, version, actor, result) VALUES ('skip', $1, $2, 'me', 'skipped')`, id, v)
		}
		cents, at := map[int64]int64{}, map[int64]time.Time{}
		for _, v := range versions {
			cents[v] = rapid.Int64Range(-9999, 9999).Draw(rt, "cents")
			at[v] = began.Add(time.Duration(rapid.IntRange(0, 5).Draw(rt, "at")) * time.Hour)
			mustExec(t, rt, pool, `INSERT INTO account_statement (account_id, version, event_id, event_type, amount, currency, occurred_at)
				VALUES ($1, $2, 'e', 'FundsCredited', $3::text::numeric, 'EUR', $4)`, id, v, big.NewRat(cents[v], 100).FloatString(2), at[v])
		}
		var want []string
		sum, known := int64(0), true
		for v := int64(1); v <= 10; v++ {
			_, there := cents[v]
			passed := slices.Contains(skipped, v)
			if known = known && (there || passed); there && !passed {
				sum += cents[v]
			}
			if !there || q.From != nil && v < *q.From || q.To != nil && v > *q.To ||
				!q.Since.IsZero() && (at[v].Before(q.Since) || !at[v].Before(q.Until)) {
				continue
			}
			running := "unknown"
			if known {
				running = big.NewRat(sum, 100).FloatString(2)
			}
			want = append(want, fmt.Sprint(v, " ", running))
		}
		got, _, err := shownStatement(t, pool, q)
		if running := strings.Join(want, ", "); err != nil || zeroes(got) != zeroes(running) {
			rt.Fatalf("skipped %v, %+v: %v\ngot  %s\nwant %s", skipped, q, err, got, running)
		}
	})
}

// zeroes writes 0 as 0.00. Before the first entry with an amount, the currency is not known.
func zeroes(text string) string {
	return strings.ReplaceAll(text+",", " 0,", " 0.00,")
}

func mustExec(t *testing.T, rt *rapid.T, pool *pgxpool.Pool, text string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), text, args...); err != nil {
		rt.Fatal(err)
	}
}

// A statement is compared with the balance at the same version, and reports up to which version it
// goes.
func TestAStatementIsComparedWithTheBalance(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Definition(), partition)
	f.Feed(eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")), eventAs("e2", "FundsCredited", "a", 2, noon, eur("2")))
	var q statement.Query
	for _, c := range []struct {
		version  int64
		balance  string
		to       *int64
		differs  bool
		isBehind bool
	}{
		{1, "1.00", nil, false, false},
		{1, "1.01", nil, true, false},
		{1, "9.00", new(int64(0)), false, false}, // no event of the account was read
		{2, "3.00", nil, false, false},
		{2, "3.01", new(int64(2)), true, false},
		{2, "3.01", new(int64(1)), false, false},
		{3, "3.00", nil, false, true},
		{3, "3.00", new(int64(1)), false, false},
	} {
		q = statement.Query{AccountID: "a", FirstVersion: 1, To: c.to}
		if err := inTx(t, pool, fmt.Sprintf(`DELETE FROM account_balance; INSERT INTO account_balance (account_id, currency, balance, version, status)
			VALUES ('a', 'EUR', %s, %d, 'open'), ('z', 'EUR', 1, 1, 'open')`, c.balance, c.version)); err != nil {
			t.Fatal(err)
		}
		_, sum, err := shownStatement(t, pool, q)
		if err != nil || sum.Differs != c.differs || sum.Behind != c.isBehind {
			t.Errorf("%+v: %v, %+v", c, err, sum)
		}
	}
	for id, want := range map[string]error{"nobody": accountdb.ErrUnknownAccount, "z": statement.ErrNoEntry} {
		if _, _, err := shownStatement(t, pool, statement.Query{AccountID: id, FirstVersion: 1, To: new(int64(5))}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
}
