package repair_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/balance"
	"projector/readmodel/repair"
)

// startAtTheLimit starts a worker whose accounts may have one parked event each. It has processed
// version 1 of account a, and parked version 3.
func startAtTheLimit(t *testing.T) (*pgxpool.Pool, *worker) {
	t.Helper()
	pool := openPool(t)
	w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkLimit = 1 })
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "1", "EUR"))
	return pool, w
}

// heal claims the partition again and applies the parked events whose turn has come.
func heal(t *testing.T, w *worker) {
	t.Helper()
	w.MustClaim("me", projection.NoOffset)
	for more := true; more; w.MustFlush() {
		var err error
		if more, err = w.Heal(1000); err != nil {
			t.Fatal(err)
		}
	}
}

// dueOf returns the accounts whose events beyond the park limit are to be read again now.
func dueOf(t *testing.T, pool *pgxpool.Pool) []accountdb.Beyond {
	t.Helper()
	due, _, err := accountdb.LoadBeyond(t.Context(), pool, readmodel.BalanceName, partition.Topic, []int32{partition.Number}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return due
}

// TestWhatHappensWhileEventsAreReadAgain reads events beyond the park limit again. In some cases,
// an operator discards one of these events before they are parked, or further events of the account
// arrive.
func TestWhatHappensWhileEventsAreReadAgain(t *testing.T) {
	const row = "SELECT concat_ws(' ', lowest_version, highest_version, events, first_offset, first_version) FROM park_overflow"
	for _, c := range []struct {
		what                   string
		meanwhile              func(*testing.T, *worker, *repair.Repair)
		parked, rest, balances string
	}{
		{"nothing", func(*testing.T, *worker, *repair.Repair) {}, "4\n5", "", "EUR 104.00 5 open a-5 false -"},
		{"the last one is discarded", func(t *testing.T, _ *worker, r *repair.Repair) {
			t.Helper()
			if _, err := r.Discard(t.Context(), []readmodel.Discard{discardOf("a", 5, 3, event.VersionGap)}); err != nil {
				t.Fatal(err)
			}
		}, "4", "", "EUR 4.00 4 open a-4 false -"},
		{"one more arrives", func(t *testing.T, w *worker, _ *repair.Repair) {
			t.Helper()
			w.MustClaim("me", projection.NoOffset)
			w.MustFold(credit("a", 8, "1", "EUR"), credit("a", 9, "1", "EUR"))
			w.MustFlush()
		}, "4\n5", "4 9 1 4 5", "EUR 104.00 5 open a-5 true 6"},
		{"another event of a version arrives and is parked", func(t *testing.T, w *worker, _ *repair.Repair) {
			t.Helper()
			w.MustClaim("me", projection.NoOffset)
			other := w.Records(credit("a", 5, "7", "EUR"))
			other[0].Decoded.Event.ID = "other"
			if _, err := w.Fold(t.Context(), other, 1000); err != nil {
				t.Fatal(err)
			}
			w.MustFlush()
		}, "4\n5", "", "EUR 104.00 5 open a-5 false -"},
	} {
		t.Run(c.what, func(t *testing.T) {
			pool, w := startAtTheLimit(t)
			beyond := w.Records(credit("a", 4, "1", "EUR"), credit("a", 5, "100", "EUR"))
			if _, err := w.Fold(t.Context(), beyond, 1000); err != nil {
				t.Fatal(err)
			}
			w.MustFlush()
			w.MustFold(credit("a", 2, "1", "EUR"))
			w.MustFlush()
			heal(t, w)
			due := dueOf(t, pool)
			if len(due) != 1 {
				t.Fatalf("due %+v", due)
			}
			decisions, r := readmodel.NewDecisions(pool, balance.Definition{}), newRepair(t, pool, 0)
			if err := decisions.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.meanwhile(t, w, r)
			read := &repair.ReadAgain{Of: due[0], Until: 4}
			for i := range beyond {
				read.First = append(read.First, waitingEvent(&beyond[i], 4))
			}
			if err := r.ParkBeyond(t.Context(), read, decisions); err != nil {
				t.Fatal(err)
			}
			same(t, "parked", lines(t, pool, "SELECT version::text FROM parked_event WHERE version < 8 ORDER BY 1"), c.parked)
			same(t, "beyond the limit", lines(t, pool, row), c.rest)
			heal(t, w)
			same(t, "the account", current(t, pool, "a"), c.balances)
		})
	}
}

// TestTheHighestEventIsReadAgain has a discarded event of the highest version, and another event
// that arrives beyond the park limit while the partition is read again. The next reading has to see
// the discarded event again. Otherwise the topic would seem to have lost the highest event. The
// account would then be stale until the topic gets an event of this version, which may never
// happen.
func TestTheHighestEventIsReadAgain(t *testing.T) {
	pool, w := startAtTheLimit(t)
	w.MustFold(credit("a", 4, "1", "EUR"), credit("a", 900, "1", "EUR"))
	w.MustFlush()
	r, decisions := newRepair(t, pool, 0), readmodel.NewDecisions(pool, balance.Definition{})
	if _, err := r.Discard(t.Context(), []readmodel.Discard{discardOf("a", 900, 3, event.VersionGap)}); err != nil {
		t.Fatal(err)
	}
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 2, "1", "EUR"))
	w.MustFlush()
	heal(t, w)
	due := dueOf(t, pool)
	if len(due) != 1 || due[0].Highest != 900 {
		t.Fatalf("due %+v", due)
	}
	w.MustFold(credit("a", 6, "1", "EUR"), credit("a", 7, "1", "EUR"))
	w.MustFlush()
	if err := r.ParkBeyond(t.Context(), &repair.ReadAgain{Of: due[0], Until: 5, HighestAt: 3}, decisions); err != nil {
		t.Fatal(err)
	}
	same(t, "read again from", lines(t, pool, "SELECT highest_version || ' from ' || first_offset FROM park_overflow"), "900 from 3")
}

