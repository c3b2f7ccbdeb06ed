package readmodel_test

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
	"projector/projection/event"
	"projector/readmodel"
)

// listeners note what readers are told.
type listeners struct {
	waiting bool
	told    []string
}

func (l *listeners) Waiting() bool     { return l.waiting }
func (l *listeners) Changed(id string) { l.told = append(l.told, id+"?") }
func (l *listeners) Written(id string, a *projection.Account) {
	l.told = append(l.told, fmt.Sprintf("%s %d %s", id, a.Version, event.FormatAmount(a.Balance, a.Currency)))
}

// expect compares what was told since the last time.
func (l *listeners) expect(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(l.told)
	if got := strings.Join(l.told, ", "); got != strings.Join(want, ", ") {
		t.Errorf("readers are told %q, want %q", got, want)
	}
	l.told = nil
}

// TestReadersAreToldWhatIsCommitted: while somebody waits, and only then, each account that was
// written is told, with its state where the writer knows all of it.
func TestReadersAreToldWhatIsCommitted(t *testing.T) {
	t.Parallel()
	pool, l := openPool(t), &listeners{}
	with := func(cfg *readmodel.BalanceConfig) { cfg.Readers, cfg.ParkLimit = l, 1 }
	w := newWorkerWith(t, pool, partition, with)
	w.claim("me", projection.NoOffset)
	w.fold(credit("a", 1, "1", "EUR"))
	w.mustFlush()
	l.expect(t)

	l.waiting = true
	w.fold(credit("a", 2, "10.25", "EUR"), credit("b", 1, "5", "JPY"), credit("gap", 2, "1", "EUR"), credit("gap", 3, "1", "EUR"))
	l.expect(t) // not before it is committed
	w.mustFlush()
	l.expect(t, "a 2 11.25", "b 1 5", "gap?")
	w.fold(credit("a", 2, "10.25", "EUR"), credit("gap", 1, "1", "EUR"), credit("b", 3, "1", "JPY"))
	w.mustFlush()
	l.expect(t, "b?", "gap?") // a duplicate is nothing new
	w.fold(credit("b", 2, "1", "JPY"))
	w.mustFlush()
	l.expect(t, "b?")
	w.fold(credit("b", 4, "1", "JPY"))
	w.mustFlush()
	l.expect(t, "b 4 8")

	newWorker(t, pool, partition).claim("another", projection.NoOffset)
	w.fold(credit("a", 3, "1", "EUR"))
	if _, err := w.flush(); err == nil {
		t.Error("a fenced writer has written")
	}
	l.expect(t)
}

// TestCurrentAccounts: what readers are answered with is what account_balance_current has.
func TestCurrentAccounts(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	w := newWorkerWith(t, pool, partition, func(cfg *readmodel.BalanceConfig) { cfg.ParkLimit = 1 })
	w.claim("me", projection.NoOffset)
	for _, parked := range []bool{false, true} {
		if parked {
			w.fold(
				credit("a", 4, "1", "EUR"), credit("first-missing", 2, "1", "EUR"), credit("closed", 3, "0.001", "EUR"),
				credit("overflow", 3, "1", "EUR"), credit("overflow", 4, "1", "EUR"), credit("overflow", 5, "1", "EUR"),
			)
		} else {
			w.fold(
				credit("a", 1, "10.25", "EUR"), credit("a", 2, "0.25", "EUR"), credit("yen", 1, "1050", "JPY"),
				eventAs("n-1", "AccountClosed", "nothing", 1, "2026-01-01T00:00:00Z", "{}"),
				credit("closed", 1, "1", "KWD"), eventAs("c-2", "AccountClosed", "closed", 2, "2026-01-01T00:00:00Z", "{}"),
				credit("overflow", 1, "1", "EUR"),
			)
		}
		w.mustFlush()
		ids := []string{"a", "unknown", "yen", "nothing", "closed", "overflow", "first-missing"}
		found, err := readmodel.LoadCurrent(t.Context(), pool, ids)
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
		want := lines(t, pool, `SELECT account_id || ' ' || (version IS NOT NULL)::text || ' ' || coalesce(version, 0) || ' ' || coalesce(waiting_for_version::text, '-')
			|| ' ' || coalesce(balance::text, '') || ' ' || coalesce(currency, '') || ' ' || coalesce(status, '')
			FROM account_balance_current ORDER BY account_id COLLATE "C"`)
		same(t, fmt.Sprintf("accounts, parked: %t", parked), strings.Join(got, "\n"), want)
	}
}

// TestAwait: projector_await waits for a version, for a row that is not there yet too, and
// answers what there is when the time is over.
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
	w := newWorker(t, pool, partition)
	w.claim("me", projection.NoOffset)
	w.fold(credit("a", 1, "1", "EUR"), credit("a", 2, "1", "EUR"), credit("gap", 2, "1", "EUR"))
	w.mustFlush()
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
		expect(t, await(c.account, c.version, c.within), c.want)
	}

	began := time.Now()
	answers := make(chan string, 2)
	go func() { answers <- await("a", 3, "1 minute") }()
	go func() { answers <- await("gap", 2, "1 minute") }() // which has no row
	for waiting := 0; waiting < 2; {
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE '%projector_await%' AND wait_event = 'PgSleep'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	w.fold(credit("a", 3, "1", "EUR"), credit("gap", 1, "1", "EUR"))
	w.mustFlush()
	got := []string{<-answers, <-answers}
	slices.Sort(got)
	expect(t, fmt.Sprint(got), "[2 3]")
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
