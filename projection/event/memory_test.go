package event_test

import (
	"runtime"
	"testing"
	"weak"

	"projector/projection/event"
)

// A message is part of the response in which Kafka sent it. A format must not keep this response in
// memory for its next message, and neither must the texts of an event after Keep.
func TestAFormatKeepsNoMessageInMemory(t *testing.T) {
	f := event.NewJSON(event.Options{FirstVersion: 1, CustomTypes: []string{"Measured"}})
	const plain = `{"eventId":"e-1","eventType":"Measured","accountId":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z","data":{"of":1}}`
	for name, value := range map[string]string{
		"plain":   plain,
		"escaped": `{"eventId":"e-1","eventType":"Measured","accountId":"\u0061","version":1,"occurredAt":"2026-01-01T00:00:00Z","data":{"of":"\u0061"}}`,
		"broken":  plain + "}",
	} {
		t.Run(name, func(t *testing.T) {
			response, d := decodeIn(f, value)
			runtime.GC() // only once, because a second one would empty the pool of the format
			if response.Value() != nil {
				t.Errorf("the response is still in memory: %+v", d)
			}
			runtime.KeepAlive(f)
		})
	}
}

// decodeIn decodes a message that is part of a response.
func decodeIn(f event.Format, value string) (weak.Pointer[[1 << 16]byte], *event.Decoded) {
	response := new([1 << 16]byte)
	n := copy(response[:], value)
	d := new(event.Decoded)
	f.Decode(event.Message{Value: response[:n:n]}, d)
	d.Keep()
	return weak.Make(response), d
}
