package statement_test

import (
	"errors"
	"strings"
	"testing"

	"projector/errclass"
	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/statement"
)

func TestStatementHasOneRowAnEvent(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Definition(), partition)
	f.Feed(
		eventAs("e4", "AccountClosed", "a", 4, noon, "{}"), // in any order
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
	same(t, "rows", readmodeltest.Statement(t, pool), want)
	same(t, "outcomes", f.Outcomes(), "5 0 1 1")
	same(t, "letters", f.Faults(), "malformed_payload ")
	same(t, "missing", lines(t, pool, "SELECT concat_ws(' ', account_id, from_version, to_version) FROM account_statement_missing"), "b 1 6")
}

func TestStatementTellsDuplicatesFromConflicts(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Definition(), partition)
	first := eventAs("e1", "FundsCredited", "a", 1, noon, eur("1"))
	f.Feed(first, eventAs("e2", "FundsCredited", "a", 2, noon, eur("2")))
	before := lines(t, pool, "SELECT ctid::text || xmin::text FROM account_statement")
	f.Feed(
		first,
		eventAs("other", "FundsCredited", "a", 1, noon, eur("9")),
		eventAs("e1", "FundsCredited", "a", 1, noon, eur("-1")), // an invalid amount, and the version already has a row
		eventAs("e1", "Nonsense", "a", 1, noon, "{}"),
		eventAs("worse", "FundsCredited", "a", 2, noon, eur("-1")),
	)
	same(t, "outcomes", f.Outcomes(), "2 3 0 2")
	same(t, "letters", f.Faults(), "version_conflict other, version_conflict worse")
	same(t, "rows", lines(t, pool, "SELECT ctid::text || xmin::text FROM account_statement"), before)
}

func TestStatementTellsThemApartWithinABatch(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Definition(), partition)
	f.Feed(
		eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")),
		eventAs("other", "FundsCredited", "a", 1, noon, eur("9")),
		eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")),
		eventAs("e1", "Nonsense", "a", 1, noon, "{}"),
		eventAs("poison", "FundsCredited", "a", 2, noon, eur("0")),
		eventAs("right", "FundsCredited", "a", 2, noon, eur("2")),
	)
	same(t, "outcomes", f.Outcomes(), "2 2 0 2")
	same(t, "letters", f.Faults(), "version_conflict other, invalid_amount poison")
	same(t, "rows", lines(t, pool, "SELECT event_id FROM account_statement ORDER BY version"), "e1\nright")
}

func TestStatementOfARangeReadAgain(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Definition(), partition)
	values := []string{
		eventAs("poison", "FundsCredited", "a", 1, noon, eur("0")),
		eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")),
		eventAs("e2", "FundsCredited", "a", 2, noon, eur("2")),
	}
	f.Feed(values...)
	f.MustClaim(0) // the group's offsets were reset
	f.Feed(values...)
	// The event with the invalid amount was processed before. So it does not conflict with the row
	// that now has its version.
	same(t, "outcomes", f.Outcomes(), "2 3 0 1")
	same(t, "letters", f.Faults(), "invalid_amount poison")
}

