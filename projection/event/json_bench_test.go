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

// BenchmarkDecodeMapped decodes an event of the same size by a mapping. It has to reach 0.8 of
// BenchmarkDecode; joining two ids costs an allocation each.
func BenchmarkDecodeMapped(b *testing.B) {
	value := []byte(`{"meta":{"id":"7f9c24e8-3b12-4d0f-9c7e-2f1f6a1b2c3d","type":"movement","seq":17,"ts":1767225600123,` +
		`"trace":"c0ffee00-1111-2222-3333-444455556666"},"payload":{"bank":"01700","acct":"00000042","cents":-1025,"ccy":"EUR","note":"n"}}`)
	fields := map[event.Field]event.FieldPath{
		event.FieldEventID: path("meta", "id"), event.FieldEventType: path("meta", "type"), event.FieldVersion: path("meta", "seq"),
		event.FieldOccurredAt: path("meta", "ts"), event.FieldCorrelationID: path("meta", "trace"), event.FieldData: path("payload"),
		event.FieldAmount: path("cents"), event.FieldCurrency: path("ccy"), event.FieldAccountID: path("payload", "acct"),
	}
	signed := map[string]event.SignedType{"movement": {Positive: event.TypeNamed("FundsCredited"), Negative: event.TypeNamed("FundsDebited")}}
	run := func(b *testing.B, mapping event.Mapping) {
		b.Helper()
		format, err := event.New(event.FormatJSON, event.Options{Mapping: mapping})
		if err != nil {
			b.Fatal(err)
		}
		message := event.Message{Value: value}
		b.ReportAllocs()
		b.SetBytes(int64(len(value)))
		var d event.Decoded
		for b.Loop() {
			format.Decode(message, &d)
		}
		if d.Fault != nil || d.Event.Amount != 1025 {
			b.Fatal(d)
		}
	}
	mapping := event.Mapping{Fields: fields, Signed: signed, Time: event.Milliseconds, Amount: event.AmountShape{Form: event.AmountMinor}}
	b.Run("signed", func(b *testing.B) { run(b, mapping) })
	b.Run("joined", func(b *testing.B) {
		fields[event.FieldAccountID] = event.FieldPath{Join: []event.FieldPath{path("payload", "bank"), path("payload", "acct")}, Separator: '-'}
		run(b, mapping)
	})
}
