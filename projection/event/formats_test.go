package event_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"projector/projection/event"
)

// parts contains the members of an event as JSON texts, before a format is chosen. An absent member
// is "".
type parts struct{ id, kind, account, version, at, correlation, data string }

func drawParts(t *rapid.T) parts {
	one := func(label string, texts ...string) string { return rapid.SampledFrom(texts).Draw(t, label) }
	// Most values are correct, so that the checks of later members are also reached.
	mostly := func(label, right string, wrong ...string) string {
		if rapid.IntRange(0, 7).Draw(t, label+" wrong") > 0 {
			return right
		}
		return one(label, wrong...)
	}
	return parts{
		id:          mostly("id", `"e-1"`, "", "null", `""`, `"a\u0000"`, `"\u00e9\"\\"`),
		account:     mostly("account", `"acc-1"`, "", "null", `""`, `"a\u0000"`, `"\ud83d\ude00"`),
		version:     mostly("version", `17`, "", "null", `0`, `-1`, `1.0`, `9223372036854775807`, `9223372036854775808`),
		at:          mostly("at", `"2026-01-01T00:00:00.1239999Z"`, "", "null", `""`, `"2026-01-01"`, `"2016-12-31T23:59:60Z"`),
		correlation: one("correlation", `"c-1"`, "", `""`, "null"),
		kind: mostly("kind", one("known", `"FundsCredited"`, `"FundsDebited"`, `"AccountOpened"`, `"AccountClosed"`, `"AccountRenamed"`),
			"", "null", `"FundsMoved"`, `""`),
		data: one("data", `{"amount":"10.25","currency":"EUR"}`, `{"amount":"1","currency":"JPY","x":[{}]}`, `{}`, `null`, `[]`, `17`, `true`,
			`{"currency":"EUR"}`, `{"amount":"1"}`, `{"amount":1,"currency":"EUR"}`, `{"amount":null,"currency":"EUR"}`,
			`{"amount":"0","currency":"EUR"}`, `{"amount":"10.000","currency":"EUR"}`, `{"amount":"-1","currency":"BGN"}`,
			`{"amount":"1","currency":null}`, `{"amount":"1","currency":"eur"}`, `{"amount":"1","amount":"1","currency":"EUR"}`,
			`{"amount":"1\u0030","currency":"\u0045UR"}`, `{"amount":"1","currency":"EUR","x":"\ud800"}`),
	}
}

// broken reports whether the data is invalid JSON. In the default format, no field of such an event
// can be read.
func (p *parts) broken() bool {
	return p.data == `{"amount":"1","amount":"1","currency":"EUR"}` || p.data == `{"amount":"1","currency":"EUR","x":"\ud800"}`
}

func (p *parts) asJSON() event.Message {
	return event.Message{Key: []byte("any"), Value: []byte(change(
		"eventId", p.id, "eventType", p.kind, "accountId", p.account, "version", p.version, "occurredAt", p.at,
		"correlationId", p.correlation, "data", p.data))}
}

// The method header adds a header with the content of a JSON text.
func (p *parts) header(m *event.Message, name, jsonText string, spelling int) {
	if jsonText == "" {
		return
	}
	h := event.Header{Key: name}
	switch s := unquoted(jsonText); {
	case jsonText == "null" && spelling == 0:
	case jsonText == "null" || spelling == 1:
		h.Value = []byte(jsonText)
	case spelling == 2:
		h.Value = []byte(connect(jsonText))
	default:
		h.Value = []byte(s)
	}
	m.Headers = append(m.Headers, h)
}

func (p *parts) asDebezium(t *rapid.T) event.Message {
	spelling := rapid.IntRange(0, 2).Draw(t, "spelling")
	var m event.Message
	p.header(&m, "key", p.account, spelling)
	if len(m.Headers) > 0 {
		m.Key, m.Headers = m.Headers[0].Value, nil
	}
	p.header(&m, "id", p.id, spelling)
	p.header(&m, "eventType", p.kind, spelling)
	p.header(&m, "version", p.version, spelling)
	p.header(&m, "occurredAt", p.at, spelling)
	p.header(&m, "correlationId", p.correlation, spelling)
	m.Value = []byte(rapid.SampledFrom([]string{p.data, jsonText(p.data), connect(p.data), connect(jsonText(p.data))}).Draw(t, "value"))
	return m
}

func (p *parts) attributes() []string {
	version := p.version
	if version != "" && version != "null" {
		version = jsonText(version)
	}
	return []string{
		"id", p.id, "type", p.kind, "subject", p.account, "sequence", version, "time", p.at,
		"correlationid", p.correlation, "data", p.data,
	}
}