// TestAnUnskipForgetsNoPlace skips a version while later events are beyond the park limit, and
// revokes the skip. The later events are still read again when their turn comes.
func TestAnUnskipForgetsNoPlace(t *testing.T) {
	const row = "SELECT concat_ws(' ', partition, lowest_version, highest_version, events, first_offset, first_version) FROM park_overflow"
	pool, w := startAtTheLimit(t)
	w.MustFold(credit("b", 1, "1", "EUR"), credit("b", 4, "1", "EUR"), credit("b", 5, "1", "EUR"), credit("b", 6, "1", "EUR"))
	w.MustFlush()
	r, before := newRepair(t, pool, 0), lines(t, pool, row)
	if _, err := r.Skip(t.Context(), skipOf("b", 2)); err != nil {
		t.Fatal(err)
	}
	if err := r.Unskip(t.Context(), skipOf("b", 2)); err != nil {
		t.Fatal(err)
	}
	same(t, "beyond the limit", lines(t, pool, row), before)
	expect(t, current(t, pool, "b"), "EUR 1.00 1 open b-1 true 2")
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("b", 2, "1", "EUR"), credit("b", 3, "1", "EUR"))
	w.MustFlush()
	heal(t, w)
	expect(t, current(t, pool, "b"), "EUR 4.00 4 open b-4 true 5")
	if due := dueOf(t, pool); len(due) != 1 {
		t.Errorf("due: %+v", due)
	}
}

