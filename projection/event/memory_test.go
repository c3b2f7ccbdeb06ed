package event_test

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
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

// A text outside the entries of a message is stored once. A thousand copies of a text of 1 MB would
// be more memory than a projector has.
func TestEntriesShareALongText(t *testing.T) {
	const entries = 3
	long := strings.Repeat("x", 5000)
	quoted := `"\n` + long + `"` // the escape makes a copy necessary
	correlation := func(p event.FieldPath) map[event.Field]event.FieldPath {
		return map[event.Field]event.FieldPath{event.FieldCorrelationID: p}
	}
	for name, tt := range map[string]struct {
		format string
		fields map[event.Field]event.FieldPath
		m      event.Message
	}{
		"around the entries": {event.FormatJSON, correlation(event.FieldPath{Outer: []string{"ref"}}), event.Message{}},
		"in the JSON of a header": {
			event.FormatJSON, correlation(event.FieldPath{Header: "trace", Path: []string{"ref"}}),
			event.Message{Headers: []event.Header{{Key: "trace", Value: []byte(`{"ref":` + quoted + `}`)}}},
		},
		"in the JSON of the key": {
			event.FormatJSON, correlation(event.FieldPath{Key: true, Path: []string{"ref"}}), event.Message{Key: []byte(`{"ref":` + quoted + `}`)},
		},
		"in the usual header": {event.FormatDebezium, nil, event.Message{Headers: []event.Header{{Key: "correlationId", Value: []byte(quoted)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := event.New(tt.format, event.Options{Mapping: event.Mapping{Fields: tt.fields, Envelope: event.Envelope{Entries: []string{"lines"}}}})
			if err != nil {
				t.Fatal(err)
			}
			tt.m.Value = []byte(`{"ref":` + quoted + `,"lines":[{"a":"\u0061"},{},{}]}`)
			var all [entries]event.Decoded
			event.DecodeEach(f, tt.m, func(entry int32) *event.Decoded { return &all[entry-1] })
			for i := range all {
				id := all[i].Event.CorrelationID
				if id != "\n"+long {
					t.Fatalf("entry %d has a correlation id of %d bytes", i, len(id))
				}
				if unsafe.StringData(id) != unsafe.StringData(all[0].Event.CorrelationID) { //nolint:gosec // G103: only compared
					t.Errorf("entry %d has a copy of the correlation id", i)
				}
			}
		})
	}
}

// A joined text has a limit, because each entry has a copy of its own.
func TestAJoinedTextHasALimit(t *testing.T) {
	f, err := event.New(event.FormatJSON, event.Options{Mapping: event.Mapping{
		Envelope: event.Envelope{Entries: []string{"lines"}},
		Fields: map[event.Field]event.FieldPath{
			event.FieldEventType: {Join: []event.FieldPath{{Outer: []string{"kind"}}, {Path: []string{"side"}}}, Separator: '/'},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for length, want := range map[int]string{
		4093: "is neither", // of the type, which is unknown
		4094: "kind and lines[].side: is longer than 4095 bytes, put together",
	} {
		value := `{"kind":"` + strings.Repeat("x", length) + `","lines":[{"eventId":"e","accountId":"a","version":1,"side":"D","occurredAt":"2026-01-01T00:00:00Z"}]}`
		var d event.Decoded
		f.Decode(event.Message{Value: []byte(value), Entry: 1}, &d)
		if d.Fault == nil || !strings.Contains(d.Fault.Error(), want) {
			t.Errorf("%d bytes: %v, want %q", length, d.Fault, want)
		}
	}
}
