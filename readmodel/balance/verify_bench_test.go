package balance_test

import (
	"fmt"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
)

// BenchmarkVerify measures the steps before the write of a flush of 100,000 accounts. These steps
// list the only dead letter and verify the decision about it. Most of the time is spent on
// gathering the accounts.
func BenchmarkVerify(b *testing.B) {
	const accounts = 100_000
	pool := openPool(b)
	format := readmodeltest.JSONFormat(b)
	p := balance.New(balance.Config{RunConfig: readmodel.RunConfig{
		Pool: pool, Formats: event.Always(format), FirstVersion: 1, ParkLimit: 100, CacheBytes: func() int { return 1 << 30 },
	}}, partition)
	records := make([]projection.DecodedRecord, accounts)
	for i := range records {
		version := 1
		if i == 0 {
			version = 2 // leaves a gap
		}
		n := i * 7919 % accounts
		records[i].Record = projection.Record{Offset: int64(i), Message: event.Message{Value: []byte(
			readmodeltest.Event(fmt.Sprintf("event-%d", n), "FundsCredited", fmt.Sprintf("acc-%08d", n), version, readmodeltest.Noon, readmodeltest.EUR("10.25")))}}
		format.Decode(records[i].Record.Message, &records[i].Decoded)
	}
	for range b.N {
		b.StopTimer()
		if _, err := p.Claim(b.Context(), projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset}); err != nil {
			b.Fatal(err)
		}
		if n, err := p.Fold(b.Context(), records, accounts); err != nil || n != accounts {
			b.Fatalf("%d records folded, error %v", n, err)
		}
		b.StartTimer()
		if n := len(p.DeadLetters()); n != 1 {
			b.Fatalf("%d dead letters", n)
		}
		if err := p.Verify(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
