package balance_test

import (
	"errors"
	"fmt"
	"testing"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/repair"
)

// In TestTwoPartitionsOfOneAccount, two partitions have events of one account, and both fold an
// event of version 2 while the stored version is 1. The later write must not overwrite the event of
// the other partition.
func TestTwoPartitionsOfOneAccount(t *testing.T) {
	pool := openPool(t)
	a, b := newWorker(t, pool, inPartition(0)), newWorker(t, pool, inPartition(1))
	a.MustClaim("me", projection.NoOffset)
	b.MustClaim("me", projection.NoOffset)
	a.MustFold(credit("x", 1, "1", "EUR"))
	a.MustFlush()
	a.MustFold(credit("x", 2, "10", "EUR"))
	b.MustFold(credit("x", 2, "2", "EUR"), credit("x", 3, "4", "EUR")) // another event of version 2
	a.MustFlush()
	if _, err := b.VerifyAndFlush(); !errors.Is(err, projection.ErrStale) {
		t.Fatalf("error %v, want ErrStale: 10 of version 2 would be lost", err)
	}
	b.MustClaim("me", 0)
	b.MustFold(credit("x", 2, "2", "EUR"), credit("x", 3, "4", "EUR"))
	b.MustFlush()
	expect(t, current(t, pool, "x"), "EUR 15.00 3 open x-3 false -")
}

// TestTwoPartitionsOfANewAccount shows the same for an account without a row.
func TestTwoPartitionsOfANewAccount(t *testing.T) {
	pool := openPool(t)
	a, b := newWorker(t, pool, inPartition(0)), newWorker(t, pool, inPartition(1))
	a.MustClaim("me", projection.NoOffset)
	b.MustClaim("me", projection.NoOffset)
	a.MustFold(credit("x", 1, "10", "EUR"))
	b.MustFold(credit("x", 1, "2", "EUR"), credit("x", 2, "4", "EUR"))
	a.MustFlush()
	if _, err := b.VerifyAndFlush(); !errors.Is(err, projection.ErrStale) {
		t.Fatalf("error %v, want ErrStale", err)
	}
}

// TestARepairLeavesOtherAccountsAlone shows that a consumer without pending events of the repaired
// account can write and move its position.
func TestARepairLeavesOtherAccountsAlone(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"), credit("b", 1, "1", "EUR"))
	w.MustFlush()
	w.MustFold(credit("b", 2, "2", "EUR"), credit("c", 5, "2", "EUR"))
	corrected := replayOf(w.Format, credit("a", 2, "100", "EUR"))
	corrected[0].Reprocessed = false
	if err := newRepair(t, pool, 0).Apply(t.Context(), corrected, nil); err != nil {
		t.Fatal(err)
	}
	w.MustFlush()
	expect(t, current(t, pool, "a"), "EUR 105.00 3 open a-3 false -")
	expect(t, current(t, pool, "b"), "EUR 3.00 2 open b-2 false -")
}

// In TestAParkedEventRestsOnItsAccount, the decision about an event's dead letter is verified. Then
// a repair brings the account to the version before the event. The event must then not be parked,
// because its gap no longer exists.
func TestAParkedEventRestsOnItsAccount(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"))
	w.MustFlush()
	w.MustFold(credit("a", 3, "4", "EUR"))
	if err := w.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := newRepair(t, pool, 0).Apply(t.Context(), replayOf(w.Format, credit("a", 2, "2", "EUR")), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Flush(t.Context(), projection.NextOffset{Offset: w.Next}); !errors.Is(err, projection.ErrStale) {
		t.Fatalf("error %v, want ErrStale", err)
	}
	if n := readmodeltest.Count(t, pool, "SELECT count(*) FROM parked_event"); n != 0 {
		t.Errorf("%d events are parked", n)
	}
}

// TestAShortQueueIsSeenWithTheEventItWaitedFor shows that the flush that fills the gap also applies
// the parked events after it. This flush applies at most 1,000 of them.
func TestAShortQueueIsSeenWithTheEventItWaitedFor(t *testing.T) {
	for _, parked := range []int{3, 1000, 1500} {
		t.Run(fmt.Sprint(parked), func(t *testing.T) {
			pool := openPool(t)
			w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkLimit = 2000 })
			w.MustClaim("me", projection.NoOffset)
			for v := 2; v <= parked+1; v++ {
				w.MustFold(credit("a", v, "1", "EUR"))
			}
			w.MustFlush()
			n, err := w.Fold(t.Context(), w.Records(credit("a", 1, "1", "EUR")), 10) // fewer than the waiting events
			if err != nil || n != 1 {
				t.Fatalf("%d records, error %v", n, err)
			}
			w.MustFlush()
			version := min(parked, 1000) + 1
			stale := "false -"
			if parked > 1000 {
				stale = fmt.Sprintf("true %d", version+1)
			}
			expect(t, current(t, pool, "a"), fmt.Sprintf("EUR %d.00 %d open a-%d %s", version, version, version, stale))
		})
	}
}

// TestTheEventAtTheGapIsParkedAtTheLimit shows that the event that makes the gap is always parked,
// even if the limit is reached. The command `gaps` shows this event, and `account skip` skips it.
func TestTheEventAtTheGapIsParkedAtTheLimit(t *testing.T) {
	pool := openPool(t)
	w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkLimit = 2 })
	w.MustClaim("me", projection.NoOffset)
	poison := `{"eventId":"p-2","eventType":"FundsCredited","accountId":"a","version":2,"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":1,"currency":"EUR"}}`
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "1", "EUR"), credit("a", 4, "1", "EUR"), credit("a", 5, "1", "EUR"), poison)
	w.MustFlush()
	for hold, err := range accountdb.Gaps(t.Context(), pool, readmodel.BalanceName) {
		if err != nil || hold.Expected != 2 || hold.Class != "malformed_payload" && hold.Class != "invalid_amount" {
			t.Errorf("gap %+v, error %v; want the poison event as the gap", hold, err)
		}
	}
	done, err := newRepair(t, pool, 0).Skip(t.Context(), repair.Skip{AccountID: "a", Version: 2, Actor: "me", Reason: "lost at the source"})
	if err != nil || done.EventID != "p-2" {
		t.Errorf("skipped %+v, error %v; want the id of the event that was passed over", done, err)
	}
}
