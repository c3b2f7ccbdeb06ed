// Package readmodeltest contains the helpers that the tests of readmodel share with the tests of
// the packages below it.
package readmodeltest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/faulttest/pgproxy"
	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

// Main runs the tests of a package. In each database that package devtest creates for them, the
// schema is migrated.
func Main(m *testing.M) {
	devtest.Main(m, func(ctx context.Context, url string) error {
		_, err := readmodel.Migrate(ctx, url)
		return err
	})
}

// OpenPool opens a new, migrated database.
func OpenPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return OpenPoolAt(t, devtest.Database(t))
}

// OpenPoolAt opens the database at a URL.
func OpenPoolAt(t testing.TB, url string, options ...readmodel.ConnectOption) *pgxpool.Pool {
	t.Helper()
	pool, err := readmodel.OpenPool(t.Context(), url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// OpenLosing opens the database at a URL with a pool that loses the replies to COMMIT while lose is
// set.
func OpenLosing(t testing.TB, url string) (pool *pgxpool.Pool, lose *atomic.Bool) {
	t.Helper()
	proxy, through, err := pgproxy.ListenBefore(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	lose = &atomic.Bool{}
	proxy.LoseReplies(lose.Load)
	return OpenPoolAt(t, through), lose
}

// Exec executes SQL statements.
func Exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}

// AwaitLock returns when at least this number of sessions of the database wait for a lock, or when the
// function ended returns true. If ended is nil, it is not called.
func AwaitLock(t testing.TB, pool *pgxpool.Pool, sessions int, ended func() bool) {
	t.Helper()
	const waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for Count(t, pool, waiting) < sessions && (ended == nil || !ended()) {
		<-tick.C
	}
}

// Count returns the result of a query that returns one number.
func Count(t testing.TB, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Lines returns the first column of a query, one line for each row.
func Lines(t testing.TB, pool *pgxpool.Pool, query string, args ...any) string {
	t.Helper()
	rows, err := pool.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// Current returns the row of an account in account_balance_current as text.
func Current(t testing.TB, pool *pgxpool.Pool, account string) string {
	t.Helper()
	var line string
	err := pool.QueryRow(t.Context(), `SELECT concat_ws(' ', coalesce(currency, '-'), coalesce(balance::text, '-'),
		coalesce(version::text, '-'), coalesce(status, '-'), coalesce(last_event_id, '-'), stale::text, coalesce(waiting_for_version::text, '-'))
		FROM account_balance_current WHERE account_id = $1`, account).Scan(&line)
	if err != nil {
		t.Fatalf("account %s: %v", account, err)
	}
	return line
}

// Turnover returns the rows of daily_turnover as text.
func Turnover(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return Lines(t, pool, "SELECT concat_ws(' ', day, currency, credited, debited, events) FROM daily_turnover ORDER BY day, currency")
}

// Statement returns the rows of account_statement as text.
func Statement(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return Lines(t, pool, `SELECT concat_ws(' ', account_id, version, event_id, event_type, coalesce(amount::text, '-'), coalesce(currency, '-'),
	to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), coalesce(correlation_id, '-')) FROM account_statement ORDER BY account_id, version`)
}

// Expect fails the test if two texts are not the same.
func Expect(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Same is like Expect, and its message names what was compared.
func Same(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}
