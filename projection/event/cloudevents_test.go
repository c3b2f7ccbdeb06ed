package event_test

import (
	"encoding/base64"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/projection/event"
)

const structuredType = "application/cloudevents+json"

// attributes contains the members of a valid CloudEvent, as JSON texts by name.
var attributes = map[string]string{
	"specversion": `"1.0"`, "id": `"e-1"`, "source": `"/bank"`, "type": `"FundsCredited"`, "subject": `"acc-1"`, "sequence": `"17"`,
	"time": `"2026-01-01T00:00:00.123Z"`, "datacontenttype": `"application/json"`, "correlationid": `"c-1"`,
	"data": `{"amount":"10.25","currency":"EUR"}`,
}

// The function structured returns a CloudEvent in structured mode with some members replaced. The
// arguments are pairs of a name and a JSON text. An empty text removes the member.
func structured(pairs ...string) event.Message {
	members := maps.Clone(attributes)
	for pair := range slices.Chunk(pairs, 2) {
		members[pair[0]] = pair[1]
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name] != "" {
			parts = append(parts, `"`+name+`":`+members[name])
		}
	}
	return event.Message{
		Key: []byte("acc-1"), Value: []byte("{" + strings.Join(parts, ",") + "}"),
		Headers: []event.Header{{Key: "content-type", Value: []byte(structuredType)}},
	}
}

// The function binary returns the same event in binary mode.
func binary(pairs ...string) event.Message {
	members := maps.Clone(attributes)
	for pair := range slices.Chunk(pairs, 2) {
		members[pair[0]] = pair[1]
	}
	m := event.Message{Key: []byte("acc-1"), Value: []byte(members["data"])}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch text := members[name]; {
		case name == "data", text == "":
		case name == "datacontenttype":
			m.Headers = append(m.Headers, event.Header{Key: "content-type", Value: []byte(unquoted(text))})
		default:
			m.Headers = append(m.Headers, event.Header{Key: "ce_" + name, Value: []byte(unquoted(text))})
		}
	}
	return m
}

// The function typed returns a message with the given content type.
func typed(m event.Message, contentType string) event.Message {
	m.Headers = slices.DeleteFunc(slices.Clone(m.Headers), func(h event.Header) bool { return h.Key == "content-type" })
	if contentType != "" {
		m.Headers = append(m.Headers, event.Header{Key: "content-type", Value: []byte(contentType)})
	}
	return m
}

func valued(m event.Message, value []byte) event.Message {
	m.Value = value
	return m
}

func cloudEvents(t testing.TB, edit ...func(*event.Options)) event.Format {
	t.Helper()
	return edited(t, event.FormatCloudEvents, edit)
}

func encoded(data string) string {
	return `"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"`
}

func TestCloudEventsBothModes(t *testing.T) {
	want := event.Event{
		ID: "e-1", AccountID: "acc-1", CorrelationID: "c-1", TypeName: "FundsCredited", Type: event.TypeNamed("FundsCredited"),
		Version: 17, OccurredAt: micros, Amount: 1025, Currency: currency(t, "EUR"),
	}
	const data = `{"amount":"10.25","currency":"EUR"}`
	tests := map[string]event.Message{
		"structured":                       structured(),
		"structured, charset":              typed(structured(), "application/cloudevents+json; charset=UTF-8"),
		"structured, other case":           typed(structured(), "Application/CloudEvents+JSON;charset=utf-8"),
		"structured, no data content type": structured("datacontenttype", ""),
		"structured, null attributes":      structured("datacontenttype", "null", "data_base64", "null"),
		"structured, other JSON type":      structured("datacontenttype", `"application/vnd.bank+json; charset=utf-8"`),
		"structured, sequence as number":   structured("sequence", "17"),
		"structured, padded sequence":      structured("sequence", `"00000000000000000017"`),
		"structured, base64":               structured("data", "", "data_base64", encoded(data)),
		"structured, no source":            structured("source", ""),
		"binary":                           binary(),
		"binary, no content type":          typed(binary(), ""),
		"binary, parameters":               typed(binary(), "application/json; charset=utf-8"),
		"binary, other JSON type":          typed(binary(), "Application/Vnd.bank+JSON"),
		"binary, padded sequence":          binary("sequence", `"0017"`),
		"the content type decides":         {Key: nil, Value: structured().Value, Headers: append(structured().Headers, binary("id", `"other"`).Headers...)},
		"correlation id of the record": {Value: binary().Value, Headers: append(binary("correlationid", "").Headers,
			event.Header{Key: "correlationId", Value: []byte("c-1")})},
	}
	f := cloudEvents(t)
	for name, m := range tests {
		if d := decodeMessage(f, m); d.Fault != nil || d.Skip || d.Tombstone || d.Identity != event.Identified || d.Event != want {
			t.Errorf("%s:\n got %+v, fault %v\nwant %+v", name, d.Event, d.Fault, want)
		}
	}
}

