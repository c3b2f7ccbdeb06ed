package accounts_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
)

// BenchmarkFold folds decoded events in chunks and flushes after about 100,000 events. An iteration
// counts as one event. This is the work of a partition's worker between decoding and writing. All
// accounts are known from the start.
func BenchmarkFold(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 1, 999)
	b.Run("uniform", func(b *testing.B) { benchmarkFold(b, 125_000, rng.IntN) })
	b.Run("hot", func(b *testing.B) { benchmarkFold(b, 1000, func(int) int { return int(zipf.Uint64()) }) })
}

// BenchmarkFoldWithBreaker folds the same chunks with and without a breaker, alternately. It
// compares the medians, because other processes may disturb single measurements.
func BenchmarkFoldWithBreaker(b *testing.B) {
	const many, turn = 125_000, 512 * 200
	var folds [2]*accounts.Fold
	ids, events := make([]string, many), make([]string, many)
	for i := range ids {
		ids[i], events[i] = fmt.Sprintf("acc-%08d", i), fmt.Sprintf("7f9c24e8-3b12-4d0f-9c7e-2f1f%08d", i)
	}
	for i := range folds {
		folds[i] = accounts.NewFold(accounts.Options{FirstVersion: 1, CacheBytes: 1 << 30}, newStore())
		if err := folds[i].Read(b.Context(), ids); err != nil {
			b.Fatal(err)
		}
	}
	breaker := projection.NewBreaker(projection.BreakerRule{Window: 1000, Share: 0.5}, 0, &projection.Position{})
	rng, versions := rand.New(rand.NewPCG(1, 2)), make([]int64, many)
	d := event.Decoded{Identity: event.Identified, Event: event.Event{Type: event.TypeNamed("FundsCredited"), Amount: 1, Currency: euro}}
	chunk := make([]projection.DecodedRecord, 512)
	var took [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		counting := n % 2 // swapped in each round, because one fold may be better placed in memory by chance
		folds[counting].CountedBy(breaker)
		folds[1-counting].CountedBy(nil)
		for done := 0; done < turn; done += len(chunk) {
			for k := range chunk {
				n := rng.IntN(many)
				versions[n]++
				d.Event.ID, d.Event.AccountID, d.Event.Version = events[n], ids[n], versions[n]
				chunk[k].Decoded = d
			}
			for i := range folds {
				with := (i + done/len(chunk)) % 2 // each of the two folds is first equally often
				began := time.Now()
				if _, err := folds[(counting+1+with)%2].Apply(b.Context(), chunk, math.MaxInt); err != nil {
					b.Fatal(err)
				}
				took[with] = append(took[with], time.Since(began))
			}
		}
		for _, f := range folds {
			f.Gather()
			f.Flushed()
		}
		breaker.State(projection.BreakerState{})
	}
	var medians [2]float64
	for i := range took {
		slices.Sort(took[i])
		medians[i] = float64(took[i][len(took[i])/2].Nanoseconds())
	}
	b.ReportMetric(medians[0]/medians[1], "of-the-speed-without")
	b.ReportMetric(medians[1]/float64(len(chunk)), "ns/event")
}

func benchmarkFold(b *testing.B, many int, pick func(int) int) {
	b.Helper()
	const flushEvery = 100_000
	f := accounts.NewFold(accounts.Options{FirstVersion: 1, CacheBytes: 1 << 30}, newStore())
	ids, events, versions := make([]string, many), make([]string, many), make([]int64, many)
	for i := range ids {
		ids[i] = fmt.Sprintf("acc-%08d", i)
		events[i] = fmt.Sprintf("7f9c24e8-3b12-4d0f-9c7e-2f1f%08d", i)
	}
	if err := f.Read(b.Context(), ids); err != nil {
		b.Fatal(err)
	}
	order := make([]int, 1<<20)
	for i := range order {
		order[i] = pick(many)
	}
	d := event.Decoded{Identity: event.Identified, Event: event.Event{Type: event.TypeNamed("FundsCredited"), Amount: 1, Currency: euro}}
	chunk := make([]projection.DecodedRecord, 512)
	b.ReportAllocs()
	for i, pending := 0, 0; b.Loop(); i++ {
		if i%len(chunk) != 0 { // an iteration counts as one event; the chunk is folded in one of them
			continue
		}
		for k := range chunk {
			n := order[(i+k)%len(order)]
			versions[n]++
			d.Event.ID, d.Event.AccountID, d.Event.Version = events[n], ids[n], versions[n]
			chunk[k].Decoded = d
		}
		if _, err := f.Apply(b.Context(), chunk, math.MaxInt); err != nil {
			b.Fatal(err)
		}
		if pending += len(chunk); pending >= flushEvery {
			pending = 0
			f.Gather()
			f.Flushed()
		}
	}
	if c := f.Gather(); c.Outcomes[projection.Applied] != c.Records {
		b.Fatalf("outcomes %v of %d records", c.Outcomes, c.Records)
	}
}
