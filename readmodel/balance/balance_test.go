package balance_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
)

func TestBalanceHasTheCurrencysDecimals(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("e", 1, "10.5", "EUR"), credit("j", 1, "1050", "JPY"), credit("k", 1, "0.125", "KWD"),
		credit("c", 1, "1.5", "CLF"), credit("m", 1, "92233720368547758.07", "EUR"),
		`{"eventId":"n-1","eventType":"AccountClosed","accountId":"n","version":1,"occurredAt":"2026-01-01T00:00:00Z"}`)
	w.MustFlush()
	expect(t, current(t, pool, "e"), "EUR 10.50 1 open e-1 false -")
	expect(t, current(t, pool, "j"), "JPY 1050 1 open j-1 false -")
	expect(t, current(t, pool, "k"), "KWD 0.125 1 open k-1 false -")
	expect(t, current(t, pool, "c"), "CLF 1.5000 1 open c-1 false -")
	expect(t, current(t, pool, "m"), "EUR 92233720368547758.07 1 open m-1 false -")
	expect(t, current(t, pool, "n"), "- 0 1 closed n-1 false -")
}

func TestStateReadBackGoesOnExactly(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "10.25", "EUR"), credit("m", 1, "92233720368547758.07", "EUR"))
	w.MustFlush()
	w.MustClaim("me again", w.Next) // the new claim forgets the cached accounts
	w.MustFold(credit("a", 2, "0.75", "EUR"), credit("a", 1, "10.25", "EUR"), credit("m", 2, "0.01", "EUR"))
	changes := w.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 11.00 2 open a-2 false -")
	if len(changes.DeadLetters) != 1 || changes.DeadLetters[0].Class != event.BalanceOverflow {
		t.Errorf("letters %+v, want an overflow", changes.DeadLetters)
	}
	if changes.Outcomes[projection.Duplicate] != 1 {
		t.Errorf("outcomes %v, want one duplicate", changes.Outcomes)
	}
}

func TestDuplicatesWriteNoRow(t *testing.T) {
	pool, w := startWorker(t)
	events := []string{credit("a", 1, "1", "EUR"), credit("a", 2, "1", "EUR"), credit("b", 1, "1", "EUR")}
	w.MustFold(events...)
	w.MustFlush()
	trace := func() (line string) {
		const q = `SELECT string_agg(concat_ws(' ', account_id, ctid, xmin), ',' ORDER BY account_id) FROM account_balance`
		if err := pool.QueryRow(t.Context(), q).Scan(&line); err != nil {
			t.Fatal(err)
		}
		return line
	}
	before := trace()
	other := newWorker(t, pool, readmodel.Partition{Group: "another", Topic: "events"})
	other.MustClaim("other", projection.NoOffset)
	other.MustFold(events...)
	changes := other.MustFlush()
	if changes.Outcomes[projection.Duplicate] != len(events) {
		t.Errorf("outcomes %v, want duplicates only", changes.Outcomes)
	}
	expect(t, trace(), before)
}

func TestGapsParkAndHeal(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"), credit("z", 2, "1", "EUR"))
	w.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 1.00 1 open a-1 true 2")
	expect(t, current(t, pool, "z"), "- - - - - true 1")

	w.MustFold(credit("a", 5, "16", "EUR"))
	w.MustFlush()
	w.MustFold(credit("a", 2, "2", "EUR"))
	if healed := w.MustFlush().Healed; healed != 1 {
		t.Errorf("healed %d, want 1", healed)
	}
	if more, err := w.Heal(1000); err != nil || more {
		t.Fatalf("more %t, error %v", more, err)
	}
	expect(t, current(t, pool, "a"), "EUR 7.00 3 open a-3 true 4")

	w.MustFold(credit("z", 1, "1", "EUR"), credit("a", 4, "8", "EUR"), credit("a", 6, "32", "EUR"))
	w.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 63.00 6 open a-6 false -")
	expect(t, current(t, pool, "z"), "EUR 2.00 2 open z-2 false -")
	var left int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM parked_event").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d parked events left, error %v", left, err)
	}
}

