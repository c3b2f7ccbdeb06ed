package readmodel_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel/statement"
)

const statementRows = `SELECT concat_ws(' ', account_id, version, event_id, event_type, coalesce(amount::text, '-'), coalesce(currency, '-'),
	to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), coalesce(correlation_id, '-')) FROM account_statement ORDER BY account_id, version`

func statementOf(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return lines(t, pool, statementRows)
}

func TestStatementHasOneRowAnEvent(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Kind(), partition)
	f.feed(
		eventAs("e4", "AccountClosed", "a", 4, noon, "{}"), // whatever the order
		eventAs("e1", "AccountOpened", "a", 1, "2026-01-01T00:00:00.1234567+01:00", `{"currency":"EUR"}`),
		eventAs("e2", "FundsCredited", "a", 2, noon, eur("10.5")),
		eventAs("e3", "FundsDebited", "a", 3, noon, eur("0.01")),
		eventAs("j1", "FundsCredited", "b", 7, noon, `{"amount":"5","currency":"JPY"}`),
		"", "garbage",
	)
	want := "a 1 e1 AccountOpened - EUR 2025-12-31T23:00:00.123456 c-e1\n" +
		"a 2 e2 FundsCredited 10.50 EUR 2026-01-01T12:00:00.000000 c-e2\n" +
		"a 3 e3 FundsDebited -0.01 EUR 2026-01-01T12:00:00.000000 c-e3\n" +
		"a 4 e4 AccountClosed - - 2026-01-01T12:00:00.000000 c-e4\n" +
		"b 7 j1 FundsCredited 5 JPY 2026-01-01T12:00:00.000000 c-j1"
	same(t, "rows", statementOf(t, pool), want)
	same(t, "outcomes", f.outcomes(), "5 0 1 1")
	same(t, "letters", f.letters(), "malformed_payload ")
	same(t, "missing", lines(t, pool, "SELECT concat_ws(' ', account_id, from_version, to_version) FROM account_statement_missing"), "b 1 6")
}

func TestStatementTellsDuplicatesFromConflicts(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Kind(), partition)
	first := eventAs("e1", "FundsCredited", "a", 1, noon, eur("1"))
	f.feed(first, eventAs("e2", "FundsCredited", "a", 2, noon, eur("2")))
	before := lines(t, pool, "SELECT ctid::text || xmin::text FROM account_statement")
	f.feed(
		first,
		eventAs("other", "FundsCredited", "a", 1, noon, eur("9")),
		eventAs("e1", "FundsCredited", "a", 1, noon, eur("-1")), // poison, and there already
		eventAs("e1", "Nonsense", "a", 1, noon, "{}"),
		eventAs("worse", "FundsCredited", "a", 2, noon, eur("-1")),
	)
	same(t, "outcomes", f.outcomes(), "2 3 0 2")
	same(t, "letters", f.letters(), "version_conflict other, version_conflict worse")
	same(t, "rows", lines(t, pool, "SELECT ctid::text || xmin::text FROM account_statement"), before)
}

func TestStatementTellsThemApartWithinABatch(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Kind(), partition)
	f.feed(
		eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")),
		eventAs("other", "FundsCredited", "a", 1, noon, eur("9")),
		eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")),
		eventAs("e1", "Nonsense", "a", 1, noon, "{}"),
		eventAs("poison", "FundsCredited", "a", 2, noon, eur("0")),
		eventAs("right", "FundsCredited", "a", 2, noon, eur("2")),
	)
	same(t, "outcomes", f.outcomes(), "2 2 0 2")
	same(t, "letters", f.letters(), "version_conflict other, invalid_amount poison")
	same(t, "rows", lines(t, pool, "SELECT event_id FROM account_statement ORDER BY version"), "e1\nright")
}

func TestStatementOfARangeReadAgain(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Kind(), partition)
	values := []string{
		eventAs("poison", "FundsCredited", "a", 1, noon, eur("0")),
		eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")),
		eventAs("e2", "FundsCredited", "a", 2, noon, eur("2")),
	}
	f.feed(values...)
	f.claim(0) // somebody has reset the group's offsets
	f.feed(values...)
	// The poison event was judged before; what stands in its place is no conflict.
	same(t, "outcomes", f.outcomes(), "2 3 0 1")
	same(t, "letters", f.letters(), "invalid_amount poison")
}

func TestStatementIsWrittenByItsOwnerOnly(t *testing.T) {
	pool := openPool(t)
	stale, owner := newFeeder(t, pool, statement.Kind(), partition), newFeeder(t, pool, statement.Kind(), partition)
	stale.judge(eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")))
	if err := stale.flush(); err == nil {
		t.Error("a fenced owner has written")
	}
	owner.feed(eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")))
	same(t, "outcomes", owner.outcomes(), "1 0 0 0")
}

func TestALostReplyToCommitCountsOnce(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Kind(), partition)
	value := eventAs("e1", "FundsCredited", "a", 1, noon, eur("1"))
	f.judge(value)
	// What the lost COMMIT has done: the row, and the position under the same fence.
	for _, sql := range []string{
		`INSERT INTO account_statement VALUES ('a', 1, 'e1', 'FundsCredited', 1.00, 'EUR', now(), NULL)`,
		`UPDATE projector_position SET next_offset = 1, judged_until = 1`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	changes := *f.Changes()
	if err := f.Write(t.Context(), f.next, &changes); err != nil {
		t.Fatal(err)
	}
	if got := changes.Outcomes[projection.Applied]; got != 1 {
		t.Errorf("applied %d, want 1", got)
	}
}
