package projection_test

import (
	"runtime"
	"testing"
	"unsafe"
	"weak"

	"projector/projection"
	"projector/projection/event"
)

// What Keep returns must not keep the response in which Kafka sent the record.
func TestKeepKeepsNoResponseInMemory(t *testing.T) {
	response, record, decoded := keptOf("text")
	runtime.GC()
	if response.Value() != nil {
		t.Error("the response is still in memory")
	}
	if ev := decoded.Event; string(record.Key)+string(record.Value)+string(record.Headers[0].Value)+ev.ID+ev.Data != "texttexttexttexttext" {
		t.Errorf("%+v, %+v", record, ev)
	}
}

// keptOf keeps a record whose texts are all part of a response.
func keptOf(text string) (weak.Pointer[[1 << 16]byte], projection.Record, event.Decoded) {
	response := new([1 << 16]byte)
	n := copy(response[:], text)
	b, s := response[:n:n], unsafe.String(&response[0], n) //nolint:gosec // G103: as a decoder does
	record, decoded := projection.Keep(
		projection.Record{Message: event.Message{Key: b, Value: b, Headers: []event.Header{{Key: "h", Value: b}}}},
		&event.Decoded{Event: event.Event{ID: s, AccountID: s, CorrelationID: s, TypeName: s, Data: s}},
	)
	return weak.Make(response), record, decoded
}
