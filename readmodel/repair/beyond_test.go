package repair_test

import (
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/balance"
	"projector/readmodel/repair"
)

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
			version := int64(5)
			if _, err := r.Discard(t.Context(), []readmodel.Discard{{
				Subject: readmodel.Subject{AccountID: "a", Version: version}, Action: readmodel.Action{
					Kind: readmodel.ActionDiscard, Projection: readmodel.BalanceName, Result: readmodel.ResultDiscarded, AccountID: "a", Version: &version,
					Topic: partition.Topic, Partition: partition.Number, Offset: 3, DLQTopic: "events.dlq", DLQOffset: 3, Class: event.VersionGap, Actor: "me", Reason: "x",
				},
			}}); err != nil {
				t.Fatal(err)
			}
		}, "4", "4 4 1 4 4", "EUR 4.00 4 open a-4 false -"},
		{"one more arrives", func(t *testing.T, w *worker, _ *repair.Repair) {
			t.Helper()
			w.MustClaim("me", projection.NoOffset)
			w.MustFold(credit("a", 8, "1", "EUR"), credit("a", 9, "1", "EUR"))
			w.MustFlush()
		}, "4\n5", "4 9 1 4 4", "EUR 104.00 5 open a-5 true 6"},
	} {
		t.Run(c.what, func(t *testing.T) {
			pool := openPool(t)
			w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkLimit = 1 })
			w.MustClaim("me", projection.NoOffset)
			w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "1", "EUR"))
			beyond := w.Records(credit("a", 4, "1", "EUR"), credit("a", 5, "100", "EUR"))
			if _, err := w.Fold(t.Context(), beyond, 1000); err != nil {
				t.Fatal(err)
			}
			w.MustFlush()
			w.MustFold(credit("a", 2, "1", "EUR"))
			w.MustFlush()
			heal := func() {
				t.Helper()
				w.MustClaim("me", projection.NoOffset)
				for more := true; more; w.MustFlush() {
					var err error
					if more, err = w.Heal(1000); err != nil {
						t.Fatal(err)
					}
				}
			}
			heal()
			due, _, err := accountdb.LoadBeyond(t.Context(), pool, readmodel.BalanceName, partition.Topic, []int32{partition.Number})
			if err != nil || len(due) != 1 {
				t.Fatalf("due %+v, error %v", due, err)
			}
			decisions, r := readmodel.NewDecisions(pool, balance.Definition{}), newRepair(t, pool, 0)
			if err := decisions.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.meanwhile(t, w, r)
			read := &repair.ReadAgain{Of: due[0], Until: 4}
			for i := range beyond {
				read.First = append(read.First, &projection.Parked{Record: beyond[i].Record, Decoded: beyond[i].Decoded, Class: event.VersionGap, Expected: 4})
			}
			if err := r.ParkBeyond(t.Context(), read, decisions); err != nil {
				t.Fatal(err)
			}
			same(t, "parked", lines(t, pool, "SELECT version::text FROM parked_event WHERE version < 8 ORDER BY 1"), c.parked)
			same(t, "beyond the limit", lines(t, pool, row), c.rest)
			heal()
			same(t, "the account", current(t, pool, "a"), c.balances)
		})
	}
}

// TestDiscardOfOneOfTwoDeliveries has two records of one event beyond the park limit, because the
// producer has sent it twice. An operator discards only the second record. The event must not be
// forgotten: the account is stale, and the event is due when its turn has come.
func TestDiscardOfOneOfTwoDeliveries(t *testing.T) {
	pool := openPool(t)
	w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkLimit = 1 })
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "1", "EUR"))
	if _, err := w.Fold(t.Context(), w.Records(credit("a", 4, "100", "EUR"), credit("a", 4, "100", "EUR")), 1000); err != nil {
		t.Fatal(err)
	}
	w.MustFlush()
	discard := func(offset int64) {
		t.Helper()
		version := int64(4)
		if _, err := newRepair(t, pool, 0).Discard(t.Context(), []readmodel.Discard{{
			Subject: readmodel.Subject{AccountID: "a", Version: version}, Action: readmodel.Action{
				Kind: readmodel.ActionDiscard, Projection: readmodel.BalanceName, Result: readmodel.ResultDiscarded, AccountID: "a", Version: &version,
				Topic: partition.Topic, Partition: partition.Number, Offset: offset, DLQTopic: "events.dlq", DLQOffset: offset, Class: event.VersionGap, Actor: "me", Reason: "x",
			},
		}}); err != nil {
			t.Fatal(err)
		}
		w.MustClaim("me", projection.NoOffset)
	}
	discard(3)
	w.MustFold(credit("a", 2, "1", "EUR"))
	w.MustFlush()
	due, _, err := accountdb.LoadBeyond(t.Context(), pool, readmodel.BalanceName, partition.Topic, []int32{partition.Number})
	if err != nil || len(due) != 1 {
		t.Errorf("beyond the park limit and due: %+v, error %v", due, err)
	}
	expect(t, current(t, pool, "a"), "EUR 3.00 3 open a-3 true 4")
	discard(2)
	expect(t, current(t, pool, "a"), "EUR 3.00 3 open a-3 false -")
}
