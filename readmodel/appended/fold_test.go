package appended_test

import (
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/statement"
)

// The strings of an event point into its record. The whole record therefore stays in memory until
// the flush. So the pending size must include the record's key and headers.
func TestPendingCountsKeyAndHeaders(t *testing.T) {
	pool := openPool(t)
	const large = 1 << 20
	for name, value := range map[string]string{
		"good": eventAs("e-1", "FundsCredited", "a", 1, noon, eur("1")), "unreadable": "{", "malformed": eventAs("e-2", "FundsCredited", "a", 2, noon, "{}"),
	} {
		f := newFeeder(t, pool, statement.Definition(), partition)
		records := []projection.DecodedRecord{{Record: projection.Record{Message: event.Message{
			Key: make([]byte, large), Value: []byte(value), Headers: []event.Header{{Key: "h", Value: make([]byte, large)}},
		}}}}
		f.Format.Decode(records[0].Record.Message, &records[0].Decoded)
		if _, err := f.Fold(t.Context(), records, 10); err != nil {
			t.Fatal(err)
		}
		if got := f.Pending().Bytes; got < 2*large {
			t.Errorf("%s: %d bytes are pending, of a record of %d", name, got, 2*large)
		}
	}
}
