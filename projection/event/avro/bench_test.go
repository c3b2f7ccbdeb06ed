package avro_test

import (
	"testing"

	"projector/projection/event"
)

// benchSchema is the schema with which a typical Avro producer would write the event of the
// contract.
var benchSchema = `{"type":"record","name":"Event","fields":[{"name":"eventId","type":"string"},{"name":"eventType","type":"string"},
	{"name":"accountId","type":"string"},{"name":"version","type":"long"},{"name":"occurredAt","type":` + micros + `},
	{"name":"correlationId","type":["null","string"]},{"name":"data","type":["null",` +
	record(`{"type":"bytes","logicalType":"decimal","precision":18,"scale":2}`) + `]}]}`

// BenchmarkDecode decodes the same event as the BenchmarkDecode of the JSON format. It should take
// at most twice the time of that benchmark.
func BenchmarkDecode(b *testing.B) {
	value := encode(b, benchSchema, map[string]any{
		"eventId": "7f9c24e8-3b12-4d0f-9c7e-2f1f6a1b2c3d", "accountId": "acc-00000042",
		"correlationId": "c0ffee00-1111-2222-3333-444455556666", "data": map[string]any{"amount": []byte{4, 1}, "currency": "EUR"},
	})
	f := format(b, options, benchSchema)
	message := event.Message{Value: value}
	b.ReportAllocs()
	b.SetBytes(int64(len(value)))
	var d event.Decoded
	for b.Loop() {
		f.Decode(message, &d)
	}
	if d.Fault != nil {
		b.Fatal(d.Fault)
	}
}