func TestInterruptedHealingGoesOnAfterAClaim(t *testing.T) {
	pool, w := startWorker(t)
	for v := 2; v <= 9; v++ {
		w.MustFold(credit("a", v, "1", "EUR"))
	}
	w.MustFold(credit("z", 2, "1", "EUR")) // only the event after the missing one waits
	w.MustFlush()
	w.MustFoldAlone(credit("a", 1, "1", "EUR"))
	w.MustFoldAlone(credit("z", 1, "1", "EUR"))
	w.MustFlush() // the process dies before the healing
	w.MustClaim("successor", w.Next)
	for more := true; more; {
		var err error
		if more, err = w.Heal(3); err != nil {
			t.Fatal(err)
		}
		if n := w.MustFlush().Healed; n > 3 {
			t.Errorf("a piece of %d, limit 3", n)
		}
	}
	expect(t, current(t, pool, "a"), "EUR 9.00 9 open a-9 false -")
	expect(t, current(t, pool, "z"), "EUR 2.00 2 open z-2 false -")
}

func TestParkLimitIsSaid(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"))
	for v := 3; v <= 110; v++ {
		w.MustFold(credit("a", v, "1", "EUR"))
	}
	w.MustFlush()
	w.MustFold(credit("a", 2, "1", "EUR"))
	w.MustFlush()
	if _, err := w.Heal(1000); err != nil {
		t.Fatal(err)
	}
	w.MustFlush()
	// Versions 3 to 102 were parked. Versions 103 to 110 are only in the DLQ, so the account waits
	// for version 103.
	expect(t, current(t, pool, "a"), "EUR 102.00 102 open a-102 true 103")
}

// TestAReadableEventReplacesABrokenOneBeyondTheBytes has a broken event and then a readable one of the
// same version, for which no bytes are left. The readable one must be parked instead of the broken
// one, because nothing else would apply it when its turn has come.
func TestAReadableEventReplacesABrokenOneBeyondTheBytes(t *testing.T) {
	broken := func(version int) string { return credit("a", version, "x", "EUR") }
	sound := func(version int) string { return credit("a", version, "1", "EUR") }
	for _, c := range []struct {
		what     string
		parked   []string
		version  int // of the broken event
		oneFlush bool
	}{
		{"the broken event is the first parked one", []string{broken(3), sound(4)}, 3, false},
		{"the broken event is a later one", []string{sound(3), broken(4)}, 4, false},
		{"all are in one flush", []string{sound(3), broken(4)}, 4, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			pool := openPool(t)
			size := newWorker(t, pool, partition).Records(sound(3))[0].Record.Bytes()
			w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkBytes = int64(2*size + size/2) })
			w.MustClaim("me", projection.NoOffset)
			w.MustFold(sound(1))
			w.MustFold(c.parked...)
			if !c.oneFlush {
				w.MustFlush()
			}
			w.MustFold(sound(c.version) + strings.Repeat(" ", size))
			w.MustFlush()
			w.MustFold(sound(2))
			w.MustFlush()
			expect(t, current(t, pool, "a"), "EUR 4.00 4 open a-4 false -")
		})
	}
}

// TestAnEventBeyondTheBytesTakesNoneOfThem has an event that is too large to be parked, and then one of
// the same account that fits.
func TestAnEventBeyondTheBytesTakesNoneOfThem(t *testing.T) {
	pool := openPool(t)
	size := newWorker(t, pool, partition).Records(credit("a", 3, "1", "EUR"))[0].Record.Bytes()
	w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkBytes = int64(2*size + size/2) })
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "1", "EUR"))
	w.MustFlush()
	w.MustFold(credit("a", 9, "1", "EUR")+strings.Repeat(" ", 3*size), credit("a", 4, "1", "EUR"))
	w.MustFlush()
	expect(t, readmodeltest.Lines(t, pool, "SELECT version::text FROM parked_event ORDER BY version"), "3\n4")
}