func TestCloudEventsWithoutData(t *testing.T) {
	f := cloudEvents(t)
	closed, renamed := []string{"type", `"AccountClosed"`, "data", ""}, []string{"type", `"AccountRenamed"`, "data", ""}
	for name, m := range map[string]event.Message{
		"closed, structured":     structured(closed...),
		"closed, binary, null":   valued(binary(closed...), nil),
		"closed, binary, empty":  valued(binary(closed...), []byte{}),
		"closed, of no JSON":     typed(valued(binary(closed...), nil), "text/plain"),
		"ignored, binary, null":  valued(binary(renamed...), nil),
		"ignored, of no JSON":    typed(valued(binary(renamed...), []byte("<xml/>")), "text/xml"),
		"ignored, structured":    structured(renamed...),
		"ignored, broken base64": structured(append(renamed, "data_base64", `"?"`)...),
	} {
		if d := decodeMessage(f, m); d.Fault != nil || d.Tombstone || d.Skip || d.Identity != event.Identified || d.Event.Version != 17 {
			t.Errorf("%s: %+v, fault %v", name, d, d.Fault)
		}
	}
	for name, m := range map[string]event.Message{
		"a null value":                {Key: []byte("acc-1")},
		"a null value, structured":    valued(structured(), nil),
		"a null value of a credit":    valued(binary(), nil),
		"a null value of no version":  valued(binary("specversion", "", "type", `"AccountClosed"`), nil),
		"a null value of no known":    valued(binary("type", `"FundsMoved"`), nil),
		"a null value, its type only": {Headers: []event.Header{{Key: "ce_type", Value: []byte("AccountClosed")}}},
	} {
		if d := decodeMessage(f, m); !d.Tombstone || d.Fault != nil || d.Skip {
			t.Errorf("%s: %+v, want a tombstone", name, d)
		}
	}
}