// TestAnUnskipRestoresNoEventThatNeverCame skips a version of which no event came, discards all later
// events, and takes the skip back. Then no event of the account waits.
func TestAnUnskipRestoresNoEventThatNeverCame(t *testing.T) {
	pool, w := startAtTheLimit(t)
	w.MustFold(credit("b", 1, "1", "EUR"), credit("b", 4, "1", "EUR"), credit("b", 5, "1", "EUR"))
	w.MustFlush()
	r := newRepair(t, pool, 0)
	if plan, err := r.PlanSkip(t.Context(), skipOf("b", 2)); err != nil || plan.Event != (repair.SkippedEvent{}) {
		t.Errorf("known of the version: %+v, error %v", plan.Event, err)
	}
	if _, err := r.Skip(t.Context(), skipOf("b", 2)); err != nil {
		t.Fatal(err)
	}
	list := []readmodel.Discard{discardOf("b", 4, 3, event.VersionGap), discardOf("b", 5, 4, event.VersionGap)}
	if _, err := r.Discard(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if err := r.Unskip(t.Context(), skipOf("b", 2)); err != nil {
		t.Fatal(err)
	}
	expect(t, current(t, pool, "b"), "EUR 1.00 1 open b-1 false -")
}

// discardOf discards the event of an account at an offset.
func discardOf(accountID string, version, offset int64, class event.Class) readmodel.Discard {
	return readmodel.Discard{Subject: readmodel.Subject{AccountID: accountID, Version: version}, Action: readmodel.Action{
		Kind: readmodel.ActionDiscard, Projection: readmodel.BalanceName, Result: readmodel.ResultDiscarded, AccountID: accountID, Version: &version,
		Topic: partition.Topic, Partition: partition.Number, Offset: offset, DLQTopic: "events.dlq", DLQOffset: offset, Class: class, Actor: "me", Reason: "x",
	}}
}

// TestDiscardOfOneOfTwoDeliveries has two records of one event beyond the park limit, because the
// producer has sent it twice. An operator discards only the second record. The event must not be
// forgotten: the account is stale, and the event is due when its turn has come.
func TestDiscardOfOneOfTwoDeliveries(t *testing.T) {
	pool, w := startAtTheLimit(t)
	if _, err := w.Fold(t.Context(), w.Records(credit("a", 4, "100", "EUR"), credit("a", 4, "100", "EUR")), 1000); err != nil {
		t.Fatal(err)
	}
	w.MustFlush()
	discard := func(offset int64) {
		t.Helper()
		if _, err := newRepair(t, pool, 0).Discard(t.Context(), []readmodel.Discard{discardOf("a", 4, offset, event.VersionGap)}); err != nil {
			t.Fatal(err)
		}
		w.MustClaim("me", projection.NoOffset)
	}
	discard(3)
	w.MustFold(credit("a", 2, "1", "EUR"))
	w.MustFlush()
	due := dueOf(t, pool)
	if len(due) != 1 {
		t.Errorf("beyond the park limit and due: %+v", due)
	}
	expect(t, current(t, pool, "a"), "EUR 3.00 3 open a-3 true 4")
	discard(2)
	expect(t, current(t, pool, "a"), "EUR 3.00 3 open a-3 false -")
}

// TestDiscardsBeyondTheParkLimit discards events beyond the park limit of account a, and then says
// what is known to be beyond the limit. In some cases it is read again at once. Version 3 is parked,
// and version 2 is missing.
func TestDiscardsBeyondTheParkLimit(t *testing.T) {
	const row = "SELECT concat_ws(' ', lowest_version, highest_version, events, first_offset, first_version) FROM park_overflow"
	for _, c := range []struct {
		what     string
		versions []int64   // of the events beyond the limit, from offset 2 on
		twice    bool      // the events are read twice
		discards [][]int64 // the offsets that each command discards
		class    event.Class
		want     string
		parked   string // the versions that are parked, if the range is read again at once
	}{
		{"one of two", []int64{4, 5}, false, [][]int64{{3}}, event.VersionGap, "4 5 1 2 4", ""},
		{"all", []int64{4, 5}, false, [][]int64{{2, 3}}, event.VersionGap, "", ""},
		{"all, which are broken", []int64{4, 5}, false, [][]int64{{2, 3}}, event.UnsupportedCurrency, "", ""},
		{"none, a conflict", []int64{4}, false, [][]int64{{2}}, event.VersionConflict, "4 4 1 2 4", ""},
		{"all, one after the other", []int64{4, 5, 6}, false, [][]int64{{2}, {3}, {4}}, event.VersionGap, "", ""},
		{"all, with a gap", []int64{4, 6}, false, [][]int64{{2}, {3}}, event.VersionGap, "5 6 1 2 0", "3"},
		{"one of two deliveries", []int64{4, 6, 6}, false, [][]int64{{4}}, event.VersionGap, "4 6 2 2 4", ""},
		{"one of two deliveries, and what is before", []int64{4, 6, 6}, false, [][]int64{{2}, {4}}, event.VersionGap, "5 6 1 2 4", ""},
		{"all events that were read twice", []int64{4, 5}, true, [][]int64{{2, 3}}, event.VersionGap, "5 5 2 2 0", "3"},
		{"all versions, but not all events", []int64{4, 4}, false, [][]int64{{2}}, event.VersionGap, "4 4 1 2 0", "3 4"},
	} {
		t.Run(c.what, func(t *testing.T) {
			pool, w := startAtTheLimit(t)
			values := make([]string, len(c.versions))
			for i, v := range c.versions {
				values[i] = credit("a", int(v), "1", "EUR")
			}
			records := w.Records(values...)
			for again := true; again; again, c.twice = c.twice, false {
				if _, err := w.Fold(t.Context(), records, 1000); err != nil {
					t.Fatal(err)
				}
				w.MustFlush()
			}
			r := newRepair(t, pool, 0)
			for _, offsets := range c.discards {
				var list []readmodel.Discard
				for _, offset := range offsets {
					list = append(list, discardOf("a", c.versions[offset-2], offset, c.class))
				}
				if _, err := r.Discard(t.Context(), list); err != nil {
					t.Fatal(err)
				}
			}
			same(t, "beyond the limit", lines(t, pool, row), c.want)
			due := dueOf(t, pool)
			if len(due) > 0 != (c.parked != "") {
				t.Fatalf("due %+v", due)
			}
			if len(due) == 0 {
				return
			}
			read := &repair.ReadAgain{Of: due[0], Until: 10}
			for i := range records {
				read.First = append(read.First, waitingEvent(&records[i], 2))
			}
			if err := r.ParkBeyond(t.Context(), read, readmodel.NewDecisions(pool, balance.Definition{})); err != nil {
				t.Fatal(err)
			}
			same(t, "beyond the limit, after the range was read again", lines(t, pool, row), "")
			same(t, "parked", lines(t, pool, "SELECT string_agg(version::text, ' ' ORDER BY version) FROM parked_event"), c.parked)
		})
	}
}

// TestAnEventSentTwiceIsNotForgotten has two records of version 6 beyond the park limit, of which one
// is discarded, while version 5 is missing. All missing versions then arrive at once.
func TestAnEventSentTwiceIsNotForgotten(t *testing.T) {
	pool, w := startAtTheLimit(t)
	w.MustFold(credit("a", 4, "1", "EUR"), credit("a", 6, "100", "EUR"), credit("a", 6, "100", "EUR"))
	w.MustFlush()
	if _, err := newRepair(t, pool, 0).Discard(t.Context(), []readmodel.Discard{discardOf("a", 6, 4, event.VersionGap)}); err != nil {
		t.Fatal(err)
	}
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 2, "1", "EUR"), credit("a", 4, "1", "EUR"), credit("a", 5, "1", "EUR"))
	w.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 5.00 5 open a-5 true 6")
	due := dueOf(t, pool)
	if len(due) != 1 || due[0].FirstOffset > 3 {
		t.Errorf("beyond the park limit and due: %+v", due)
	}
}