// The size of an account's parked events is limited across flushes, owners and redeliveries.
func TestTheSizeOfWhatIsParkedIsBounded(t *testing.T) {
	pool := openPool(t)
	const limit = 2000
	bounded := func(cfg *balance.Config) { cfg.ParkBytes = limit }
	parked := func() (n, size int64) {
		t.Helper()
		const query = "SELECT count(*), sum(octet_length(key) + octet_length(value)) FROM parked_event"
		if err := pool.QueryRow(t.Context(), query).Scan(&n, &size); err != nil {
			t.Fatal(err)
		}
		return n, size
	}
	for _, owner := range []string{"first", "second"} { // each owner reads all records again
		w := newWorkerWith(t, pool, partition, bounded)
		w.MustClaim(owner, 0)
		w.Next = 0
		w.MustFold(credit("a", 1, "1", "EUR"))
		for v := 3; v <= 40; v++ {
			w.MustFold(credit("a", v, "1", "EUR"))
			if v%5 == 0 {
				w.MustFlush()
			}
		}
		w.MustFlush()
		n, size := parked()
		if n < 5 || size > limit {
			t.Errorf("%s: %d events of %d bytes are parked, the limit is %d bytes", owner, n, size, limit)
		}
		if s, err := readmodel.CountParked(t.Context(), pool, readmodel.BalanceName); err != nil || s.Bytes < size || s.Bytes > limit {
			t.Errorf("%s: %d bytes are reported, %d are parked: %v", owner, s.Bytes, size, err)
		}
	}
	n, _ := parked()
	w := newWorkerWith(t, pool, partition, bounded)
	w.MustClaim("third", projection.NoOffset)
	w.MustFold(credit("a", 2, "1", "EUR"))
	w.MustFlush()
	last := int(n) + 2
	expect(t, current(t, pool, "a"), fmt.Sprintf("EUR %d.00 %d open a-%d true %d", last, last, last, last+1))
	for v := last + 1; v <= 40; v++ { // these events were only dead-lettered
		w.MustFold(credit("a", v, "1", "EUR"))
	}
	w.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 40.00 40 open a-40 false -")
}

func TestStaleOwnerWritesNothing(t *testing.T) {
	pool := openPool(t)
	old, successor := newWorker(t, pool, partition), newWorker(t, pool, partition)
	old.MustClaim("old", projection.NoOffset)
	old.MustFold(credit("a", 1, "1", "EUR"))
	successor.MustClaim("successor", projection.NoOffset)
	if _, err := old.VerifyAndFlush(); !errors.Is(err, projection.ErrFenced) {
		t.Fatalf("error %v, want ErrFenced", err)
	}
	successor.MustFold(credit("a", 1, "1", "EUR"), credit("a", 2, "1", "EUR"))
	successor.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 2.00 2 open a-2 false -")
}

func TestDecisionOnOldStateIsNoticed(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"))
	w.MustFlush()
	other := newWorker(t, pool, readmodel.Partition{Group: "another", Topic: "events"})
	other.MustClaim("other", projection.NoOffset)
	other.MustFold(credit("a", 2, "1", "EUR"))
	other.MustFlush()
	w.MustFold(credit("a", 3, "1", "EUR")) // a gap for the first worker, which still has version 1
	if _, err := w.VerifyAndFlush(); !errors.Is(err, projection.ErrStale) {
		t.Fatalf("error %v, want ErrStale", err)
	}
	w.MustClaim("me", w.Next-1)
	w.MustFold(credit("a", 3, "1", "EUR"))
	w.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 3.00 3 open a-3 false -")
}

func TestRowAdvancedByAnotherIsNotWrittenOver(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"))
	if _, err := pool.Exec(t.Context(), `INSERT INTO account_balance (account_id, balance, version) VALUES ('a', 7, 1)`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.VerifyAndFlush(); !errors.Is(err, projection.ErrStale) {
		t.Fatalf("error %v, want ErrStale", err)
	}
}

func TestVersionNeverDecreasesWhoeverWrites(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 2, "1", "EUR"))
	w.MustFlush()
	if _, err := pool.Exec(t.Context(), "INSERT INTO projection_account (projection, account_id, version) VALUES ('p', 'a', 2)"); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"account_balance", "projection_account"} {
		_, err := pool.Exec(t.Context(), "UPDATE "+table+" SET version = 1 WHERE account_id = 'a'")
		if err == nil || !strings.Contains(err.Error(), "the version of an account never decreases (SQLSTATE 23514)") {
			t.Errorf("%s: a lower version was written by hand: %v", table, err)
		}
	}
}

// A fenced writer must not need a second connection. All other connections may be waiting for the
// lock of the transaction that fenced this writer.
func TestAFencedWriterNeedsNoSecondConnection(t *testing.T) {
	pool := readmodeltest.OpenPoolAt(t, devtest.Database(t), readmodel.WithConns(1))
	w := newWorker(t, pool, partition)
	w.MustClaim("me", projection.NoOffset)
	if _, err := pool.Exec(t.Context(), "UPDATE projector_position SET fence = fence + 1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := w.Flush(ctx, at(5)); !errors.Is(err, projection.ErrFenced) || ctx.Err() != nil {
		t.Errorf("error %v, context %v", err, ctx.Err())
	}
}

