package event_test

import (
	"testing"

	"projector/projection/event"
)

// BenchmarkDecode decodes the example of the contract. Its target is about 1 µs
// and one allocation for each of the three ids.
func BenchmarkDecode(b *testing.B) {
	value := []byte(`{"eventId":"7f9c24e8-3b12-4d0f-9c7e-2f1f6a1b2c3d","eventType":"FundsCredited",` +
		`"accountId":"acc-00000042","version":17,"occurredAt":"2026-01-01T00:00:00.123Z",` +
		`"correlationId":"c0ffee00-1111-2222-3333-444455556666","data":{"amount":"10.25","currency":"EUR"}}`)
	format := event.NewJSON(event.Options{FirstVersion: 1})
	message := event.Message{Value: value}
	b.ReportAllocs()
	b.SetBytes(int64(len(value)))
	var d event.Decoded
	for b.Loop() {
		format.Decode(message, &d)
	}
	if d.Fault != nil {
		b.Fatal(d.Fault)
	}
}
