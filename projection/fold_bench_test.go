package projection_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"projector/projection"
	"projector/projection/event"
)

// BenchmarkFold judges decoded events, one an iteration, and flushes every 100,000:
// what a worker does between decoding and writing. Accounts are known from the start.
func BenchmarkFold(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 1, 999)
	b.Run("uniform", func(b *testing.B) { benchmarkFold(b, 125_000, rng.IntN) })
	b.Run("hot", func(b *testing.B) { benchmarkFold(b, 1000, func(int) int { return int(zipf.Uint64()) }) })
}

func benchmarkFold(b *testing.B, accounts int, pick func(int) int) {
	b.Helper()
	const flushEvery = 100_000
	f := projection.NewFold(projection.FoldOptions{FirstVersion: 1, CacheBytes: 1 << 30})
	ids, events, versions := make([]string, accounts), make([]string, accounts), make([]int64, accounts)
	for i := range ids {
		ids[i] = fmt.Sprintf("acc-%08d", i)
		events[i] = fmt.Sprintf("7f9c24e8-3b12-4d0f-9c7e-2f1f%08d", i)
		f.LearnNew(ids[i])
	}
	order := make([]int, 1<<20)
	for i := range order {
		order[i] = pick(accounts)
	}
	d := event.Decoded{Identity: event.Identified, Event: event.Event{Type: event.FundsCredited, Amount: 1, Currency: euro}}
	chunk := make([]projection.Judgeable, 512)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := i % len(chunk)
		if at == 0 {
			for k := range chunk {
				n := order[(i+k)%len(order)]
				versions[n]++
				d.Event.ID, d.Event.AccountID, d.Event.Version = events[n], ids[n], versions[n]
				chunk[k].Decoded = d
			}
			f.Find(chunk, nil)
		}
		f.JudgeFound(at, &chunk[at], false)
		if i%flushEvery == flushEvery-1 {
			f.Changes()
			f.Flushed()
			f.Find(chunk, nil)
		}
	}
	if c := f.Changes(); c.Outcomes[projection.Applied] != c.Records {
		b.Fatalf("outcomes %v of %d records", c.Outcomes, c.Records)
	}
}