// TestAnAccountWithoutABalanceIsReadAgain discards all events beyond the park limit of an account that
// has no row yet, one by one. No event is left, which is not known before the range is read again.
func TestAnAccountWithoutABalanceIsReadAgain(t *testing.T) {
	pool, w := startAtTheLimit(t)
	w.MustFold(credit("new", 3, "1", "EUR"), credit("new", 4, "1", "EUR"), credit("new", 6, "1", "EUR"))
	w.MustFlush()
	if due := dueOf(t, pool); len(due) != 0 {
		t.Fatalf("due before the discards: %+v", due)
	}
	r := newRepair(t, pool, 0)
	for version, offset := range map[int64]int64{4: 3, 6: 4} {
		if _, err := r.Discard(t.Context(), []readmodel.Discard{discardOf("new", version, offset, event.VersionGap)}); err != nil {
			t.Fatal(err)
		}
	}
	due := dueOf(t, pool)
	if len(due) != 1 || due[0].AccountID != "new" || due[0].Version != 0 {
		t.Fatalf("due %+v", due)
	}
	if err := r.ParkBeyond(t.Context(), &repair.ReadAgain{Of: due[0], Until: 10}, readmodel.NewDecisions(pool, balance.Definition{})); err != nil {
		t.Fatal(err)
	}
	same(t, "beyond the limit", lines(t, pool, "SELECT account_id FROM park_overflow"), "")
}

// waitingEvent returns a record's event in the form in which it is parked.
func waitingEvent(r *projection.DecodedRecord, expected int64) *projection.Parked {
	return &projection.Parked{Record: r.Record, Decoded: r.Decoded, Class: event.VersionGap, Expected: expected}
}

// newDiscarder returns a Repair that knows the decisions of people, which a discard needs.
func newDiscarder(pool *pgxpool.Pool, w *worker) *repair.Repair {
	return repair.New(readmodel.RepairConfig{Pool: pool, Formats: event.Always(w.Format), FirstVersion: 1, Decisions: readmodel.NewDecisions(pool, balance.Definition{})})
}

