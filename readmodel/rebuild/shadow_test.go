package rebuild_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/rebuild"
	"projector/readmodel/repair"
)

// openShadow returns a shadow that has read the values.
func openShadow(t *testing.T, pool *pgxpool.Pool, values ...string) *rebuild.Shadow {
	t.Helper()
	return openShadowOf(t, pool, 100, values...)
}

// openShadowOf does the same as openShadow, with another park limit.
func openShadowOf(t *testing.T, pool *pgxpool.Pool, parkLimit int64, values ...string) *rebuild.Shadow {
	t.Helper()
	s, err := rebuild.OpenShadow(t.Context(), pool, balance.Definition{}, parkLimit, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	w := newWorker(t, s.Pool, readmodel.Partition{Group: "rebuild", Topic: "events"})
	w.MustClaim("rebuild", projection.NoOffset)
	w.MustFold(values...)
	w.MustFlush()
	return s
}

// upToDate is the catch-up before the swap. The shadows of these tests have read all records, so
// nothing is left to do.
func upToDate(context.Context, []rebuild.TopicPosition) error { return nil }

// The balances of a plan are those of the comparison. An event that is applied after it is in none of
// them.
func TestBalancesAreThoseOfTheComparison(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"))
	w.MustFlush()
	if _, err := pool.Exec(t.Context(), `UPDATE account_balance SET balance = 99.00`); err != nil {
		t.Fatal(err)
	}
	s := openShadow(t, pool, credit("a", 1, "1", "EUR"))
	report, err := s.Compare(t.Context(), rebuild.CompareOptions{Topic: "events", List: 10}, upToDate)
	if unseen := s.Balances(&report, false); err != nil || unseen != nil {
		t.Errorf("nobody sees the balances %+v, error %v", unseen, err)
	}
	report, err = s.Compare(t.Context(), rebuild.CompareOptions{Topic: "events", List: 10, Balances: true}, upToDate)
	if err != nil || report.Different() != 1 {
		t.Fatal(report, err)
	}
	w.MustFold(credit("a", 2, "100", "EUR"))
	w.MustFlush()
	b := s.Balances(&report, false)
	if len(b) != 1 || *b[0].Currency != "EUR" || *b[0].Before != "99.00" || *b[0].After != "1.00" {
		t.Errorf("%+v", b)
	}
}

// Between the comparison and the swap, a repair or another writer may change an account. The swap
// then decides again about the account. It does not change the account if a repair has changed it,
// or if its version is now higher than the rebuilt one.
func TestASwapLeavesAloneWhatHasMovedSinceTheComparison(t *testing.T) {
	pool, w := startWorker(t)
	values := []string{credit("wrong", 1, "1", "EUR"), credit("gone", 1, "1", "EUR"), credit("moved", 1, "1", "EUR"), credit("back", 1, "1", "EUR")}
	w.MustFold(values...)
	w.MustFlush()
	exec := func(statement string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO projector_position (consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, projection)
		SELECT consumer, topic, partition, 0, 0, topic_id, 'me', 7, projection FROM projector_position, unnest('{another,zero}'::text[]) AS consumer`)
	exec(`UPDATE account_balance SET balance = 99.00 WHERE account_id IN ('wrong', 'gone', 'moved')`)
	exec(`DELETE FROM account_balance WHERE account_id = 'back'`)
	exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('phantom', 'EUR', 1.00, 5), ('ghost', 'EUR', 1.00, 5)`)

	s := openShadow(t, pool, values...)
	report, err := s.Compare(t.Context(), rebuild.CompareOptions{Topic: "events", List: 10}, upToDate)
	if err != nil {
		t.Fatal(err)
	}
	if report.Different() != 6 || report.Kinds[rebuild.Unknown] != 2 {
		t.Fatalf("%+v", report)
	}
	repaired := newRepair(t, pool, 0)
	if err := repaired.Apply(t.Context(), readmodeltest.ReplayOf(w.Format, credit("moved", 2, "5", "EUR"), credit("ghost", 6, "1", "EUR")), nil); err != nil {
		t.Fatal(err)
	}
	exec(`DELETE FROM account_balance WHERE account_id = 'gone'`)
	exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('back', 'EUR', 8.00, 2)`)

	swap := rebuild.SwapOptions{Topic: "events", Actor: "me", Remove: true}
	swapped, err := s.Swap(t.Context(), swap, upToDate)
	if err != nil || swapped != (rebuild.Swapped{Replaced: 2, Removed: 1, Left: 2}) {
		t.Errorf("%+v, %v", swapped, err)
	}
	expect(t, lines(t, pool, `SELECT consumer_group FROM projector_position WHERE fence > 7 AND consumer_group IN ('another', 'zero') ORDER BY 1`), "another\nzero")
	if s.Moved(&report); report.Kinds[rebuild.Moved] != 2 || report.Different() != 3 {
		t.Errorf("%+v", report)
	}
	expect(t, strings.ReplaceAll(lines(t, pool, `SELECT concat_ws(' ', account_id, balance, version) FROM account_balance ORDER BY account_id COLLATE "C"`), "\n", ", "),
		"back 8.00 2, ghost 2.00 6, gone 1.00 1, moved 104.00 2, wrong 1.00 1")
	expect(t, strings.ReplaceAll(lines(t, pool, `SELECT concat_ws(' ', account_id, result) FROM dlq_action WHERE action = 'rebuild' ORDER BY account_id`), "\n", ", "),
		"gone replaced, phantom removed, wrong replaced")

	// A second swap changes nothing.
	if again, err := s.Swap(t.Context(), swap, upToDate); err != nil || again != (rebuild.Swapped{Left: 2}) {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	expect(t, lines(t, pool, `SELECT count(*) FROM dlq_action WHERE action = 'rebuild'`), "3")
	// A worker that has the balances from before the swap in its cache writes nothing.
	w.MustFold(credit("wrong", 2, "1", "EUR"))
	if _, err := w.VerifyAndFlush(); err == nil {
		t.Error("a consumer went on with what it remembered")
	}
}

// A shadow that does not reach the expected position has lost records. Then nothing is swapped.
func TestAShadowThatIsBehindIsNotSwapped(t *testing.T) {
	pool, w := startWorker(t)
	values := []string{credit("a", 1, "1", "EUR"), credit("a", 2, "1", "EUR")}
	w.MustFold(values...)
	w.MustFlush()
	s := openShadow(t, pool, values[0])
	_, err := s.Compare(t.Context(), rebuild.CompareOptions{Topic: "events"}, upToDate)
	if err == nil {
		t.Error("compared with less than there is")
	}
	if _, err = s.Swap(t.Context(), rebuild.SwapOptions{Topic: "events"}, upToDate); err == nil {
		t.Error("swapped with less than there is")
	}
	expect(t, current(t, pool, "a"), "EUR 2.00 2 open a-2 false -")
}

// The waiting time of a parked event starts at its record's timestamp. PostgreSQL has no date for
// some timestamps (error 22008). Such a timestamp must not make every rebuild fail.
func TestASwapParksWhateverTimeARecordHas(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFlush()
	s := openShadowOf(t, pool, 3)
	rebuilt := newWorker(t, s.Pool, readmodel.Partition{Group: "rebuild", Topic: "events"})
	rebuilt.MustClaim("rebuild", projection.NoOffset)
	var records []projection.DecodedRecord
	for i, ms := range []int64{1_700_000_000_000, 1_700_000_000_000_000_000, math.MaxInt64, math.MinInt64, projection.NoTimestamp, 0} {
		records = append(records, rebuilt.Records(credit("a", i+2, "1", "EUR"))...)
		records[i].Record.Timestamp = ms
	}
	if n, err := rebuilt.Fold(t.Context(), records, 1000); err != nil || n != len(records) {
		t.Fatal(n, err)
	}
	rebuilt.MustFlush()
	if _, err := pool.Exec(t.Context(), "UPDATE projector_position SET next_offset = $1, judged_until = $1", rebuilt.Next); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Compare(t.Context(), rebuild.CompareOptions{Topic: "events"}, upToDate); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap(t.Context(), rebuild.SwapOptions{Topic: "events", Actor: "me"}, upToDate); err != nil {
		t.Fatal(err)
	}
	expect(t, lines(t, pool, `SELECT concat_ws(' ', version, CASE WHEN parked_at > now() - interval '1 hour' THEN 'now' ELSE extract(epoch FROM parked_at)::bigint::text END)
		FROM parked_event ORDER BY version`), "2 1700000000\n3 now\n4 now")
	expect(t, lines(t, pool, `SELECT concat_ws(' ', events, since > now() - interval '1 hour') FROM park_overflow`), "3 t")
}

// comparedWrong applies an event of the account wrong and changes its balance by SQL. It returns a
// shadow that has found the difference.
func comparedWrong(t *testing.T) (*pgxpool.Pool, *worker, *rebuild.Shadow) {
	t.Helper()
	pool, w := startWorker(t)
	value := credit("wrong", 1, "1", "EUR")
	w.MustFold(value)
	w.MustFlush()
	if _, err := pool.Exec(t.Context(), `UPDATE account_balance SET balance = 99.00`); err != nil {
		t.Fatal(err)
	}
	s := openShadow(t, pool, value)
	if _, err := s.Compare(t.Context(), rebuild.CompareOptions{Topic: "events"}, upToDate); err != nil {
		t.Fatal(err)
	}
	return pool, w, s
}

// A swap that hangs ends within its time limit and changes nothing. If this process does not react,
// the server ends the swap.
func TestASwapIsEndedByTheServer(t *testing.T) {
	pool, w, s := comparedWrong(t)
	locked, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locked.Exec(t.Context(), "LOCK TABLE dlq_action IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx := readmodel.WithReader(t.Context(), func() string { return " --group=g2" })
	// On a slow machine, this process may be the first to notice that the time is over. The swap then
	// gets more time.
	for within := 4 * time.Second; ; within *= 2 {
		began := time.Now()
		_, err = s.Swap(ctx, rebuild.SwapOptions{Topic: "events", Actor: "me", Within: within}, upToDate)
		took := time.Since(began)
		given := errclass.Safe(err)
		if !strings.Contains(given, "the swap was given up") || !strings.Contains(given, "nothing was changed. Pause the consumers first (`projector pause --all --group=g2 --reason=rebuild --yes`)") {
			t.Fatalf("%v", err)
		}
		byServer := strings.Contains(given, "ERROR 55P03") || strings.Contains(given, "ERROR 57014")
		if byServer && took >= within/2 && took <= 2*within {
			break
		}
		if within > 30*time.Second {
			t.Fatalf("given up after %s, not within %s, or not by the server: %s", took, within, given)
		}
	}
	// The locks are released, so a consumer continues.
	w.MustFold(credit("wrong", 2, "1", "EUR"))
	w.MustFlush()
	if err := locked.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, current(t, pool, "wrong"), "EUR 2.00 2 open wrong-2 false -")
	expect(t, lines(t, pool, `SELECT count(*) FROM dlq_action`), "0")
}

// In TestAnIdleSwapIsEndedByTheServer, this process hangs while it reads the last records. The
// server ends the swap, so that the consumer can write.
func TestAnIdleSwapIsEndedByTheServer(t *testing.T) {
	pool, _, s := comparedWrong(t)
	unlocked := false
	_, err := s.Swap(t.Context(), rebuild.SwapOptions{Topic: "events", Actor: "me", Within: time.Second}, func(context.Context, []rebuild.TopicPosition) error {
		if !unlocked { // the first call is before the positions are locked
			unlocked = true
			return nil
		}
		// The time limit of this statement is shorter than the limit for idle sessions.
		_, err := pool.Exec(context.WithoutCancel(t.Context()), `UPDATE projector_position SET updated_at = now()`)
		if err != nil {
			t.Errorf("the positions are still locked: %v", err)
		}
		return nil
	})
	if !strings.Contains(errclass.Safe(err), "the swap was given up") {
		t.Errorf("%v", err)
	}
	expect(t, lines(t, pool, `SELECT count(*) FROM dlq_action`), "0")
}

// TestASwapLeavesAloneWhatWasOpenedSince opens an account after the rebuild has begun. The tables
// of the rebuild have only the openings from before the rebuild. The swap must not change accounts
// that were opened later.
func TestASwapLeavesAloneWhatWasOpenedSince(t *testing.T) {
	pool, w := startWorker(t)
	open := func(account string, version, minor int64) {
		t.Helper()
		euro, _ := event.CurrencyByCode("EUR")
		opening := repair.Opening{AccountID: account, Opening: projection.Opening{Version: version, Balance: minor, Currency: euro}}
		openedBy := repair.OpenedBy{Source: "ledger.csv", SHA256: "abc", Actor: "me", Reason: "moved"}
		if err := newRepair(t, pool, 0).Openings(openedBy).Apply(t.Context(), []repair.Opening{opening}, nil); err != nil {
			t.Fatal(err)
		}
	}
	open("before", 3, 1000)
	values := []string{credit("a", 1, "1", "EUR"), credit("before", 4, "1", "EUR"), credit("before", 2, "1", "EUR")}
	w.MustFold(values...)
	w.MustFlush()
	s := openShadow(t, pool, values...)
	open("since", 4, 700)
	report, err := s.Compare(t.Context(), rebuild.CompareOptions{Topic: "events", List: 10}, upToDate)
	if err != nil || report.Matched != 2 || report.Kinds[rebuild.Unknown] != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	swapped, err := s.Swap(t.Context(), rebuild.SwapOptions{Topic: "events", Actor: "me", Remove: true}, upToDate)
	if err != nil || swapped != (rebuild.Swapped{Left: 1}) {
		t.Errorf("%+v, %v", swapped, err)
	}
	expect(t, current(t, pool, "since"), "EUR 7.00 4 open - false -")
	expect(t, current(t, pool, "before"), "EUR 11.00 4 open before-4 false -")
}
