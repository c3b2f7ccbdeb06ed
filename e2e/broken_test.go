package e2e_test

import (
	"testing"

	"projector/internal/testbank"
	"projector/projection/event"
)

// TestDecoderAndOracleAgreeOnBrokenRecords changes a few random bytes of each record. The decoder
// and the oracle share no code, so an error that only one of them has causes a difference.
func TestDecoderAndOracleAgreeOnBrokenRecords(t *testing.T) {
	t.Parallel()
	const currencies = "EUR,USD,GBP,CHF,JPY,ISK,KWD,BHD,CLF,BTN" // the currencies of the oracle
	accepted, err := event.ParseCurrencies(currencies)
	if err != nil {
		t.Fatal(err)
	}
	format, err := event.New(event.FormatJSON, event.Options{
		FirstVersion: 1, Currencies: accepted, Ignore: []string{testbank.IgnoredType},
	})
	if err != nil {
		t.Fatal(err)
	}
	o, n := testbank.New(testbank.IgnoredType), seed(t)
	rnd := random(n)
	for _, r := range testbank.Generate(testbank.Options{Seed: n, Records: scaled(100_000), Partitions: 1, Accounts: 5000, Rivals: true}) {
		for range 2 {
			agree(t, format, o, &r)
			testbank.Break(rnd, &r)
		}
		if t.Failed() {
			return
		}
	}
}

func agree(t *testing.T, format event.Format, o *testbank.Oracle, r *testbank.Record) {
	t.Helper()
	message := event.Message{Value: r.Value}
	for _, h := range r.Headers {
		message.Headers = append(message.Headers, event.Header{Key: h.Key, Value: h.Value})
	}
	var d event.Decoded
	format.Decode(message, &d)
	class := ""
	if d.Fault != nil {
		class = string(d.Fault.Class)
	}
	identified, ignored, want := o.Classify(r)
	if class != want || (d.Identity == event.Identified) != identified || (d.Tombstone || d.Skip) != ignored {
		t.Errorf("decoder: class %q, identified %v, ignored %v\noracle:  class %q, identified %v, ignored %v\n%q",
			class, d.Identity == event.Identified, d.Tombstone || d.Skip, want, identified, ignored, r.Value)
	}
}