// startWithThreeEvents has three events of version 3 of account a. The first one, at offset 1, is parked.
// The others are returned.
func startWithThreeEvents(t *testing.T) (*pgxpool.Pool, []projection.DecodedRecord, *repair.Repair) {
	t.Helper()
	pool, w := startAtTheLimit(t)
	others := w.Records(credit("a", 3, "5", "EUR"), credit("a", 3, "7", "EUR"))
	if _, err := w.Fold(t.Context(), others, 1000); err != nil {
		t.Fatal(err)
	}
	w.MustFlush()
	return pool, others, newDiscarder(pool, w)
}

// TestAnEventThatWasParkedAfterThePlan has three events of a version. One person plans the discard of the
// second one, which is not parked. Then another person discards the first one, and the second one is
// parked instead. The discard is refused: nobody would know of the third event, which a new plan finds.
func TestAnEventThatWasParkedAfterThePlan(t *testing.T) {
	pool, others, r := startWithThreeEvents(t)
	second := discardOf("a", 3, 2, event.VersionGap)
	found, err := r.PlanDiscard(t.Context(), []readmodel.Discard{second})
	if err != nil || found[0].Removed {
		t.Fatalf("plan %+v, %v", found, err)
	}
	second.NotParked = true
	first := discardOf("a", 3, 1, event.VersionGap)
	first.Instead = waitingEvent(&others[0], 0)
	if _, err := r.Discard(t.Context(), []readmodel.Discard{first}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Discard(t.Context(), []readmodel.Discard{second}); err == nil || !strings.Contains(err.Error(), `account "a" version 3 was parked meanwhile`) {
		t.Errorf("error %v", err)
	}
	same(t, "parked", lines(t, pool, `SELECT "offset"::text FROM parked_event`), "2")
	same(t, "recorded", lines(t, pool, `SELECT "offset"::text FROM dlq_action`), "1")
}

// TestWhatIsParkedInsteadWasDiscardedMeanwhile has three events of a version. One person discards the
// parked event and has the second one parked instead. Another person discards the second one after the
// plan. The discard is refused: nobody would know of the third event, which a new plan finds.
func TestWhatIsParkedInsteadWasDiscardedMeanwhile(t *testing.T) {
	pool, others, r := startWithThreeEvents(t)
	if _, err := r.Discard(t.Context(), []readmodel.Discard{discardOf("a", 3, 2, event.VersionGap)}); err != nil {
		t.Fatal(err)
	}
	first := discardOf("a", 3, 1, event.VersionGap)
	first.Instead = waitingEvent(&others[0], 0)
	if _, err := r.Discard(t.Context(), []readmodel.Discard{first}); err == nil || !strings.Contains(err.Error(), "was discarded meanwhile") {
		t.Errorf("error %v", err)
	}
	same(t, "parked", lines(t, pool, `SELECT "offset"::text FROM parked_event`), "1")
	first.Instead = waitingEvent(&others[1], 0)
	if _, err := r.Discard(t.Context(), []readmodel.Discard{first}); err != nil {
		t.Fatal(err)
	}
	same(t, "parked", lines(t, pool, `SELECT "offset"::text FROM parked_event`), "3")
}

// TestTheFirstEventOfAnAccountIsParkedInstead has two events of the first version of an account, which
// are refused because of their currency. Then the settings change, and one of them is discarded. The
// other one is parked instead. It can be applied now, although the account has no row.
func TestTheFirstEventOfAnAccountIsParkedInstead(t *testing.T) {
	pool, w := startAtTheLimit(t)
	two := w.Records(credit("new", 1, "5", "EUR"), credit("new", 1, "7", "EUR"))
	other := waitingEvent(&two[1], 0)
	for i := range two {
		two[i].Decoded.Fault = &event.Fault{Class: event.UnsupportedCurrency}
	}
	if _, err := w.Fold(t.Context(), two, 1000); err != nil {
		t.Fatal(err)
	}
	w.MustFlush()
	first := discardOf("new", 1, 2, event.UnsupportedCurrency)
	first.Instead = other
	r := newDiscarder(pool, w)
	if _, err := r.Discard(t.Context(), []readmodel.Discard{first}); err != nil {
		t.Fatal(err)
	}
	same(t, "parked", lines(t, pool, `SELECT "offset"::text FROM parked_event WHERE account_id = 'new'`), "3")
	heal(t, w)
	same(t, "the account", current(t, pool, "new"), "EUR 7.00 1 open new-1 false -")
}

// TestAnEventBeyondTheLimitThatWasAppliedDoesNotWait delivers an event beyond the park limit once more in
// the same flush, when its turn has come. The account then waits for nothing, so a skip is refused.
func TestAnEventBeyondTheLimitThatWasAppliedDoesNotWait(t *testing.T) {
	pool, w := startAtTheLimit(t)
	w.MustFlush()
	w.MustFold(credit("a", 5, "1", "EUR"), credit("a", 2, "1", "EUR"), credit("a", 4, "1", "EUR"), credit("a", 5, "1", "EUR"))
	w.MustFlush()
	same(t, "the account", current(t, pool, "a"), "EUR 5.00 5 open a-5 false -")
	same(t, "beyond the limit", lines(t, pool, "SELECT account_id FROM park_overflow"), "")
	_, err := newRepair(t, pool, 0).Skip(t.Context(), repair.Skip{AccountID: "a", Version: 6, Actor: "me", Reason: "x"})
	if err == nil || !strings.Contains(err.Error(), "waits for no event") {
		t.Errorf("error %v", err)
	}
}

// TestABrokenEventDoesNotKeepAnEventBeyondTheLimitFromItsTurn has two events of a version. The first is
// beyond the park limit. The second cannot be applied, and comes when it is the account's next one, in
// the same flush or later. The first is read again and applied.
func TestABrokenEventDoesNotKeepAnEventBeyondTheLimitFromItsTurn(t *testing.T) {
	for _, sameFlush := range []bool{true, false} {
		pool, w := startAtTheLimit(t)
		records := w.Records(credit("a", 4, "1", "EUR"), credit("a", 2, "1", "EUR"), credit("a", 4, "1", "EUR"))
		records[2].Decoded.Event.ID, records[2].Decoded.Fault = "broken", &event.Fault{Class: event.InvalidAmount}
		for i := range records {
			if _, err := w.Fold(t.Context(), records[i:i+1], 1000); err != nil {
				t.Fatal(err)
			}
			if !sameFlush {
				w.MustFlush()
			}
		}
		w.MustFlush()
		due := dueOf(t, pool)
		if len(due) != 1 || due[0].Version != 3 {
			t.Fatalf("due %+v", due)
		}
		read := &repair.ReadAgain{Of: due[0], Until: w.Next, HighestAt: 2, First: []*projection.Parked{waitingEvent(&records[0], 4)}}
		if err := newRepair(t, pool, 0).ParkBeyond(t.Context(), read, readmodel.NewDecisions(pool, balance.Definition{})); err != nil {
			t.Fatal(err)
		}
		heal(t, w)
		same(t, "the account", current(t, pool, "a"), "EUR 4.00 4 open a-4 false -")
	}
}

// TestABrokenEventBeyondTheLimitIsReadAgainOnce has an event beyond the park limit that cannot be
// applied when its turn comes. Another event goes beyond the limit while the first one is read
// again. After that, the first one must not be read again, because each reading would dead-letter
// it again.
func TestABrokenEventBeyondTheLimitIsReadAgainOnce(t *testing.T) {
	pool, w := startAtTheLimit(t)
	records := w.Records(credit("a", 4, "1", "USD"))
	if _, err := w.Fold(t.Context(), records, 1000); err != nil {
		t.Fatal(err)
	}
	w.MustFold(credit("a", 2, "1", "EUR"))
	w.MustFlush()
	due := dueOf(t, pool)
	if len(due) != 1 || due[0].Version != 3 {
		t.Fatalf("due %+v", due)
	}
	read := &repair.ReadAgain{Of: due[0], Until: w.Next, HighestAt: records[0].Record.Offset, First: []*projection.Parked{waitingEvent(&records[0], 4)}}
	w.MustFold(credit("a", 6, "1", "EUR"), credit("a", 7, "1", "EUR"))
	w.MustFlush()
	if err := newRepair(t, pool, 0).ParkBeyond(t.Context(), read, readmodel.NewDecisions(pool, balance.Definition{})); err != nil {
		t.Fatal(err)
	}
	heal(t, w)
	same(t, "parked", lines(t, pool, "SELECT class FROM parked_event WHERE version = 4"), string(event.CurrencyMismatch))
	if due := dueOf(t, pool); len(due) != 0 {
		t.Errorf("due again: %+v", due)
	}
}