// asStructured returns the event as a CloudEvent in structured mode. Data with invalid JSON is
// encoded in Base64.
func (p *parts) asStructured(t *rapid.T) event.Message {
	attributes := p.attributes()
	if p.data != "null" && (p.broken() || rapid.Bool().Draw(t, "base64")) {
		attributes = append(attributes, "data", "", "data_base64", encoded(p.data))
	}
	return structured(attributes...)
}

func (p *parts) asBinary() event.Message {
	attributes := p.attributes()
	for i := 1; i < len(attributes)-2; i += 2 {
		if attributes[i] == "null" { // an attribute without a value has no header
			attributes[i] = ""
		}
	}
	return binary(attributes...)
}

// schemaID is what the serializers for JSON Schema write before the JSON.
const schemaID = "\x00\x00\x00\x00\x07"

// framed returns a message whose JSON objects and texts have the id of a schema before them.
func framed(m event.Message) event.Message {
	frame := func(text []byte) []byte {
		if json.Valid(text) && (text[0] == '{' || text[0] == '"' || text[0] >= '0' && text[0] <= '9' && !bytes.ContainsAny(text, ".eE")) {
			return append([]byte(schemaID), text...)
		}
		return text
	}
	m.Key, m.Value = frame(m.Key), frame(m.Value)
	return m
}

// The same event has the same outcome in the JSON, Debezium and CloudEvents formats. The exception
// is an event whose data is invalid JSON (see sameBroken).
func TestFormatsAgree(t *testing.T) {
	for name, types := range map[string][]string{"built in": nil, "own": {"FundsCredited", "AccountClosed"}} {
		t.Run(name, func(t *testing.T) {
			custom := func(o *event.Options) { o.CustomTypes = types }
			opts := options
			custom(&opts)
			asJSON, outbox, cloud := event.NewJSON(opts), debezium(t, custom), cloudEvents(t, custom)
			rapid.Check(t, func(t *rapid.T) {
				p := drawParts(t)
				want := decodeMessage(asJSON, p.asJSON())
				sameOutcome(t, p, event.FormatDebezium, want, decodeMessage(outbox, p.asDebezium(t)))
				sameOutcome(t, p, "structured", want, decodeMessage(cloud, p.asStructured(t)))
				sameOutcome(t, p, "binary", want, decodeMessage(cloud, p.asBinary()))
				sameOutcome(t, p, "with a schema id", want, decodeMessage(asJSON, framed(p.asJSON())))
				sameOutcome(t, p, "debezium-outbox with schema ids", want, decodeMessage(outbox, framed(p.asDebezium(t))))
				sameOutcome(t, p, "structured with a schema id", want, decodeMessage(cloud, framed(p.asStructured(t))))
				sameOutcome(t, p, "binary with a schema id", want, decodeMessage(cloud, framed(p.asBinary())))
			})
		})
	}
}

func sameOutcome(t *rapid.T, p parts, format string, want, got event.Decoded) {
	if p.broken() {
		sameBroken(t, format, want, got)
		return
	}
	if got.Event != want.Event || got.Identity != want.Identity || got.Skip != want.Skip || (got.Fault == nil) != (want.Fault == nil) {
		t.Fatalf("%s: %+v, fault %v\nin the default format: %+v, fault %v", format, got, got.Fault, want, want.Fault)
	}
	if got.Fault != nil && got.Fault.Class != want.Fault.Class {
		t.Fatalf("%s: %s, in the default format %s", format, got.Fault.Class, want.Fault.Class)
	}
}

// sameBroken compares the outcomes of an event whose data is invalid JSON. In the default format,
// no field of the event can be read. In other formats the other fields can be read, so one of them
// may have the first fault. The data of an ignorable type is not checked.
func sameBroken(t *rapid.T, format string, want, got event.Decoded) {
	switch {
	case want.Fault == nil || want.Fault.Class != event.MalformedPayload:
		t.Fatalf("broken data in the default format: %+v, fault %v", want, want.Fault)
	case got.Event.Type == event.Ignorable && (got.Skip || got.Fault == nil):
	case got.Fault == nil:
		t.Fatalf("%s accepts broken data: %+v", format, got)
	case got.Event.Type == event.Unknown && got.Fault.Class == event.UnknownEventType:
	case got.Fault.Class != event.MalformedPayload:
		t.Fatalf("%s: broken data: %v", format, got.Fault)
	}
}
