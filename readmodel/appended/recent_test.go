package appended_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"projector/readmodel"
	"projector/readmodel/appended"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// caches returns recent-event caches that work, forget events or are missing.
func caches() map[string]func(readmodel.RunConfig) *appended.Recent {
	cache := func(bytes int, now func() time.Time) func(readmodel.RunConfig) *appended.Recent {
		return func(readmodel.RunConfig) *appended.Recent {
			return appended.NewRecent(func() int { return bytes }, now)
		}
	}
	jumping := func() time.Time { return time.Unix(rand.Int64N(1<<32), 0) }
	return map[string]func(readmodel.RunConfig) *appended.Recent{
		"none":           nil,
		"sound":          cache(1<<20, time.Now),
		"always evicted": cache(0, time.Now),
		"clock jumping":  cache(1<<20, jumping),
	}
}

// TestTheRecentEventCacheDecidesNothing runs the same deliveries with each cache from the function
// caches. Rows and outcomes must be the same.
func TestTheRecentEventCacheDecidesNothing(t *testing.T) {
	t.Parallel()
	var deliveries [][]string
	for n := range 12 {
		var batch []string
		for i := range 20 {
			v := (n*7 + i) % 60 // each event comes several times
			batch = append(batch, eventAs(fmt.Sprint("e", v), "FundsCredited", "a", v+1, noon, eur("1")))
		}
		deliveries = append(deliveries, batch)
	}
	answers := map[string]string{"none": "false false", "sound": "true true"} // whether there were hits and misses
	for _, kind := range []readmodel.Definition{statement.Definition(), turnover.Definition()} {
		want := ""
		for name, with := range caches() {
			t.Run(kind.Name()+", "+name, func(t *testing.T) {
				pool := openPool(t)
				k := kind.(appended.Definition)
				k.Recent = with
				f := readmodeltest.FeederOf(t, pool, k, partition)
				for i, batch := range deliveries {
					f.Feed(batch...)
					if i == 6 {
						f.MustClaim(0) // all records are read again
					}
				}
				got := fmt.Sprint(readmodeltest.Statement(t, pool), turnoverOf(t, pool), f.Outcomes())
				if want == "" {
					want = got
				}
				same(t, "rows and outcomes", got, want)
				if want, known := answers[name]; known {
					same(t, "answers", fmt.Sprint(f.Reported.Hits > 0, f.Reported.Misses > 0), want)
				}
			})
		}
	}
}

// TestTheRecentEventCacheKeepsEventsApart shows that the id, the version and the account of an event
// are not mixed up, although one follows the other in the hash.
func TestTheRecentEventCacheKeepsEventsApart(t *testing.T) {
	cache := appended.NewRecent(func() int { return 1 << 20 }, time.Now)
	for mark, check := range map[appended.Seen]appended.Seen{
		{Key: appended.Key{Text: "xacc", Number: 'A'}, EventID: "e"}:  {Key: appended.Key{Text: "acc", Number: 'x' << 56}, EventID: "eA"},
		{Key: appended.Key{Text: "account", Number: 1}, EventID: "1"}: {Key: appended.Key{Text: "count", Number: 1}, EventID: "1ac"},
	} {
		cache.Mark([]appended.Seen{mark})
		if !cache.Check(mark) || cache.Check(check) {
			t.Errorf("after %+v was marked: %t, and %t for %+v", mark, cache.Check(mark), cache.Check(check), check)
		}
	}
}

// TestTheRecentEventCacheIsFilledByCommitsOnly shows that the event of a transaction that was not
// committed is not in the cache.
func TestTheRecentEventCacheIsFilledByCommitsOnly(t *testing.T) {
	pool := openPool(t)
	k := turnover.Definition().(appended.Definition)
	k.Recent = caches()["sound"]
	f := readmodeltest.FeederOf(t, pool, k, partition)
	value := eventAs("e", "FundsCredited", "a", 1, noon, eur("1"))
	f.MustFold(value)
	if _, err := pool.Exec(t.Context(), "UPDATE projector_position SET fence = fence + 1"); err != nil {
		t.Fatal(err)
	}
	if err := f.VerifyAndFlush(); err == nil {
		t.Fatal("a fenced owner has written")
	}
	f.MustClaim(0)
	f.Feed(value)
	same(t, "turnover", turnoverOf(t, pool), "2026-01-01 EUR 1.00 0.00 1")
	if _, err := pool.Exec(t.Context(), "TRUNCATE daily_turnover, inbox; UPDATE projector_position SET next_offset = 0"); err != nil {
		t.Fatal(err)
	}
	f.MustClaim(0) // an older database was restored, so the cache must be empty
	f.Feed(value)
	same(t, "turnover of a restored database", turnoverOf(t, pool), "2026-01-01 EUR 1.00 0.00 1")
}
