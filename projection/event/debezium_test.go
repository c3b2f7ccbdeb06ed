package event_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"projector/projection/event"
)

// outbox contains the parts of a message that the outbox event router writes. A part that is nil is
// absent.
type outbox struct {
	key, value []byte
	headers    []event.Header
}

// The function routed returns a record as Debezium 3.2 writes it with StringConverter, and applies
// the edits to the record.
func routed(edits ...func(*outbox)) event.Message {
	o := outbox{key: []byte("acc-1"), value: []byte(`{"amount": "10.25", "currency": "EUR"}`), headers: []event.Header{
		{Key: "__debezium.context.connectorLogicalName", Value: []byte("bank")},
		{Key: "__debezium.context.taskId", Value: []byte("0")},
		{Key: "__debezium.context.connectorName", Value: []byte("postgresql")},
		{Key: "id", Value: []byte("7f9c24e8-3b12-4d0f-9c7e-2f1f6a1b2c3d")},
		{Key: "eventType", Value: []byte("FundsCredited")},
		{Key: "version", Value: []byte("2")},
		{Key: "occurredAt", Value: []byte("2026-11-21T11:50:27.475594Z")},
		{Key: "correlationId", Value: []byte("c-1")},
	}}
	for _, edit := range edits {
		edit(&o)
	}
	return event.Message{Key: o.key, Value: o.value, Headers: o.headers}
}

func key(text string) func(*outbox)   { return func(o *outbox) { o.key = []byte(text) } }
func value(text string) func(*outbox) { return func(o *outbox) { o.value = []byte(text) } }

func header(name, text string) func(*outbox) {
	return func(o *outbox) {
		for i := range o.headers {
			if o.headers[i].Key == name {
				o.headers[i].Value = []byte(text)
				return
			}
		}
		o.headers = append(o.headers, event.Header{Key: name, Value: []byte(text)})
	}
}

func without(name string) func(*outbox) {
	return func(o *outbox) {
		o.headers = slices.DeleteFunc(o.headers, func(h event.Header) bool { return h.Key == name })
	}
}

func nullHeader(name string) func(*outbox) {
	return func(o *outbox) {
		header(name, "")(o)
		for i := range o.headers {
			if o.headers[i].Key == name {
				o.headers[i].Value = nil
			}
		}
	}
}

// The function first adds a header before all others.
func first(name, text string) func(*outbox) {
	return func(o *outbox) {
		o.headers = slices.Insert(o.headers, 0, event.Header{Key: name, Value: []byte(text)})
	}
}

func debezium(t testing.TB, edit ...func(*event.Options)) event.Format {
	t.Helper()
	return edited(t, event.FormatDebezium, edit)
}

