package event_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"projector/projection/event"
)

// FuzzDebezium compares the result of Decode with that of an independent decoder that uses
// encoding/json.
func FuzzDebezium(f *testing.F) {
	for _, payload := range []string{`{"amount":"10.25","currency":"EUR"}`, `null`, `{}`, ``, `17`} {
		for _, wrap := range []func(string) string{strings.Clone, jsonText, connect, func(s string) string { return connect(jsonText(s)) }} {
			f.Add([]byte(wrap("acc-1")), []byte(wrap("e-1")), []byte(wrap("FundsCredited")), []byte(wrap("2")),
				[]byte(wrap("2026-01-01T00:00:00.123Z")), []byte(wrap(payload)))
		}
	}
	format := debezium(f, func(o *event.Options) { o.Debezium.TimeUnit = event.Microseconds })
	f.Fuzz(func(t *testing.T, key, id, kind, version, at, value []byte) {
		m := event.Message{Key: key, Value: value, Headers: []event.Header{
			{Key: "id", Value: id}, {Key: "eventType", Value: kind}, {Key: "version", Value: version}, {Key: "occurredAt", Value: at},
		}}
		if m.Value == nil {
			m.Value = []byte{} // tombstones have their own test
		}
		parts := [][]byte{key, id, kind, version, at, value}
		before := bytes.Join(parts, nil)
		d := decodeMessage(format, m)
		if !bytes.Equal(bytes.Join(parts, nil), before) {
			t.Fatal("the message was changed")
		}
		whole := checkOutcome(t, &d)
		if d.Identity == event.Identified {
			if want := plain(t, key); d.Event.AccountID != want || want == "" || len(want) > 200 || strings.Contains(want, "\x00") {
				t.Fatalf("account %q, by encoding/json %q", d.Event.AccountID, want)
			}
			if want := plain(t, id); d.Event.ID != want {
				t.Fatalf("event id %q, by encoding/json %q", d.Event.ID, want)
			}
			var n int64
			if err := json.Unmarshal([]byte(plain(t, version)), &n); err != nil || n != d.Event.Version {
				t.Fatalf("version %d from %s: %v", d.Event.Version, version, err)
			}
		}
		if !whole {
			return
		}
		if want := plain(t, kind); d.Event.TypeName != want {
			t.Fatalf("type %q, by encoding/json %q", d.Event.TypeName, want)
		}
		if d.Event.Type != event.Ignorable {
			checkMoney(t, payloadOf(t, value), d.Event)
		}
	})
}

// checkOutcome checks that a message has exactly one outcome, and reports whether it is an event
// without a fault.
func checkOutcome(t *testing.T, d *event.Decoded) (whole bool) {
	t.Helper()
	whole = d.Identity == event.Identified && d.Fault == nil
	if d.Tombstone || count(d.Skip, d.Fault != nil, whole) != 1 {
		t.Fatalf("not exactly one outcome: %+v", d)
	}
	if d.Fault != nil {
		checkFault(t, d)
	}
	return whole
}

// inEnvelope returns the payload of an envelope with a schema, or the value itself if it is not an
// envelope.
func inEnvelope(value []byte) []byte {
	var envelope struct{ Schema, Payload json.RawMessage }
	if bytes.HasPrefix(value, []byte(`{"schema":`)) && json.Unmarshal(value, &envelope) == nil && envelope.Payload != nil {
		return envelope.Payload
	}
	return value
}

// The function plain returns the text of an accepted header or key.
func plain(t *testing.T, value []byte) string {
	t.Helper()
	value = inEnvelope(unframed(value))
	if len(value) > 0 && value[0] == '"' {
		return text(t, value)
	}
	if !utf8.Valid(value) {
		t.Fatal("invalid UTF-8 is accepted")
	}
	return string(value)
}

// payloadOf returns the JSON document in an accepted value.
func payloadOf(t *testing.T, value []byte) json.RawMessage {
	t.Helper()
	value = inEnvelope(unframed(value))
	if trimmed := bytes.TrimSpace(value); len(trimmed) > 0 && trimmed[0] == '"' {
		value = []byte(text(t, trimmed))
	}
	if string(bytes.TrimSpace(value)) != "null" {
		checkDocument(t, value)
	}
	return value
}
