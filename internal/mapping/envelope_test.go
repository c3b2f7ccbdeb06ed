package mapping_test

import (
	"strings"
	"testing"

	"projector/internal/mapping"
	"projector/projection/event"
)

const innerEvent = `{"eventId":"e","eventType":"FundsCredited","accountId":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":"1","currency":"EUR","note":"\"x\" ü"}}`

// escapedJSON encodes a JSON text as a JSON string.
func escapedJSON(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func TestEnvelopes(t *testing.T) {
	binary := []event.Header{
		{Key: "ce_specversion", Value: []byte("1.0")},
		{Key: "ce_id", Value: []byte("e")},
		{Key: "ce_type", Value: []byte("FundsCredited")},
		{Key: "ce_subject", Value: []byte("a")},
		{Key: "ce_sequence", Value: []byte("1")},
		{Key: "ce_time", Value: []byte("2026-01-01T00:00:00Z")},
	}
	routed := []event.Header{
		{Key: "id", Value: []byte("e")},
		{Key: "eventType", Value: []byte("FundsCredited")},
		{Key: "version", Value: []byte("1")},
		{Key: "occurredAt", Value: []byte("2026-01-01T00:00:00Z")},
	}
	const (
		credit    = "e FundsCredited 1.00 EUR"
		below     = "envelope: {path: payload.event}"
		escaped   = "envelope: {path: payload, escaped: true}"
		outerID   = escaped + "\nfields: {eventId: {outer: meta.id}}"
		placed    = "fields: {eventType: eventType, version: version, occurredAt: occurredAt, data: payload}"
		columns   = `"eventType":"FundsCredited","version":1,"occurredAt":"2026-01-01T00:00:00Z"`
		whole     = "envelope: {escaped: true}"
		attribute = "envelope: {path: data, escaped: true}\nfields: {eventId: {outer: subject}, accountId: {key: true}}"
		structure = `{"specversion":"1.0","id":"e","type":"FundsCredited","subject":"a","sequence":"1","time":"2026-01-01T00:00:00Z","data":`
	)
	for _, tt := range []struct {
		name, format, mapping, value, want string
		headers                            []event.Header
	}{
		{"below a path", "json", below, `{"payload":{"event":` + innerEvent + `}}`, credit, nil},
		{"no envelope", "json", below, innerEvent, "malformed_payload payload.event.eventId", nil},
		{"a list in its place", "json", below, `{"payload":{"event":[` + innerEvent + `]}}`, "malformed_payload payload.event.eventId", nil},
		{"around it", "json", below + "\nfields: {eventId: {outer: meta.id}}", `{"meta":{"id":"m"},"payload":{"event":` + innerEvent + `}}`, "m FundsCredited 1.00 EUR", nil},
		{"escaped", "json", escaped, `{"payload":` + escapedJSON(innerEvent) + `}`, credit, nil},
		{"escaped, id around it", "json", outerID, `{"meta":{"id":"m"},"payload":` + escapedJSON(innerEvent) + `}`, "m FundsCredited 1.00 EUR", nil},
		{"escaped twice", "json", escaped, `{"payload":` + escapedJSON(escapedJSON(innerEvent)) + `}`, "malformed_payload payload", nil},
		{"not escaped", "json", escaped, `{"payload":` + innerEvent + `}`, "malformed_payload payload", nil},
		{"escaped and broken", "json", outerID, `{"meta":{"id":"m"},"payload":"{\"version\":1,"}`, "malformed_payload payload", nil},
		{"escaped, a duplicate key", "json", escaped, `{"payload":"{\"a\":1,\"a\":2}"}`, "malformed_payload payload", nil},
		{"null", "json", escaped, `{"payload":null}`, "malformed_payload payload", nil},
		{"absent", "json", escaped, `{}`, "malformed_payload payload", nil},
		{"broken around it", "json", outerID, `{"meta":`, "malformed_payload ", nil},
		{"the whole value", "json", whole, " " + escapedJSON(innerEvent), credit, nil},
		{"the whole value, a quote", "json", whole, `"`, "malformed_payload ", nil},
		{"the whole value, never closed", "json", whole, `"{}`, "malformed_payload ", nil},
		{"the whole value, something after it", "json", whole, escapedJSON(innerEvent) + "x", "malformed_payload ", nil},
		{"the whole value, quotes inside", "json", whole, `"` + innerEvent + `"`, "malformed_payload ", nil},
		{"the whole value is an object", "json", whole, innerEvent, "malformed_payload ", nil},
		{
			"outbox", "debezium-outbox", "envelope: {path: after.json, escaped: true}", `{"after":{"json":"{\"amount\":\"1\",\"currency\":\"EUR\"}"}}`, credit, routed,
		},
		{"outbox, columns in the value", "debezium-outbox", placed, `{"payload":{"amount":"1","currency":"EUR"},` + columns + `}`, credit, routed[:1]},
		{"outbox, columns in the value, schema", "debezium-outbox", placed, `{"schema":{},"payload":{"payload":{"amount":"1","currency":"EUR"},` + columns + `}}`, credit, routed[:1]},
		{
			"outbox, columns in the value, escaped", "debezium-outbox",
			escaped + "\nfields: {eventType: {outer: eventType}, version: {outer: version}, occurredAt: {outer: occurredAt}}",
			`{"payload":"{\"amount\":\"1\",\"currency\":\"EUR\"}",` + columns + `}`, credit, routed[:1],
		},
		{"outbox, below a path", "debezium-outbox", "envelope: {path: after}", `{"after":{"amount":"1","currency":"EUR"}}`, credit, routed},
		{"structured", "cloudevents", "envelope: {path: data.event}", structure + `{"event":{"amount":"1","currency":"EUR"}}}`, credit, structuredHeader},
		{"structured, escaped", "cloudevents", "envelope: {path: data.event, escaped: true}", structure + `{"event":"{\"amount\":\"1\",\"currency\":\"EUR\"}"}}`, credit, structuredHeader},
		{"structured, all of data escaped", "cloudevents", "envelope: {path: data, escaped: true}", structure + `"{\"amount\":\"1\",\"currency\":\"EUR\"}"}`, credit, structuredHeader},
		{"binary", "cloudevents", "envelope: {path: data.event}", `{"event":{"amount":"1","currency":"EUR"}}`, credit, binary},
		{"binary, escaped", "cloudevents", "envelope: {path: data.event, escaped: true}", `{"event":"{\"amount\":\"1\",\"currency\":\"EUR\"}"}`, credit, binary},
		{"binary, all of data escaped", "cloudevents", "envelope: {path: data, escaped: true}", `"{\"amount\":\"1\",\"currency\":\"EUR\"}"`, credit, binary},
		{"structured, an attribute around it", "cloudevents", attribute, structure + `"{\"amount\":\"1\",\"currency\":\"EUR\"}"}`, "a FundsCredited 1.00 EUR", structuredHeader},
		{"binary, an attribute around it", "cloudevents", attribute, `"{\"amount\":\"1\",\"currency\":\"EUR\"}"`, "a FundsCredited 1.00 EUR", binary},
	} {
		f := formatOf(t, tt.format, tt.mapping)
		var d event.Decoded
		f.Decode(event.Message{Key: []byte("a"), Value: []byte(tt.value), Headers: tt.headers}, &d)
		got := decoded(&d)
		if d.Fault == nil {
			got = d.Event.ID + " " + got
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s (%v)\nwant %s", tt.name, got, d.Fault, tt.want)
		}
	}
}

var structuredHeader = []event.Header{{Key: "content-type", Value: []byte("application/cloudevents+json")}}

// A key after the id of a schema is JSON in each format. The serializers for JSON Schema write
// these keys.
func TestKeysBehindTheIDOfASchema(t *testing.T) {
	const fields = `"id":"e","type":"FundsCredited","time":"2026-01-01T00:00:00Z"`
	formats := map[string]struct {
		f event.Format
		m event.Message
	}{
		"json": {
			formatOf(t, "json", "fields: {accountId: {key: true}, eventId: id, eventType: type, occurredAt: time}"),
			message(`{` + fields + `,"version":1,"data":{"amount":"1","currency":"EUR"}}`),
		},
		"cloudevents": {
			formatOf(t, "cloudevents", "fields: {accountId: {key: true}}"),
			event.Message{
				Value:   []byte(`{` + fields + `,"specversion":"1.0","sequence":"1","data":{"amount":"1","currency":"EUR"}}`),
				Headers: structuredHeader,
			},
		},
	}
	for name, format := range formats {
		for key, account := range map[string]string{
			`"acc-1"`: "acc-1", `"acc\u002d1"`: "acc-1", "17": "17", "\x0aacc-1": "", `{"id":1}`: `{"id":1}`, `"acc`: "", "": "",
		} {
			format.m.Key = []byte("\x00\x00\x00\x00\x07" + key)
			var d event.Decoded
			format.f.Decode(format.m, &d)
			if d.Event.AccountID != account || (d.Fault == nil) != (account != "") {
				t.Errorf("%s, key %q: account %q, fault %v; want %q", name, key, d.Event.AccountID, d.Fault, account)
			}
		}
	}
}

// A key in Avro begins like one for JSON Schema. A text of 24 to 28 digits in Avro begins with its
// length, which is a digit too, and is not read as a number. An Avro number may be a single digit,
// which is read as a JSON number in the JSON formats only.
func TestKeysInAvroAreNotRead(t *testing.T) {
	const key = "\x00\x00\x00\x00\x07"
	f := formatOf(t, "json", "fields: {accountId: {key: true}}")
	m := message(eventOf("FundsCredited", `{"amount":"1","currency":"EUR"}`))
	for text, account := range map[string]string{
		key + "\x34" + strings.Repeat("61", 13): "", key + "\x0aacc-1": "", key + "\x30": "0", key + "1234567890123456789": "1234567890123456789",
	} {
		var d event.Decoded
		m.Key = []byte(text)
		if f.Decode(m, &d); d.Event.AccountID != account || account == "" && (d.Fault == nil || !strings.Contains(d.Fault.Error(), "schema")) {
			t.Errorf("key %q: account %q, fault %v; want %q", text, d.Event.AccountID, d.Fault, account)
		}
	}

	mapped, err := mapping.Parse([]byte("fields: {accountId: {key: true}}"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := event.NewRecords(event.Options{Mapping: mapped.Mapping})
	if err != nil {
		t.Fatal(err)
	}
	for text, account := range map[string]string{key + "\x30": "", key + "12345": "12345", key + `"acc-1"`: "acc-1", "0": "0", "acc-1": "acc-1"} {
		var d event.Decoded
		if records.Format(nothing{}).Decode(event.Message{Key: []byte(text), Value: []byte("x")}, &d); d.Event.AccountID != account {
			t.Errorf("with a schema, key %q: account %q, fault %v; want %q", text, d.Event.AccountID, d.Fault, account)
		}
	}
}

// nothing is a reader that finds no fields.
type nothing struct{}

func (nothing) Read([]byte, *event.Values) string { return "" }
