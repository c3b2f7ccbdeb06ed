package outbox_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/deploy/debezium"
	"projector/internal/devstack/devtest"
	"projector/tools/debezium-demo/outbox"
)

func TestMain(m *testing.M) { devtest.Main(m, nil) }

// mismatched counts the accounts whose events in the outbox do not match the books.
const mismatched = `
SELECT count(*)
FROM ledger_balance l
FULL JOIN (
    SELECT aggregateid, count(*) AS events, max(version) AS version,
           coalesce(sum(CASE type WHEN 'FundsCredited' THEN (payload->>'amount')::numeric
                                  WHEN 'FundsDebited' THEN -(payload->>'amount')::numeric END), 0) AS balance
    FROM outbox GROUP BY aggregateid
) o ON o.aggregateid = l.account_id
WHERE (l.version, l.version, l.balance) IS DISTINCT FROM (o.events, o.version, o.balance)`

// madeOrLost counts the currencies in which transfers created or lost money. Each account was
// opened with a million units, so the total of a currency is known.
const madeOrLost = `
SELECT count(*) FROM (SELECT sum(minor) AS total, count(*) AS accounts FROM ledger GROUP BY currency) c
WHERE total <> accounts * 1000000`

func TestTheOutboxMatchesTheBooks(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), devtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	bank, err := outbox.NewBank(t.Context(), pool, debezium.Outbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := bank.Open(t.Context(), outbox.MinAccounts); err != nil {
		t.Fatal(err)
	}
	made := workUntilEvents(t, bank, 300)
	accounts, err := bank.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var versions int64
	for _, a := range accounts {
		versions += a.Version
	}
	if versions != made {
		t.Errorf("the outbox tells of %d events, the books of %d", made, versions)
	}
	for what, sql := range map[string]string{"differ from the outbox": mismatched, "(currencies) are out of balance": madeOrLost} {
		var n int
		if err := pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			t.Errorf("%d accounts %s", n, what)
		}
	}
}

// workUntilEvents lets the bank work until its outbox has the given number of events. It returns
// the number of events after all clients have ended.
func workUntilEvents(t *testing.T, bank *outbox.Bank, events int64) (made int64) {
	t.Helper()
	working, goHome := context.WithCancel(t.Context())
	defer goHome()
	ended := make(chan error, 1)
	go func() { ended <- bank.Work(working, 8, 2000) }()
	var err error
	for made < events && err == nil {
		if made, err = bank.EventCount(t.Context()); err != nil {
			t.Error(err)
		}
	}
	goHome()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if made, err = bank.EventCount(t.Context()); err != nil {
		t.Fatal(err)
	}
	return made
}
