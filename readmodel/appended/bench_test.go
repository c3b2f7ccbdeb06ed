package appended_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/appended"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// BenchmarkEvents writes batches of new and of already processed events, with and without the
// recent-event cache.
func BenchmarkEvents(b *testing.B) {
	for _, kind := range []readmodel.Definition{statement.Definition(), turnover.Definition()} {
		for _, again := range []bool{false, true} {
			for _, cached := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/again=%t/cached=%t", kind.Name(), again, cached), func(b *testing.B) {
					benchmarkEvents(b, kind.(appended.Definition), again, cached)
				})
			}
		}
	}
}

func benchmarkEvents(b *testing.B, kind appended.Definition, again, cached bool) {
	b.Helper()
	const batch = readmodel.DefaultFlush
	kind.Recent = nil
	if cached {
		kind.Recent = func(readmodel.RunConfig) *appended.Recent {
			return appended.NewRecent(func() int { return 64 << 20 }, time.Now)
		}
	}
	p := kind.Open(readmodel.RunConfig{Pool: openPool(b), Observer: &counted{}})(partition)
	var next int64
	claim := func() {
		pos, err := p.Claim(b.Context(), projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset})
		if err != nil {
			b.Fatal(err)
		}
		next = pos.Next
	}
	claim()
	format := readmodeltest.JSONFormat(b)
	write := func(first int) error {
		records := make([]projection.DecodedRecord, batch)
		for i := range records {
			n := first + i
			id := fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(n*2654435761), n)
			records[i].Record = projection.Record{Offset: next, Message: event.Message{Value: []byte(
				eventAs(id, "FundsCredited", fmt.Sprintf("acc-%08d", n*7919%1_000_000), n+1, noon, eur("10.25")))}}
			format.Decode(records[i].Record.Message, &records[i].Decoded)
			next++
		}
		b.StartTimer()
		defer b.StopTimer()
		for rest := records; len(rest) > 0; {
			n, err := p.Fold(b.Context(), rest, batch)
			if err != nil {
				b.Fatal(err)
			}
			rest = rest[n:]
		}
		_, err := p.Flush(b.Context(), readmodeltest.At(next))
		return err
	}
	flush := func(first int) {
		err := write(first)
		if errors.Is(err, projection.ErrStale) { // COPY has met a stored event; as in a consumer, the batch is decided again
			claim()
			err = write(first)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if again {
		flush(0)
		flush(0)
		b.ResetTimer()
	}
	made := 0
	for range b.N {
		flush(made)
		if !again {
			made += batch
		}
	}
	b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(0, "ns/op")
}