// The function edited returns a format of the tests' options after the edits.
func edited(t testing.TB, name string, edit []func(*event.Options)) event.Format {
	t.Helper()
	opts := options
	for _, e := range edit {
		e(&opts)
	}
	f, err := event.New(name, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func decodeMessage(f event.Format, m event.Message) event.Decoded {
	d := event.Decoded{Skip: true, Tombstone: true, Fault: &event.Fault{}} // Decode must overwrite all fields
	f.Decode(m, &d)
	return d
}

// The function unquoted returns the content of a JSON string, or any other JSON text unchanged.
func unquoted(text string) string {
	var s string
	if json.Unmarshal([]byte(text), &s) != nil {
		return text
	}
	return s
}

func jsonText(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

// The function connect returns a JSON text as the payload of an envelope, as JsonConverter writes
// it with schemas.enable=true.
func connect(payload string) string {
	return `{"schema":{"type":"string","optional":false},"payload":` + payload + `}`
}

func TestDebeziumReadsWhatConvertersWrite(t *testing.T) {
	const payload = `{"amount": "10.25", "currency": "EUR"}`
	want := event.Event{
		ID: "7f9c24e8-3b12-4d0f-9c7e-2f1f6a1b2c3d", AccountID: "acc-1", CorrelationID: "c-1",
		TypeName: "FundsCredited", Type: event.TypeNamed("FundsCredited"), Version: 2,
		OccurredAt: time.Date(2026, 11, 21, 11, 50, 27, 475_594_000, time.UTC).UnixMicro(),
		Amount:     1025, Currency: currency(t, "EUR"),
	}
	wrapped := func(wrap func(string) string) func(*outbox) {
		return func(o *outbox) {
			o.key = []byte(wrap(string(o.key)))
			for i, h := range o.headers {
				o.headers[i].Value = []byte(wrap(string(h.Value)))
			}
		}
	}
	tests := map[string]event.Message{
		"plain":                          routed(),
		"escaped payload":                routed(value(jsonText(payload))),
		"escaped payload, space around":  routed(value(" \n" + jsonText(payload) + "\t")),
		"payload with its schema":        routed(value(connect(jsonText(payload)))),
		"expanded payload, schema":       routed(value(connect(payload))),
		"unknown members":                routed(value(`{"schema":{"a":1},"note":[{}],"amount":"10.25","currency":"EUR"}`)),
		"quoted key":                     routed(key(`"acc-1"`)),
		"quoted key, escapes":            routed(key(`"acc\u002d1"`)),
		"quoted everything":              routed(wrapped(jsonText)),
		"envelopes everywhere":           routed(wrapped(func(s string) string { return connect(jsonText(s)) })),
		"ids of schemas":                 routed(key(schemaID+`"acc-1"`), value(schemaID+payload)),
		"id of a schema, escaped":        routed(value(schemaID + jsonText(payload))),
		"version in an envelope":         routed(header("version", `{"schema":{"type":"int64","optional":true},"payload":2}`)),
		"the first of a name counts":     routed(header("other", "x"), func(o *outbox) { o.headers = append(o.headers, o.headers...) }),
		"no correlation in place of its": routed(without("correlationId"), header("correlation_id", `"c-1"`)),
	}
	f := debezium(t)
	for name, m := range tests {
		if d := decodeMessage(f, m); d.Fault != nil || d.Skip || d.Tombstone || d.Identity != event.Identified || d.Event != want {
			t.Errorf("%s:\n got %+v, fault %v\nwant %+v", name, d.Event, d.Fault, want)
		}
	}
}

func TestDebeziumNamesAndTypes(t *testing.T) {
	f := debezium(t, func(o *event.Options) {
		o.Debezium = event.DebeziumOptions{TypeHeader: "type", VersionHeader: "seq", TimeHeader: "at"}
	})
	d := decodeMessage(f, routed(header("type", "AccountClosed"), header("seq", "7"), header("at", "2026-01-01T00:00:00.123Z"), value("null")))
	if d.Fault != nil || d.Event.Type != event.TypeNamed("AccountClosed") || d.Event.Version != 7 || d.Event.OccurredAt != micros {
		t.Errorf("%+v, fault %v", d.Event, d.Fault)
	}
	d = decodeMessage(f, routed())
	if d.Fault == nil || !strings.Contains(d.Fault.Error(), "seq") {
		t.Errorf("the default header is read: %+v, fault %v", d.Event, d.Fault)
	}
}

func TestDebeziumIgnoresWithoutLookingAtThePayload(t *testing.T) {
	f := debezium(t)
	renamed := header("eventType", "AccountRenamed")
	if d := decodeMessage(f, routed(renamed, value("<xml/>"))); d.Fault != nil || d.Identity != event.Identified || d.Event.Type != event.Ignorable {
		t.Errorf("%+v, fault %v", d, d.Fault)
	}
	if d := decodeMessage(f, routed(renamed, without("version"))); !d.Skip || d.Fault != nil {
		t.Errorf("%+v, fault %v; want it skipped", d, d.Fault)
	}
	if d := decodeMessage(f, routed(func(o *outbox) { o.value = nil })); !d.Tombstone || d.Fault != nil || d.Skip {
		t.Errorf("a null value gives %+v", d)
	}
}

type faultTest struct {
	name     string
	message  event.Message
	identity event.Identity
	class    event.Class
	says     []string // texts in the fault
}

func expectFaults(t *testing.T, f event.Format, tests []faultTest) {
	t.Helper()
	for _, tt := range tests {
		d := decodeMessage(f, tt.message)
		if d.Fault == nil || d.Skip || d.Tombstone || d.Identity != tt.identity || d.Fault.Class != tt.class {
			t.Errorf("%s: %+v, fault %v; want %s", tt.name, d, d.Fault, tt.class)
			continue
		}
		for _, text := range tt.says {
			if !strings.Contains(d.Fault.Error(), text) {
				t.Errorf("%s: %q does not say %q", tt.name, d.Fault, text)
			}
		}
	}
}

func TestDebeziumFaults(t *testing.T) {
	const none, known = event.Unidentified, event.Identified
	malformed := event.MalformedPayload
	tests := []faultTest{
		{"no id", routed(without("id")), none, malformed, []string{"header id", "table.field.event.id"}},
		{"empty id", routed(header("id", "")), none, malformed, []string{"header id", "empty"}},
		{"null id", routed(nullHeader("id")), none, malformed, []string{"header id", "null"}},
		{"id of 201 bytes", routed(header("id", strings.Repeat("x", 201))), none, malformed, []string{"header id", "200 bytes"}},
		{"id that is no UTF-8", routed(header("id", "\xff")), none, malformed, []string{"header id", "UTF-8"}},
		{"id with NUL", routed(header("id", "a\x00")), none, malformed, []string{"header id", "NUL"}},
		{"id with escaped NUL", routed(header("id", `"a\u0000"`)), none, malformed, []string{"header id", "NUL"}},
		{"id with a lone surrogate", routed(header("id", `"\ud800"`)), none, malformed, []string{"header id", "well-formed"}},
		{"id with an open quote", routed(header("id", `"abc`)), none, malformed, []string{"header id", "well-formed"}},
		{"id as an object in an envelope", routed(header("id", connect("{}"))), none, malformed, []string{"header id", "envelope"}},
		{"id in half an envelope", routed(header("id", `{"schema":{}`)), none, malformed, []string{"header id", "envelope"}},
		{"first of two ids", routed(first("id", "")), none, malformed, []string{"header id", "empty"}},
		{"null key", routed(func(o *outbox) { o.key = nil }), none, malformed, []string{"key", "null", "table.field.event.key"}},
		{"JSON null as key", routed(key("null")), none, malformed, []string{"key", "null"}},
		{"null in an envelope as key", routed(key(connect("null"))), none, malformed, []string{"key", "null"}},
		{"empty key", routed(key("")), none, malformed, []string{"key", "empty"}},
		{"empty text as key", routed(key(`""`)), none, malformed, []string{"key", "empty"}},
		{"no version", routed(without("version")), none, malformed, []string{"header version", "version:header:version", "fields.additional.placement", "--debezium-version-header"}},
		{"version 0", routed(header("version", "0")), none, malformed, []string{"header version", "first version"}},
		{"version with sign", routed(header("version", "+2")), none, malformed, []string{"header version", "integer"}},
		{"version with zeros", routed(header("version", "02")), none, malformed, []string{"header version", "integer"}},
		{"version with a point", routed(header("version", "2.0")), none, malformed, []string{"header version", "integer"}},
		{"version with space", routed(header("version", "2 ")), none, malformed, []string{"header version", "integer"}},
		{"empty version", routed(header("version", "")), none, malformed, []string{"header version", "integer"}},
		{"version too large", routed(header("version", "9223372036854775808")), none, malformed, []string{"header version", "64-bit"}},
		{"no type", routed(without("eventType")), known, malformed, []string{"header eventType", "type:header:eventType"}},
		{"unknown type", routed(header("eventType", "FundsMoved")), known, event.UnknownEventType, []string{"header eventType"}},
		{"no time", routed(without("occurredAt")), known, malformed, []string{"header occurredAt", "occurred_at:header:occurredAt"}},
		{"time without offset", routed(header("occurredAt", "2026-11-21T11:50:27")), known, malformed, []string{"header occurredAt", "RFC 3339"}},
		{"time as a number", routed(header("occurredAt", "1795261827475594")), known, malformed, []string{"header occurredAt", "--debezium-time-unit"}},
		{"empty payload", routed(value("")), known, malformed, []string{"payload", "empty"}},
		{"payload of null", routed(value(" null ")), known, malformed, []string{"payload", "null"}},
		{"payload of a number", routed(value("17")), known, malformed, []string{"payload", "not a JSON object"}},
		{"payload escaped twice", routed(value(jsonText(jsonText("{}")))), known, malformed, []string{"payload", "not a JSON object"}},
		{"payload cut off", routed(value(`{"amount":"10.25"`)), known, malformed, []string{"payload", "too early"}},
		{"escaped payload cut off", routed(value(jsonText(`{"amount":"10.25"`))), known, malformed, []string{"payload", "too early"}},
		{"escaped payload, open quote", routed(value(`"{}`)), known, malformed, []string{"payload", "too early"}},
		{"garbage behind an escaped payload", routed(value(`"{}"x`)), known, malformed, []string{"payload"}},
		{"byte order mark", routed(value("\xef\xbb\xbf{}")), known, malformed, []string{"payload", "byte order mark"}},
		{"escaped byte order mark", routed(value(`"\ufeff{}"`)), known, malformed, []string{"payload", "byte order mark"}},
		{"duplicate key", routed(value(`{"amount":"1","amount":"1","currency":"EUR"}`)), known, malformed, []string{"payload", "twice"}},
		{"escaped duplicate key", routed(value(jsonText(`{"x":1,"x":1,"amount":"1","currency":"EUR"}`))), known, malformed, []string{"payload", "twice"}},
		{"duplicate key in an envelope", routed(value(connect(`{"x":1,"x":1}`))), known, malformed, []string{"payload", "twice"}},
		{"lone surrogate", routed(value(`{"amount":"1","currency":"EUR","x":"\ud800"}`)), known, malformed, []string{"payload", "surrogate"}},
		{"escaped lone surrogate", routed(value(`"{\"x\":\"\\ud800\"}"`)), known, malformed, []string{"payload", "surrogate"}},
		{"amount missing", routed(value(`{"currency":"EUR"}`)), known, malformed, []string{"payload.amount"}},
		{"amount as a number", routed(value(`{"amount":10.25,"currency":"EUR"}`)), known, malformed, []string{"payload.amount", "number"}},
		{"amount negative", routed(value(`{"amount":"-1","currency":"EUR"}`)), known, event.InvalidAmount, []string{"payload.amount"}},
		{"currency unsupported", routed(value(`{"amount":"1","currency":"BGN"}`)), known, event.UnsupportedCurrency, []string{"payload.currency"}},
		{"identity before the payload", routed(without("id"), value("{")), none, malformed, []string{"header id"}},
		{"envelope before the payload", routed(without("occurredAt"), value("{")), known, malformed, []string{"header occurredAt"}},
	}
	expectFaults(t, debezium(t), tests)
}

func TestDebeziumTimeUnits(t *testing.T) {
	at := func(text string) int64 {
		instant, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return instant.UnixMicro()
	}
	tests := []struct {
		unit, text string
		want       int64 // 0 means that it is refused
	}{
		{"ms", "1795261827475", at("2026-11-21T11:50:27.475Z")},
		{"us", "1795261827475594", at("2026-11-21T11:50:27.475594Z")},
		{"ns", "1795261827475594123", at("2026-11-21T11:50:27.475594Z")},
		{"us", `"1795261827475594"`, at("2026-11-21T11:50:27.475594Z")},
		{"ns", "-1", -1},
		{"ns", "-1000", -1},
		{"ns", "-1001", -2},
		{"ms", "-1", -1000},
		{"us", "2026-11-21T11:50:27.475594Z", at("2026-11-21T11:50:27.475594Z")},
		{"ms", "1795261827.5", 0},
		{"ms", "1e12", 0},
		{"ms", "+1", 0},
		{"ms", "", 0},
		{"ms", "1795261827475594123", 0},
		{"ms", "99999999999999999999", 0},
		{"us", "253402300799999999", at("9999-12-31T23:59:59.999999Z")},
		{"us", "253402300800000000", 0},
		{"us", "-62167219200000000", at("0000-01-01T00:00:00Z")},
		{"us", "-62167219200000001", 0},
		{"rfc3339", "1795261827475594", 0},
	}
	for _, tt := range tests {
		unit, err := event.ParseTimeUnit(tt.unit)
		if err != nil || unit.String() != tt.unit {
			t.Fatalf("unit %q: %v, %v", tt.unit, unit, err)
		}
		f := debezium(t, func(o *event.Options) { o.Debezium.TimeUnit = unit })
		d := decodeMessage(f, routed(header("occurredAt", tt.text)))
		if (d.Fault == nil) != (tt.want != 0) || d.Event.OccurredAt != tt.want {
			t.Errorf("%s as %s is %d, fault %v; want %d", tt.text, tt.unit, d.Event.OccurredAt, d.Fault, tt.want)
		}
	}
	if _, err := event.ParseTimeUnit("seconds"); err == nil || !strings.Contains(err.Error(), "rfc3339, ms, us or ns") {
		t.Errorf("an unknown unit: %v", err)
	}
}

// A fault's text must not contain values, because people who may not see the payload can read it in
// a dead letter.
func TestDebeziumFaultsNeverEchoValues(t *testing.T) {
	const secret = "4711"
	f := debezium(t)
	for _, text := range []string{
		secret + "\x00", "\"" + secret, "\xff" + secret, `"\ud800` + secret + `"`, "[" + secret + "]", secret + ".5", connect(`{"a":` + secret + `}`),
		`{"` + secret + `":1,"` + secret + `":2}`, `{"amount":"-` + secret + `","currency":"EUR"}`, `{"amount":"1","currency":"` + secret + `"}`,
	} {
		for _, edit := range []func(*outbox){
			key(text), value(text), header("id", text), header("version", text), header("eventType", text), header("occurredAt", text),
		} {
			if d := decodeMessage(f, routed(edit)); d.Fault != nil && strings.Contains(d.Fault.Error(), secret) {
				t.Errorf("%s: %v", text, d.Fault)
			}
		}
	}
}