func TestStatementIsWrittenByItsOwnerOnly(t *testing.T) {
	pool := openPool(t)
	stale, owner := newFeeder(t, pool, statement.Definition(), partition), newFeeder(t, pool, statement.Definition(), partition)
	stale.MustFold(eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")))
	if err := stale.VerifyAndFlush(); err == nil {
		t.Error("a fenced owner has written")
	}
	owner.Feed(eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")))
	same(t, "outcomes", owner.Outcomes(), "1 0 0 0")
}

// TestOutcomesAreKnownBeforeTheCommit shows that Flush returns the outcomes even if the reply to
// the COMMIT is lost. These outcomes are counted if the write took place.
func TestOutcomesAreKnownBeforeTheCommit(t *testing.T) {
	database := devtest.Database(t)
	newFeeder(t, readmodeltest.OpenPoolAt(t, database), statement.Definition(), readmodel.Partition{Group: "another", Topic: "events"}).
		Feed(eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")))
	pool, lose := readmodeltest.OpenLosing(t, database)
	f := newFeeder(t, pool, statement.Definition(), partition)
	f.MustFold(eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")), eventAs("e2", "FundsCredited", "a", 2, noon, eur("1")))
	lose.Store(true)
	changes, err := f.Flush(t.Context(), readmodeltest.At(f.Next))
	if err == nil {
		t.Fatal("the reply to COMMIT was to be lost")
	}
	if applied, duplicate := changes.Outcomes[projection.Applied], changes.Outcomes[projection.Duplicate]; applied != 1 || duplicate != 1 {
		t.Errorf("applied %d, duplicate %d, want 1 of each", applied, duplicate)
	}
}

// In TestADeadLetterIsDecidedAgainWhenItsPlaceIsTaken, another consumer group writes the corrected
// event after the decision about the broken event. The dead letter is not published yet at that
// time.
func TestADeadLetterIsDecidedAgainWhenItsPlaceIsTaken(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Definition(), partition)
	poison := eventAs("e1", "FundsCredited", "a", 1, noon, eur("x"))
	f.MustFold(poison)
	other := newFeeder(t, pool, statement.Definition(), readmodel.Partition{Group: "another", Topic: "events"})
	other.Feed(eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")))
	if err := f.VerifyAndFlush(); !errors.Is(err, projection.ErrStale) {
		t.Fatalf("error %v, want ErrStale", err)
	}
	f.MustClaim(projection.NoOffset)
	f.Feed(poison)
	same(t, "outcomes", f.Outcomes(), "0 1 0 0")
}

// TestARefusedRowIsFoundAlone simulates a consumer whose batch PostgreSQL refuses. The batch
// becomes smaller until the refused event is alone.
func TestARefusedRowIsFoundAlone(t *testing.T) {
	pool := openPool(t)
	if _, err := pool.Exec(t.Context(), "ALTER TABLE account_statement ADD CHECK (amount <> 13)"); err != nil {
		t.Fatal(err)
	}
	f := newFeeder(t, pool, statement.Definition(), partition)
	f.MustFold(eventAs("e1", "FundsCredited", "a", 1, noon, eur("13")))
	err := f.VerifyAndFlush()
	if errclass.Postgres(err) != errclass.Isolate || f.Pending().Events != 1 {
		t.Fatalf("error %v with %d events pending", err, f.Pending().Events)
	}
	if !f.Refuse("refused") {
		t.Error("was not refused before")
	}
	f.MustClaim(projection.NoOffset)
	f.Feed(eventAs("e1", "FundsCredited", "a", 1, noon, eur("13")), eventAs("e2", "FundsCredited", "a", 2, noon, eur("1")))
	same(t, "outcomes", f.Outcomes(), "1 0 0 1")
	same(t, "letters", f.Faults(), "rejected_by_database e1")
}

// After the log has lost its end, another event has the offset of a refused one. It is not refused.
func TestAnotherEventAtTheOffsetOfARefusedOne(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Definition(), partition)
	f.MustFold(eventAs("e1", "FundsCredited", "a", 1, noon, eur("13")))
	if !f.Refuse("refused") {
		t.Error("was not refused before")
	}
	f.MustClaim(projection.NoOffset)
	f.Epoch++
	f.Feed(eventAs("e2", "FundsCredited", "b", 1, noon, eur("1")))
	same(t, "outcomes", f.Outcomes(), "1 0 0 0")
	same(t, "letters", f.Faults(), "")
}

func TestARowThatIsSuppressedIsNoDuplicate(t *testing.T) {
	pool := openPool(t)
	_, err := pool.Exec(t.Context(), `CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER suppress BEFORE INSERT ON account_statement FOR EACH ROW EXECUTE FUNCTION suppress()`)
	if err != nil {
		t.Fatal(err)
	}
	f := newFeeder(t, pool, statement.Definition(), partition)
	f.MustFold(eventAs("e1", "FundsCredited", "a", 1, noon, eur("1")))
	if err := f.VerifyAndFlush(); !errors.Is(err, readmodel.ErrSuppressed) {
		t.Errorf("error %v, want ErrSuppressed", err)
	}
}

func TestABalanceAsOfAVersionOrATime(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, statement.Definition(), partition)
	f.Feed(
		eventAs("e1", "AccountOpened", "a", 1, "2026-01-01T00:00:00Z", `{"currency":"EUR"}`),
		eventAs("e2", "FundsCredited", "a", 2, "2026-01-02T00:00:00Z", eur("10")),
		eventAs("e3", "FundsDebited", "a", 3, "2026-01-03T00:00:00Z", eur("4")),
	)
	same(t, "as of version 2", lines(t, pool, "SELECT sum(amount)::text FROM account_statement WHERE account_id = 'a' AND version <= 2"), "10.00")
	same(t, "as of a time", lines(t, pool, "SELECT sum(amount)::text FROM account_statement WHERE account_id = 'a' AND occurred_at < '2026-01-03T12:00:00Z'"), "6.00")
	// One index has all columns of the query, so an index-only scan is possible.
	for _, sql := range []string{"VACUUM account_statement", "SET enable_seqscan = off"} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	plan := lines(t, pool, "EXPLAIN SELECT sum(amount) FROM account_statement WHERE account_id = 'a' AND occurred_at < '2026-01-03T12:00:00Z'")
	if !strings.Contains(plan, "Index Only Scan using account_statement_pkey") {
		t.Error(plan)
	}
}
