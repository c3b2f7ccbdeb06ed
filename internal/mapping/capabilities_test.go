package mapping_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"projector/internal/mapping"
	"projector/projection/event"
)

// capability is one feature of a mapping. The field mapping is a template, because the path of the
// document differs between formats. In the template, a tilde is the prefix of a path in the
// document, and DATA is the path of the data.
type capability struct {
	name, mapping, document string
	want                    string            // the events of the record, as timed returns them
	otherwise               map[string]string // by format, if the result differs from JSON because of the schema's types
}

// The function capable returns a mapping for the document that the function usual returns, with the
// given lines replaced.
func capable(lines ...string) string {
	fields := map[string]string{
		"eventId": "~id", "accountId": "~account", "version": "~seq", "eventType": "~kind", "occurredAt": "~at",
		"amount": "amount", "currency": "ccy", "data": "DATA",
	}
	text := "eventTypes: {C: FundsCredited, D: FundsDebited, X: ignored, c/in: FundsCredited, 'true': FundsDebited, m: {positive: FundsCredited, negative: FundsDebited, zero: ignored}}\n"
	for _, l := range lines {
		name, rest, _ := strings.Cut(l, ": ")
		fields[name] = rest
	}
	if envelope := fields["envelope"]; envelope != "" {
		text += "envelope: " + envelope + "\n"
		delete(fields, "envelope")
	}
	text += "fields:\n"
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text += "  " + name + ": " + fields[name] + "\n"
	}
	return text
}

// The function usual returns a document with some members replaced. A replacement has the form
// "NAME:JSON".
func usual(members ...string) string {
	all := map[string]string{
		"id": `"e"`, "account": `"a"`, "seq": "7", "kind": `"C"`, "at": `"2026-01-01T00:00:00Z"`, "amount": `"10.25"`, "ccy": `"EUR"`,
	}
	for _, m := range members {
		name, text, _ := strings.Cut(m, ":")
		all[name] = text
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, `"`+name+`":`+all[name])
	}
	return "{" + strings.Join(parts, ",") + "}"
}

const (
	credited = "0 FundsCredited 10.25 EUR e a@7 2026-01-01T00:00:00Z"
	isFloat  = "0 malformed_payload amount e a@7"
	isNoTime = "0 malformed_payload ~at e a@7"
)

// In a schema, a number with a point is a float.
var (
	schemaFloat = map[string]string{event.FormatAvro: isFloat, event.FormatProtobuf: isFloat}
	timeFloat   = map[string]string{event.FormatAvro: isNoTime, event.FormatProtobuf: isNoTime}
)