func TestCloudEventsFaults(t *testing.T) {
	const none, known = event.Unidentified, event.Identified
	malformed := event.MalformedPayload
	tests := []faultTest{
		{"no header at all", event.Message{Value: []byte("{}")}, none, malformed, []string{"header ce_id", "application/cloudevents+json"}},
		{"a batch", typed(structured(), "application/cloudevents-batch+json"), none, malformed, []string{"content-type", "batch"}},
		{"Avro", typed(structured(), "application/cloudevents+avro"), none, malformed, []string{"content-type", "application/cloudevents+json"}},
		{"no event format", typed(structured(), "application/cloudevents"), none, malformed, []string{"content-type"}},
		{"structured, broken", valued(structured(), []byte("{")), none, malformed, []string{"too early"}},
		{"structured, array", valued(structured(), []byte("[{}]")), none, malformed, []string{"not a JSON object"}},
		{"structured, empty", valued(structured(), []byte{}), none, malformed, []string{"empty"}},
		{"structured, duplicate key in data", structured("data", `{"a":1,"a":1}`), none, malformed, []string{"twice"}},
		{"structured, no subject", structured("subject", ""), none, malformed, []string{"subject"}},
		{"structured, subject null", structured("subject", "null"), none, malformed, []string{"subject", "null"}},
		{"structured, empty id", structured("id", `""`), none, malformed, []string{"id", "empty"}},
		{"structured, no sequence", structured("sequence", ""), none, malformed, []string{"sequence", "missing"}},
		{"structured, sequence with sign", structured("sequence", `"+17"`), none, malformed, []string{"sequence", "integer"}},
		{"structured, sequence of no digits", structured("sequence", `"a"`), none, malformed, []string{"sequence", "integer"}},
		{"structured, sequence as fraction", structured("sequence", `17.0`), none, malformed, []string{"sequence", "integer"}},
		{"structured, sequence 0", structured("sequence", `"0"`), none, malformed, []string{"sequence", "first version"}},
		{"structured, sequence too large", structured("sequence", `"9223372036854775808"`), none, malformed, []string{"sequence", "64-bit"}},
		{"binary, no subject", binary("subject", ""), none, malformed, []string{"header ce_subject"}},
		{"binary, quoted sequence", binary("sequence", `"\"17\""`), none, malformed, []string{"header ce_sequence", "integer"}},
		{
			"binary, id that is no UTF-8", valued(event.Message{Headers: append(binary("id", "").Headers, event.Header{Key: "ce_id", Value: []byte{0xff}})}, []byte("{}")),
			none, malformed,
			[]string{"header ce_id", "UTF-8"},
		},
		{"structured, no specversion", structured("specversion", ""), known, malformed, []string{"specversion"}},
		{"structured, specversion 0.3", structured("specversion", `"0.3"`), known, malformed, []string{"specversion", "1.0"}},
		{"binary, no specversion", binary("specversion", ""), known, malformed, []string{"header ce_specversion"}},
		{"structured, no time", structured("time", ""), known, malformed, []string{"time"}},
		{"binary, no time", binary("time", ""), known, malformed, []string{"header ce_time"}},
		{"time as a number", binary("time", `"1795261827"`), known, malformed, []string{"header ce_time", "RFC 3339"}},
		{"structured, no type", structured("type", ""), known, malformed, []string{"type"}},
		{"binary, unknown type", binary("type", `"FundsMoved"`), known, event.UnknownEventType, []string{"header ce_type"}},
		{"structured, no data", structured("data", ""), known, malformed, []string{"data", "missing"}},
		{"binary, no data", valued(binary(), []byte{}), known, malformed, []string{"data", "missing"}},
		{"structured, data as text", structured("data", jsonText(attributes["data"])), known, malformed, []string{"data", "not an object"}},
		{"binary, data as text", valued(binary(), []byte(jsonText(attributes["data"]))), known, malformed, []string{"data", "not a JSON object"}},
		{"binary, broken data", valued(binary(), []byte(`{"amount"`)), known, malformed, []string{"data", "too early"}},
		{"structured, data of XML", structured("datacontenttype", `"application/xml"`), known, malformed, []string{"datacontenttype"}},
		{"structured, type of data a number", structured("datacontenttype", `1`), known, malformed, []string{"datacontenttype"}},
		{"binary, data of XML", typed(binary(), "application/xml"), known, malformed, []string{"header content-type"}},
		{"binary, content type of no form", typed(binary(), "json"), known, malformed, []string{"header content-type"}},
		{"data twice", structured("data_base64", encoded("{}")), known, malformed, []string{"data_base64", "as well as data"}},
		{"no base64", structured("data", "", "data_base64", `"?"`), known, malformed, []string{"data_base64", "Base64"}},
		{"base64 as a number", structured("data", "", "data_base64", `1`), known, malformed, []string{"data_base64", "string"}},
		{"broken JSON in base64", structured("data", "", "data_base64", encoded("{")), known, malformed, []string{"data_base64", "too early"}},
		{"a list in base64", structured("data", "", "data_base64", encoded("[]")), known, malformed, []string{"data_base64", "object"}},
		{"amount as a number", structured("data", `{"amount":1,"currency":"EUR"}`), known, malformed, []string{"data.amount"}},
		{"binary, amount as a number", binary("data", `{"amount":1,"currency":"EUR"}`), known, malformed, []string{"data.amount"}},
		{"amount in base64", structured("data", "", "data_base64", encoded(`{"amount":"-1","currency":"EUR"}`)), known, event.InvalidAmount, []string{"data.amount"}},
		{"correlation id as a number", structured("correlationid", "1"), known, malformed, []string{"correlationid"}},
	}
	expectFaults(t, cloudEvents(t), tests)
}

