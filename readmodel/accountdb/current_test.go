package accountdb_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/projection"
	"projector/readmodel/accountdb"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
)

// TestCurrentAccounts shows that LoadCurrent returns the same values as account_balance_current.
func TestCurrentAccounts(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	w := readmodeltest.NewWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkLimit = 1 })
	w.MustClaim("me", projection.NoOffset)
	for _, parked := range []bool{false, true} {
		if parked {
			w.MustFold(
				credit("a", 4, "1", "EUR"), credit("first-missing", 2, "1", "EUR"), credit("closed", 3, "0.001", "EUR"),
				credit("overflow", 3, "1", "EUR"), credit("overflow", 4, "1", "EUR"), credit("overflow", 5, "1", "EUR"),
			)
		} else {
			w.MustFold(
				credit("a", 1, "10.25", "EUR"), credit("a", 2, "0.25", "EUR"), credit("yen", 1, "1050", "JPY"),
				readmodeltest.Event("n-1", "AccountClosed", "nothing", 1, "2026-01-01T00:00:00Z", "{}"),
				credit("closed", 1, "1", "KWD"), readmodeltest.Event("c-2", "AccountClosed", "closed", 2, "2026-01-01T00:00:00Z", "{}"),
				credit("overflow", 1, "1", "EUR"),
			)
		}
		w.MustFlush()
		ids := []string{"a", "unknown", "yen", "nothing", "closed", "overflow", "first-missing"}
		found, err := accountdb.LoadCurrent(t.Context(), pool, ids)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range found {
			waits := "-"
			if c.WaitingFor != nil {
				waits = fmt.Sprint(*c.WaitingFor)
			}
			got = append(got, fmt.Sprintf("%s %t %d %s %s %s %s", c.AccountID, c.Exists, c.Version, waits, c.Balance, c.Currency, c.Status))
		}
		slices.Sort(got)
		want := readmodeltest.Lines(t, pool, `SELECT account_id || ' ' || (version IS NOT NULL)::text || ' ' || coalesce(version, 0) || ' ' || coalesce(waiting_for_version::text, '-')
			|| ' ' || coalesce(balance::text, '') || ' ' || coalesce(currency, '') || ' ' || coalesce(status, '')
			FROM account_balance_current ORDER BY account_id COLLATE "C"`)
		readmodeltest.Same(t, fmt.Sprintf("accounts, parked: %t", parked), strings.Join(got, "\n"), want)
	}
}

// TestAwait shows that projector_await waits for a version, even if the row does not exist yet.
// When the time is over, it returns the current version.
func TestAwait(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	await := func(account string, version int64, within string) string {
		var reached *int64
		if err := pool.QueryRow(t.Context(), "SELECT projector_await($1, $2, $3::text::interval)", account, version, within).Scan(&reached); err != nil {
			return err.Error()
		}
		if reached == nil {
			return "NULL"
		}
		return fmt.Sprint(*reached)
	}
	w := readmodeltest.NewWorker(t, pool, partition)
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 2, "1", "EUR"), credit("gap", 2, "1", "EUR"))
	w.MustFlush()
	for _, c := range []struct {
		account string
		version int64
		within  string
		want    string
	}{
		{"a", 1, "1 minute", "2"},
		{"a", 3, "0", "2"},
		{"a", 3, "30 ms", "2"},
		{"a", 3, "-1 s", "2"},
		{"nobody", 1, "30 ms", "NULL"},
		{"gap", 1, "0", "NULL"},
	} {
		readmodeltest.Expect(t, await(c.account, c.version, c.within), c.want)
	}

	began := time.Now()
	answers := make(chan string, 2)
	go func() { answers <- await("a", 3, "1 minute") }()
	go func() { answers <- await("gap", 2, "1 minute") }() // this account has no row
	for waiting := 0; waiting < 2; {
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE '%projector_await%' AND wait_event = 'PgSleep'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	w.MustFold(credit("a", 3, "1", "EUR"), credit("gap", 1, "1", "EUR"))
	w.MustFlush()
	got := []string{<-answers, <-answers}
	slices.Sort(got)
	readmodeltest.Expect(t, fmt.Sprint(got), "[2 3]")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("answered after %s", took)
	}

	err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "SELECT projector_await('a', 9, '1 minute')").Scan(new(*int64))
	})
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "25001" || !strings.Contains(refused.Hint, "READ COMMITTED") {
		t.Errorf("REPEATABLE READ: %v", err)
	}
}