func capabilities() []capability {
	const (
		minor  = "amount: {path: amount, unit: minor}"
		number = "amount: {path: amount, type: number}"
		units  = "amount: {units: amount.units, nanos: amount.nanos}"
	)
	entries := []string{
		"envelope: {path: ~posting, entries: lines}", "eventId: {outer: ~id}", "occurredAt: {outer: ~at}",
		"accountId: account", "version: seq", "eventType: kind", `data: ""`,
	}
	two := `posting:{"lines":[` + usual() + "," + usual(`account:"b"`, `kind:"D"`) + `]}`
	eachOf := "1 FundsCredited 10.25 EUR e/0 a@7 2026-01-01T00:00:00Z | 2 FundsDebited 10.25 EUR e/1 b@7 2026-01-01T00:00:00Z"
	return []capability{
		{"amount: text", capable(), usual(), credited, nil},
		{"amount: minor units", capable(minor), usual("amount:1025"), credited, nil},
		{"amount: minor units as text", capable("amount: {path: amount, unit: minor, type: text}"), usual(`amount:"1025"`), credited, nil},
		{"amount: scale", capable("amount: {path: amount, scale: 4}"), usual("amount:102500"), credited, nil},
		{"amount: scale as text", capable("amount: {path: amount, scale: 4, type: text}"), usual(`amount:"102500"`), credited, nil},
		{"amount: text with more zeros", capable("amount: {path: amount, zeros: dropped}"), usual(`amount:"10.2500"`), credited, nil},
		{"amount: number with more zeros", capable("amount: {path: amount, type: number, zeros: dropped}"), usual("amount:10.2500"), credited, schemaFloat},
		{"amount: number", capable(number), usual("amount:10.25"), credited, schemaFloat},
		{"amount: a whole number", capable(number), usual("amount:10"), strings.Replace(credited, "10.25", "10.00", 1), nil},
		{"amount: units and nanos", capable(units), usual(`amount:{"units":10,"nanos":250000000}`), credited, nil},
		{"amount: negative", capable(minor), usual("amount:-1025", `kind:"m"`), strings.Replace(credited, "Credited", "Debited", 1), nil},
		{"amount: positive", capable(minor), usual("amount:1025", `kind:"m"`), credited, nil},
		{"amount: zero ignored", capable(minor), usual("amount:0", `kind:"m"`), "0 ignored e a@7 2026-01-01T00:00:00Z", nil},
		{"amount: zero", capable(minor), usual("amount:0"), "0 invalid_amount amount e a@7", nil},
		{"amount: float for an integer", capable(minor), usual("amount:10.5"), "0 invalid_amount amount e a@7", schemaFloat},
		{"amount: number for text", capable(), usual("amount:1025"), "0 malformed_payload amount e a@7", nil},
		{"amount: text for a number", capable(minor), usual(), "0 malformed_payload amount e a@7", nil},
		{"amount: 2^63 as text", capable("amount: {path: amount, unit: minor, type: text}"), usual(`amount:"9223372036854775808"`), "0 invalid_amount amount e a@7", nil},
		{"amount: exponent as text", capable("amount: {path: amount, unit: minor, type: text}"), usual(`amount:"1e3"`), "0 invalid_amount amount e a@7", nil},
		{"amount: negative zero as text", capable(), usual(`amount:"-0"`, `kind:"m"`), "0 invalid_amount amount e a@7", nil},
		{"amount: in an array", capable("amount: list.amount"), usual(`list:[{"amount":"10.25"}]`), "0 malformed_payload list.amount e a@7 meets an array", nil},
		{"amount: below a text", capable("amount: ccy.amount", "currency: {constant: EUR}"), usual(), "0 malformed_payload ccy.amount e a@7", nil},

		{"time: date", capable("occurredAt: {path: ~at, unit: date}"), usual(`at:"2026-01-01"`), credited, nil},
		{"time: s", capable("occurredAt: {path: ~at, unit: s}"), usual("at:1767225600"), credited, nil},
		{"time: s.fraction", capable("occurredAt: {path: ~at, unit: s.fraction}"), usual("at:1767225600.123"), strings.Replace(credited, "00Z", "00.123Z", 1), timeFloat},
		{"time: ms", capable("occurredAt: {path: ~at, unit: ms}"), usual("at:1767225600123"), strings.Replace(credited, "00Z", "00.123Z", 1), nil},
		{"time: us", capable("occurredAt: {path: ~at, unit: us}"), usual("at:1767225600123456"), strings.Replace(credited, "00Z", "00.123456Z", 1), nil},
		{"time: ns", capable("occurredAt: {path: ~at, unit: ns}"), usual("at:1767225600123456789"), strings.Replace(credited, "00Z", "00.123456Z", 1), nil},
		{"time: the year 292277026596", capable("occurredAt: {path: ~at, unit: s}"), usual("at:9223372036854775807"), "0 malformed_payload ~at e a@7", nil},
		{"time: text for a count", capable("occurredAt: {path: ~at, unit: s}"), usual(`at:"1767225600"`), "0 malformed_payload ~at e a@7", nil},
		{"time: count for text", capable(), usual("at:1767225600"), "0 malformed_payload ~at e a@7", nil},
		{"time: float for a count", capable("occurredAt: {path: ~at, unit: s}"), usual("at:1767225600.5"), "0 malformed_payload ~at e a@7", nil},

		{"type: joined", capable("eventType: {join: [~kind, ~dir], with: /}"), usual(`kind:"c"`, `dir:"in"`), credited, nil},
		{"type: joined, a part is missing", capable("eventType: {join: [~kind, {path: ~dir, optional: true}], with: /}"), usual(`kind:"c"`), "0 unknown_event_type ~kind and ~dir e a@7", nil},
		{"type: boolean", capable("eventType: {path: ~kind, type: boolean}"), usual("kind:true"), strings.Replace(credited, "Credited", "Debited", 1), nil},
		{"type: constant", capable("eventType: {constant: C}"), usual(), credited, nil},
		{"type: ignored", capable(), usual(`kind:"X"`), "0 ignored e a@7 2026-01-01T00:00:00Z", nil},
		{"type: unknown", capable(), usual(`kind:"Y"`), "0 unknown_event_type ~kind e a@7", nil},
		{"type: its own name does not count", capable(), usual(`kind:"FundsCredited"`), "0 unknown_event_type ~kind e a@7", nil},

		{"identity: key", capable("accountId: {key: true, path: acct.no}"), usual(), strings.Replace(credited, "a@", "K-1@", 1), nil},
		{"identity: header", capable("eventId: {header: x-id}"), usual(), strings.Replace(credited, " e ", " H ", 1), nil},
		{"identity: joined", capable("accountId: {join: [~account, {constant: DE}, {header: x-id}], with: /}"), usual(), strings.Replace(credited, "a@", "a/DE/H@", 1), nil},
		{"identity: integers", capable("eventId: {path: ~id, type: integer}", "accountId: {join: [{path: ~account, type: integer}, ~kind], with: '-'}"), usual("id:12", "account:5"), strings.Replace(credited, "e a@", "12 5-C@", 1), nil},
		{"identity: version as text", capable("version: {path: ~seq, type: text}"), usual(`seq:"7"`), credited, nil},
		{"identity: version 0", capable(), usual("seq:0"), strings.Replace(credited, "@7", "@0", 1), nil},
		{"identity: version is a float", capable(), usual("seq:7.5"), "0 malformed_payload ~seq", nil},
		{"identity: NUL", capable(), usual(`id:"e\u0000"`), "0 malformed_payload ~id", nil},
		{"identity: in an array", capable("accountId: ~list.no"), usual(`list:[{"no":"a"}]`), "0 malformed_payload ~list.no meets an array", nil},
		{"currency: constant", capable("currency: {constant: EUR}"), usual(), credited, nil},
		{"currency: numeric", capable("currency: {path: ccy, code: numeric}"), usual(`ccy:"978"`), credited, nil},
		{"currency: integer", capable("currency: {path: ccy, code: numeric, type: integer}"), usual(`ccy:978`), credited, nil},
		{"currency: small letters", capable("currency: {path: ccy, case: lower}"), usual(`ccy:"eur"`), credited, nil},
		{"names of several levels", capable("data: ~body.data", "amount: money.value"), usual(`body:{"data":{"money":{"value":"10.25"},"ccy":"EUR"}}`), credited, nil},

		{"envelope: path", capable("envelope: {path: ~body}", "eventId: {outer: ~id}", "accountId: account", "version: seq", "eventType: kind", "occurredAt: at", `data: ""`), usual("body:" + usual(`id:"inner"`)), credited, nil},
		{"envelope: escaped", capable("envelope: {path: ~body, escaped: true}", "eventId: {outer: ~id}", "accountId: account", "version: seq", "eventType: kind", "occurredAt: at", `data: ""`), usual("body:" + escapedJSON(usual())), credited, nil},
		{"envelope: escaped, a key twice", capable("envelope: {path: ~body, escaped: true}", "eventId: {outer: ~id}", "accountId: account", "version: seq", "eventType: kind", "occurredAt: at", `data: ""`), usual(`body:"{\"seq\":1,\"seq\":2}"`), "0 malformed_payload ~body", nil},
		{"envelope: in an array", capable("envelope: {path: ~list.body, escaped: true}", "eventId: {outer: ~id}", "accountId: account", "version: seq", "eventType: kind", "occurredAt: at", `data: ""`), usual(`list:[{"body":"{}"}]`), "0 malformed_payload ~list.body meets an array", nil},
		{"entries", capable(entries...), usual(two), eachOf, nil},
		{"entries: escaped", capable(append(entries, "envelope: {path: ~posting, escaped: true, entries: lines}")...), usual("posting:" + escapedJSON(strings.TrimPrefix(two, "posting:"))), eachOf, nil},
		{"entries: none", capable(entries...), usual(`posting:{"lines":[]}`), "0 malformed_payload ~posting.lines", nil},
		{"entries: no array", capable(entries...), usual(`posting:{"lines":` + usual() + `}`), "0 malformed_payload ~posting.lines", nil},
		{"entries: 100,000", capable(entries...), usual(`posting:{"lines":[` + strings.TrimSuffix(strings.Repeat(usual()+",", 100_000), ",") + `]}`), "0 malformed_payload ~posting.lines", nil},
		{"entries: in an array", capable(append(entries, "envelope: {path: ~list.posting, entries: lines}")...), usual(`list:[` + "{" + `"posting":{"lines":[` + usual() + `]}}]`), "0 malformed_payload ~list.posting.lines meets an array", nil},
	}
}