// Data in Base64 has the same meaning as data in JSON, with any mapping of attributes and data.
func TestBase64IsReadAsData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		path := func() event.FieldPath {
			name := rapid.SampledFrom(names).Draw(t, "name")
			if rapid.Bool().Draw(t, "in the data") {
				return event.FieldPath{Path: []string{"data", name}}
			}
			return event.FieldPath{Path: []string{"x" + name}}
		}
		joined := func(optional bool) event.FieldPath {
			p := event.FieldPath{Separator: '/', Join: []event.FieldPath{path(), path(), path()}}
			for i := range p.Join {
				p.Join[i].Optional = optional && rapid.Bool().Draw(t, "optional")
			}
			return p
		}
		fields := map[event.Field]event.FieldPath{event.FieldEventType: joined(true)}
		if rapid.Bool().Draw(t, "a joined account") {
			fields[event.FieldAccountID] = joined(false)
		}
		if rapid.Bool().Draw(t, "data below data") {
			fields[event.FieldData] = event.FieldPath{Path: []string{"data", "money"}}
		}
		if rapid.Bool().Draw(t, "a currency elsewhere") {
			fields[event.FieldCurrency] = event.FieldPath{Constant: "EUR"}
		}
		opts := options
		opts.Mapping = event.Mapping{Fields: fields, Types: map[string]event.Type{}}
		for _, kind := range []string{"1/1/1", "1//1", "1/1/", "1//", "/1/1", "/1/", "//1", "//", "1/2/1", "2/2/2", "2//2", "2/2/"} {
			opts.Mapping.Types[kind] = event.TypeNamed("FundsCredited")
		}
		f, err := event.New(event.FormatCloudEvents, opts)
		if err != nil {
			t.Skip(err)
		}
		var attributes []string
		data := `{"amount":"10.25","currency":"EUR","money":{"amount":"7","currency":"EUR"}`
		for _, name := range names {
			if text := rapid.SampledFrom([]string{"", `"1"`, `"1"`, `"2"`, "null"}).Draw(t, "attribute"); text != "" {
				attributes = append(attributes, "x"+name, text)
			}
			if text := rapid.SampledFrom([]string{"", `"1"`, `"1"`, `"2"`, "null"}).Draw(t, "member"); text != "" {
				data += `,"` + name + `":` + text
			}
		}
		data += "}"
		want := decodeMessage(f, structured(append(attributes, "data", data)...))
		got := decodeMessage(f, structured(append(attributes, "data", "", "data_base64", encoded(data))...))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %s:\n got %+v, fault %v\nwant %+v, fault %v", attributes, data, got.Event, got.Fault, want.Event, want.Fault)
		}
	})
}

// TestUnreadableDataIsNoMissingPart shows that a part of the event type in data that cannot be read is
// not missing, although the part is optional. Otherwise the event would have another type.
func TestUnreadableDataIsNoMissingPart(t *testing.T) {
	o := options
	o.Mapping = event.Mapping{
		Fields: map[event.Field]event.FieldPath{
			event.FieldEventType: {Join: []event.FieldPath{{Path: []string{"type"}}, {Path: []string{"data", "dir"}, Optional: true}}, Separator: '/'},
		},
		Types: map[string]event.Type{"FundsCredited/C": event.TypeNamed("FundsCredited"), "FundsCredited/": event.Ignorable},
	}
	f, err := event.New(event.FormatCloudEvents, o)
	if err != nil {
		t.Fatal(err)
	}
	const data = `{"dir":"C","amount":"1.00","currency":"EUR"}`
	if d := decodeMessage(f, structured("data", "", "data_base64", encoded(data))); d.Fault != nil || d.Event.Amount != 100 {
		t.Errorf("readable data: %+v, %v", d.Event, d.Fault)
	}
	for name, m := range map[string]event.Message{
		"no Base64":         structured("data", "", "data_base64", `"%%"`),
		"no text":           structured("data", "", "data_base64", "5"),
		"incomplete":        structured("data", "", "data_base64", encoded(data[:20])),
		"of another type":   structured("data", "", "data_base64", encoded("<x/>"), "datacontenttype", `"application/xml"`),
		"binary, too short": binary("data", data[:20]),
	} {
		if d := decodeMessage(f, m); d.Fault == nil || d.Event.Type == event.Ignorable {
			t.Errorf("%s: type %d, fault %v, want a fault", name, d.Event.Type, d.Fault)
		}
	}
}