// A parked event may be as large as a record. One read of parked events is therefore also limited
// in bytes.
func TestLargeParkedEventsHealInPieces(t *testing.T) {
	pool, w := startWorker(t)
	padding := strings.Repeat("x", 400_000)
	for _, account := range []string{"a", "b"} {
		w.MustFold(credit(account, 1, "1", "EUR"))
		for version := 3; version <= 7; version++ {
			w.MustFold(strings.Replace(credit(account, version, "1", "EUR"), "{", `{"note":"`+padding+`",`, 1))
		}
	}
	w.MustFlush()
	w.MustFoldAlone(credit("a", 2, "1", "EUR"))
	w.MustFlush()
	var pieces []int
	for more := true; more; {
		var err error
		if more, err = w.Heal(1000); err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, w.Pending().Events)
		w.MustFlush()
	}
	expect(t, fmt.Sprint(pieces), "[3 2]")
	expect(t, current(t, pool, "a"), "EUR 7.00 7 open a-7 false -")

	if err := newRepair(t, pool, 0).Apply(t.Context(), replayOf(w.Format, credit("b", 2, "1", "EUR")), nil); err != nil {
		t.Fatal(err)
	}
	expect(t, current(t, pool, "b"), "EUR 7.00 7 open b-7 false -")
}

// TestChangedAccounts shows that the accounts that a flush has written or parked are reported after
// its commit.
func TestChangedAccounts(t *testing.T) {
	t.Parallel()
	var changed []string
	with := func(cfg *balance.Config) {
		cfg.ParkLimit = 1
		cfg.Changed = func(ids iter.Seq[string]) { changed = append(changed, slices.Collect(ids)...) }
	}
	reported := func(want string) {
		t.Helper()
		slices.Sort(changed)
		readmodeltest.Same(t, "changed", strings.Join(slices.Compact(changed), " "), want)
		changed = nil
	}
	pool := openPool(t)
	w := newWorkerWith(t, pool, partition, with)
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("b", 1, "5", "JPY"), credit("gap", 2, "1", "EUR"))
	reported("")
	w.MustFlush()
	reported("a b gap")
	w.MustFold(credit("a", 1, "1", "EUR"), credit("b", 2, "1", "JPY"), credit("gap", 1, "1", "EUR"))
	w.MustFlush()
	reported("b gap") // a duplicate is not reported
	newWorker(t, pool, partition).MustClaim("another", projection.NoOffset)
	w.MustFold(credit("a", 2, "1", "EUR"))
	if _, err := w.VerifyAndFlush(); err == nil {
		t.Error("a fenced writer has written")
	}
	reported("")
}

// After a partition has lost its last records, new records get offsets below the stored position.
// The leader epoch of the new records is later than the stored epoch. This shows that they are new
// records and not redelivered ones.
func TestRecordsOfALaterEpochAreNoHistory(t *testing.T) {
	cases := map[string]struct {
		epoch int32 // leader epoch of the records at the old offsets
		want  string
	}{
		"redelivered":                {1, "0 6 0 0"},
		"of an earlier epoch":        {0, "0 6 0 0"},
		"epoch not known":            {projection.NoEpoch, "0 6 0 0"},
		"appended by a later leader": {2, "0 5 0 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pool, w := startWorker(t)
			w.Epoch = 1
			var values []string
			for v := range 6 {
				values = append(values, credit("a", v+1, "1.00", "EUR"))
			}
			w.MustFold(values...)
			w.MustFlush()
			readmodeltest.Exec(t, pool, "UPDATE projector_position SET next_offset = 0")
			w.MustClaim("me again", projection.NoOffset)
			w.Epoch = c.epoch
			values[5] = strings.Replace(values[5], `"a-6"`, `"another"`, 1)
			w.MustFold(values...)
			changes := w.MustFlush()
			readmodeltest.Same(t, "applied, duplicate, ignored, dead-lettered", fmt.Sprint(
				changes.Outcomes[projection.Applied], changes.Outcomes[projection.Duplicate],
				changes.Outcomes[projection.Ignored], changes.Outcomes[projection.DeadLettered]), c.want)
		})
	}
}