// TestCapabilities reads each case of the function capabilities in each format, and compares the
// events with the expected ones.
func TestCapabilities(t *testing.T) {
	all := capabilities()
	for _, format := range []string{event.FormatJSON, event.FormatDebezium, "structured", "binary", event.FormatAvro, event.FormatProtobuf} {
		for _, c := range all {
			prefix, name := "", ""
			switch format {
			case event.FormatDebezium:
				name = "payload."
			case "structured", "binary":
				prefix, name = "data.", "data."
			}
			if format == event.FormatAvro && strings.Contains(c.document, `"lines":[]`) {
				continue // an empty array has no type; TestAvroSeries covers it
			}
			text := strings.ReplaceAll(strings.ReplaceAll(c.mapping, "~", prefix), "DATA", cmp.Or(strings.TrimSuffix(prefix, "."), `""`))
			want := cmp.Or(c.otherwise[format], c.want)
			m, err := mapping.Parse([]byte(text))
			if err != nil {
				t.Fatalf("%s: %v\n%s", c.name, err, text)
			}
			f, message := written(t, format, event.Options{Mapping: m.Mapping}, c.document)
			message.Key = []byte(`{"acct":{"no":"K-1"}}`)
			message.Headers = append(message.Headers, event.Header{Key: "x-id", Value: []byte("H")})
			if got := strings.Join(timed(f, message), " | "); !sameResult(got, want, name) {
				t.Errorf("%s, %s:\n got %s\nwant %s", format, c.name, got, want)
			}
		}
	}
}

// sameResult reports whether two results are equal. It ignores the prefix that paths of the
// document have in some formats.
func sameResult(got, want, name string) bool {
	if name != "" {
		got = strings.ReplaceAll(got, name, "")
	}
	return got == strings.ReplaceAll(want, "~", "")
}

// The function timed returns the texts of decodedEach with the events' times. If an event has a
// fault because a path leads to an array, its text says so.
func timed(f event.Format, m event.Message) []string {
	var all []*event.Decoded
	event.DecodeEach(f, m, func(int32) *event.Decoded {
		all = append(all, new(event.Decoded))
		return all[len(all)-1]
	})
	texts := decodedEach(f, m)
	for i, d := range all {
		switch {
		case d.Fault == nil:
			texts[i] += " " + time.UnixMicro(d.Event.OccurredAt).UTC().Format(time.RFC3339Nano)
		case strings.Contains(d.Fault.Reason, "meets an array"):
			texts[i] += " meets an array"
		}
	}
	return texts
}
