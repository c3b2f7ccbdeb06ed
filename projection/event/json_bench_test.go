package event_test

import (
	"testing"

	"projector/projection/event"
)

// BenchmarkDecode decodes the example event of the contract. The target is about 1 µs for one
// event.
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

// producerEvent is an event of about the same size in the format of another producer.
const producerEvent = `{"meta":{"id":"7f9c24e8-3b12-4d0f-9c7e-2f1f6a1b2c3d","type":"movement","seq":17,"ts":1767225600123,` +
	`"trace":"c0ffee00-1111-2222-3333-444455556666"},"payload":{"bank":"01700","acct":"00000042","cents":-1025,"ccy":"EUR","note":"n"}}`

func producerMapping() event.Mapping {
	return event.Mapping{
		Fields: map[event.Field]event.FieldPath{
			event.FieldEventID: path("meta", "id"), event.FieldEventType: path("meta", "type"), event.FieldVersion: path("meta", "seq"),
			event.FieldOccurredAt: path("meta", "ts"), event.FieldCorrelationID: path("meta", "trace"), event.FieldData: path("payload"),
			event.FieldAmount: path("cents"), event.FieldCurrency: path("ccy"), event.FieldAccountID: path("payload", "acct"),
		},
		Signed: map[string]event.SignedType{"movement": {Positive: event.TypeNamed("FundsCredited"), Negative: event.TypeNamed("FundsDebited")}},
		Time:   event.Milliseconds,
		Amount: event.AmountShape{Form: event.AmountMinor},
	}
}

func joinedMapping() event.Mapping {
	m := producerMapping()
	m.Fields[event.FieldAccountID] = event.FieldPath{Join: []event.FieldPath{path("payload", "bank"), path("payload", "acct")}, Separator: '-'}
	return m
}

func mappedFormat(t testing.TB, m event.Mapping) event.Format {
	t.Helper()
	f, err := event.New(event.FormatJSON, event.Options{Mapping: m})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// BenchmarkDecodeMapped decodes an event with a mapping. Its speed must be at least 80 % of the
// speed of BenchmarkDecode.
func BenchmarkDecodeMapped(b *testing.B) {
	for name, mapping := range map[string]event.Mapping{"signed": producerMapping(), "joined": joinedMapping()} {
		b.Run(name, func(b *testing.B) {
			format := mappedFormat(b, mapping)
			message := event.Message{Value: []byte(producerEvent)}
			b.ReportAllocs()
			b.SetBytes(int64(len(message.Value)))
			var d event.Decoded
			for b.Loop() {
				format.Decode(message, &d)
			}
			if d.Fault != nil || d.Event.Amount != 1025 {
				b.Fatal(d)
			}
		})
	}
}
