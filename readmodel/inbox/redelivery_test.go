package inbox_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/inbox"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/turnover"
)

// In TestConcurrentRedeliveriesCountOnce, several groups process the same events at the same time,
// in batches of different sizes.
func TestConcurrentRedeliveriesCountOnce(t *testing.T) {
	pool := openPool(t)
	const events, groups = 400, 4
	var values []string
	for n := range events {
		values = append(values, eventAs(fmt.Sprintf("e-%d", n*7919%events), "FundsCredited", "a", n+1, noon, eur("1")))
	}
	applied := make([]int, groups)
	var all sync.WaitGroup
	for g := range groups {
		f := newFeeder(t, pool, turnover.Definition(), readmodel.Partition{Group: fmt.Sprint("g", g), Topic: "events"})
		all.Go(func() {
			for rest := values; len(rest) > 0; {
				batch := slices.Clone(rest[:min(len(rest), 80+g)])
				rest = rest[len(batch):]
				if g%2 == 1 {
					slices.Reverse(batch) // without sorting, writers in opposite orders would deadlock
				}
				f.Feed(batch...)
			}
			applied[g] = f.Counts["applied"]
		})
	}
	all.Wait()
	same(t, "turnover", turnoverOf(t, pool), fmt.Sprintf("2026-01-01 EUR %d.00 0.00 %d", events, events))
	sum := 0
	for _, n := range applied {
		sum += n
	}
	if sum != events {
		t.Errorf("applied %v: together %d, want %d", applied, sum, events)
	}
}

// age makes all markers older than the retention and prunes them.
func age(t *testing.T, pool *pgxpool.Pool) (deleted int64) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), "UPDATE inbox SET processed_at = processed_at - interval '30 days'"); err != nil {
		t.Fatal(err)
	}
	if err := inbox.Of(turnover.Name).Prune(t.Context(), pool, 7*24*time.Hour, func(n int64) { deleted += n }); err != nil {
		t.Fatal(err)
	}
	return deleted
}

func TestAfterPruningThePositionDecides(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, turnover.Definition(), partition)
	values := []string{
		eventAs("1", "FundsCredited", "a", 1, noon, eur("1")),
		eventAs("2", "FundsCredited", "a", 2, noon, eur("2")),
		eventAs("bad", "FundsCredited", "a", 3, noon, eur("x")),
	}
	f.Feed(values...)
	if n := age(t, pool); n != 2 {
		t.Fatalf("pruned %d markers, want 2", n)
	}
	const once = "2026-01-01 EUR 3.00 0.00 2"

	f.MustClaim(0) // the group's offsets were reset
	f.Feed(values...)
	same(t, "after a reset", turnoverOf(t, pool), once)
	same(t, "outcomes", f.Outcomes(), "2 2 0 2")

	other := newFeeder(t, pool, turnover.Definition(), readmodel.Partition{Group: "renamed", Topic: "events"})
	other.Feed(values...)
	same(t, "by another group", turnoverOf(t, pool), once)
	other.Feed(eventAs("3", "FundsCredited", "a", 3, noon, eur("4")))
	same(t, "what is new", turnoverOf(t, pool), "2026-01-01 EUR 7.00 0.00 3")

	// The first group has now processed fewer events than the other group. The marker of the last
	// event is then pruned, too. The worker of the first group has claimed its partition before
	// this pruning.
	if n := age(t, pool); n != 1 {
		t.Fatalf("pruned %d markers, want 1", n)
	}
	f.Feed(eventAs("3", "FundsCredited", "a", 3, noon, eur("4")))
	same(t, "behind another group", turnoverOf(t, pool), "2026-01-01 EUR 7.00 0.00 3")

	// The projection cannot prevent this case. An event that is produced again is not recognized
	// after its marker was pruned.
	f.Feed(values[0])
	same(t, "produced once more", turnoverOf(t, pool), "2026-01-01 EUR 8.00 0.00 4")
}

func TestBeforePruningTheMarkersDecide(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, turnover.Definition(), partition)
	value := eventAs("1", "FundsCredited", "a", 1, noon, eur("1"))
	f.Feed(value)
	// This is a manual rebuild, in which the tables are emptied and the offsets are reset.
	if _, err := pool.Exec(t.Context(), "TRUNCATE daily_turnover, inbox"); err != nil {
		t.Fatal(err)
	}
	f.MustClaim(0)
	f.Feed(value)
	same(t, "counted anew", turnoverOf(t, pool), "2026-01-01 EUR 1.00 0.00 1")
}

// TestPruningUnderAReader prunes after the claim of a range that is read again, and before the
// range is written. This version of the program does not remove markers that are still needed. An
// older version removes them.
func TestPruningUnderAReader(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, turnover.Definition(), partition)
	value := eventAs("1", "FundsCredited", "a", 1, noon, eur("1"))
	f.Feed(value)
	f.MustClaim(0)
	f.MustFold(value)
	if n := age(t, pool); n != 0 {
		t.Errorf("%d markers were pruned of a range that is read again", n)
	}
	for _, older := range []string{"DELETE FROM inbox", "INSERT INTO inbox_pruned VALUES ('daily_turnover', now())"} {
		if _, err := pool.Exec(t.Context(), older); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.VerifyAndFlush(); err == nil {
		t.Error("an event whose marker was pruned meanwhile was taken in again")
	}
	f.MustClaim(projection.NoOffset)
	f.Feed(value)
	same(t, "turnover", turnoverOf(t, pool), "2026-01-01 EUR 1.00 0.00 1")
}

// After the inbox was pruned, the leader epoch shows which records an additive projection has
// counted.
func TestAPrunedInboxCountsWhatALaterLeaderAppends(t *testing.T) {
	pool := openPool(t)
	f := newFeeder(t, pool, turnover.Definition(), partition)
	old := []string{
		eventAs("1", "FundsCredited", "a", 1, noon, eur("1")),
		eventAs("2", "FundsCredited", "a", 2, noon, eur("2")),
		eventAs("3", "FundsCredited", "a", 3, noon, eur("4")),
	}
	f.Feed(old...)
	age(t, pool)
	same(t, "before", turnoverOf(t, pool), "2026-01-01 EUR 7.00 0.00 3")

	readmodeltest.Exec(t, pool, "UPDATE projector_position SET next_offset = 1") // the log ended at offset 1
	f.MustClaim(projection.NoOffset)
	f.Epoch = 1
	f.Feed(eventAs("new", "FundsCredited", "a", 2, noon, eur("100")))
	same(t, "an event of 100 at an old offset", turnoverOf(t, pool), "2026-01-01 EUR 107.00 0.00 4")

	f.MustClaim(0) // the group's offsets were reset
	f.Epoch = 0
	f.Feed(old[0])
	f.Epoch = 1
	f.Feed(eventAs("new", "FundsCredited", "a", 2, noon, eur("100")))
	same(t, "after a reset", turnoverOf(t, pool), "2026-01-01 EUR 107.00 0.00 4")

	other := newFeeder(t, pool, turnover.Definition(), readmodel.Partition{Group: "other", Topic: "events"})
	other.Feed(old[0])
	same(t, "by another group", turnoverOf(t, pool), "2026-01-01 EUR 107.00 0.00 4")
	other.Epoch = 2
	other.Feed(eventAs("newer", "FundsCredited", "a", 2, noon, eur("1000")))
	same(t, "new to another group", turnoverOf(t, pool), "2026-01-01 EUR 1107.00 0.00 5")
}
