package event_test

import (
	"testing"

	"projector/projection/event"
)

func path(names ...string) event.FieldPath { return event.FieldPath{Path: names} }

func mapped(places map[event.Field]event.FieldPath, types map[string]event.Type) func(*event.Options) {
	return func(o *event.Options) { o.Mapping = event.Mapping{Fields: places, Types: types} }
}

// theirTypes contains the type names of another producer.
var theirTypes = map[string]event.Type{
	"MoneyDeposited": event.TypeNamed("FundsCredited"), "InterestPaid": event.TypeNamed("FundsCredited"), "MoneyWithdrawn": event.TypeNamed("FundsDebited"), "CardIssued": event.Ignorable,
}

// inQuotes adds a key and a header seq, as Kafka Connect's JsonConverter writes texts.
func inQuotes(m event.Message) event.Message {
	m.Key, m.Headers = []byte(`"acc-1"`), append(m.Headers, event.Header{Key: "seq", Value: []byte(`"17"`)})
	return m
}

func TestMappedPlaces(t *testing.T) {
	want := event.Event{
		ID: "e-1", AccountID: "acc-1", CorrelationID: "c-1", TypeName: "FundsCredited", Type: event.TypeNamed("FundsCredited"),
		Version: 17, OccurredAt: micros, Amount: 1025, Currency: currency(t, "EUR"),
	}
	tests := []struct {
		name, format string
		places       map[event.Field]event.FieldPath
		message      event.Message
	}{
		{
			"nested and renamed", event.FormatJSON,
			map[event.Field]event.FieldPath{
				event.FieldEventID: path("meta", "id"), event.FieldVersion: path("meta", "seq"), event.FieldEventType: path("name"),
				event.FieldOccurredAt: path("meta", "at"), event.FieldCorrelationID: path("meta", "trace"), event.FieldAccountID: path("account"),
				event.FieldData: path("body", "money"), event.FieldAmount: path("the.value"), event.FieldCurrency: path("unit", "iso"),
			},
			event.Message{Value: []byte(`{"body":{"money":{"the.value":"10.25","unit":{"iso":"EUR"},"amount":1}},"name":"MoneyDeposited","account":"acc-1",` +
				`"eventId":null,"meta":{"id":"e-1","seq":17,"at":"2026-01-01T00:00:00.123Z","trace":"c-1"}}`)},
		},
		{
			"flat", event.FormatJSON,
			map[event.Field]event.FieldPath{event.FieldVersion: path("seq"), event.FieldData: {}},
			event.Message{Value: []byte(`{"eventId":"e-1","eventType":"MoneyDeposited","accountId":"acc-1","seq":17,"correlationId":"c-1",` +
				`"occurredAt":"2026-01-01T00:00:00.123Z","amount":"10.25","currency":"EUR"}`)},
		},
		{
			"headers and key", event.FormatJSON,
			map[event.Field]event.FieldPath{
				event.FieldVersion: {Header: "seq"}, event.FieldAccountID: {Key: true}, event.FieldEventType: {Header: "type"},
				event.FieldCorrelationID: {Header: "x-trace"}, event.FieldEventID: {Header: "id"}, event.FieldOccurredAt: {Header: "at"},
			},
			event.Message{
				Key: []byte(`"acc-1"`), Value: []byte(`{"version":99,"data":{"amount":"10.25","currency":"EUR"}}`),
				Headers: []event.Header{
					{Key: "seq", Value: []byte("17")},
					{Key: "type", Value: []byte("MoneyDeposited")},
					{Key: "x-trace", Value: []byte("c-1")},
					{Key: "id", Value: []byte("e-1")},
					{Key: "at", Value: []byte(`"2026-01-01T00:00:00.123Z"`)},
					{Key: "correlationId", Value: []byte("c-2")},
				},
			},
		},
		{
			"outbox, version in the payload", event.FormatDebezium,
			map[event.Field]event.FieldPath{
				event.FieldVersion: path("seq"), event.FieldData: path("money"), event.FieldCorrelationID: path("trace"),
			},
			routed(value(jsonText(`{"seq":17,"money":{"amount":"10.25","currency":"EUR"},"trace":"c-1"}`)), header("id", "e-1"),
				header("eventType", "MoneyDeposited"), header("occurredAt", "2026-01-01T00:00:00.123Z")),
		},
		{
			"structured, other attributes", event.FormatCloudEvents,
			map[event.Field]event.FieldPath{
				event.FieldVersion: path("seqno"), event.FieldAccountID: path("data", "account"), event.FieldData: path("data", "money"),
			},
			structured("type", `"MoneyDeposited"`, "seqno", `"17"`, "subject", "", "data", `{"account":"acc-1","money":{"amount":"10.25","currency":"EUR"}}`),
		},
		{
			"structured in Base64", event.FormatCloudEvents,
			map[event.Field]event.FieldPath{event.FieldVersion: path("data", "seq")},
			structured("type", `"MoneyDeposited"`, "sequence", "", "data", "", "data_base64", encoded(`{"amount":"10.25","currency":"EUR","seq":17}`)),
		},
		{
			"binary, other attributes", event.FormatCloudEvents,
			map[event.Field]event.FieldPath{
				event.FieldVersion: path("seqno"), event.FieldAccountID: path("data", "account"), event.FieldData: path("data", "money"),
			},
			binary("type", `"MoneyDeposited"`, "seqno", `"17"`, "subject", "", "data", `{"account":"acc-1","money":{"amount":"10.25","currency":"EUR"}}`),
		},
		{
			"structured, a key and a header in quotes", event.FormatCloudEvents,
			map[event.Field]event.FieldPath{event.FieldAccountID: {Key: true}, event.FieldVersion: {Header: "seq"}},
			inQuotes(structured("type", `"MoneyDeposited"`, "subject", "", "sequence", "")),
		},
		{
			"binary, a key and a header in quotes", event.FormatCloudEvents,
			map[event.Field]event.FieldPath{event.FieldAccountID: {Key: true}, event.FieldVersion: {Header: "seq"}},
			inQuotes(binary("type", `"MoneyDeposited"`, "subject", "", "sequence", "")),
		},
	}
	for _, tt := range tests {
		opts := options
		mapped(tt.places, theirTypes)(&opts)
		f, err := event.New(tt.format, opts)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if d := decodeMessage(f, tt.message); d.Fault != nil || d.Identity != event.Identified || d.Event != want {
			t.Errorf("%s:\n got %+v, fault %v\nwant %+v", tt.name, d.Event, d.Fault, want)
		}
	}
}

// TestAVersionInTheJSONOfAHeaderOrKey shows that a version in such JSON is an integer, or a text if the
// mapping declares this. It may then be an integer, too, because earlier releases read no other.
func TestAVersionInTheJSONOfAHeaderOrKey(t *testing.T) {
	for _, written := range []event.Written{event.WrittenUsually, event.WrittenInteger, event.WrittenText} {
		for _, at := range []event.FieldPath{{Header: "meta"}, {Key: true}} {
			at.Path, at.Written = []string{"seq"}, written
			opts := options
			mapped(map[event.Field]event.FieldPath{event.FieldVersion: at}, nil)(&opts)
			f, err := event.New(event.FormatJSON, opts)
			if err != nil {
				t.Fatal(err)
			}
			for seq, want := range map[string]bool{`7`: true, `"7"`: written == event.WrittenText, `"07"`: false, `"7.0"`: false, `""`: false, `true`: false, `null`: false} {
				meta := []byte(`{"seq":` + seq + `}`)
				var d event.Decoded
				f.Decode(event.Message{Key: meta, Headers: []event.Header{{Key: "meta", Value: meta}}, Value: []byte(`{"eventId":"e","eventType":"AccountClosed",` +
					`"accountId":"a","occurredAt":"2026-01-01T00:00:00Z"}`)}, &d)
				if is := d.Fault == nil && d.Event.Version == 7; is != want {
					t.Errorf("%s in %+v: version %d, %v", seq, at, d.Event.Version, d.Fault)
				}
			}
		}
	}
}

func TestMappedTypes(t *testing.T) {
	opts := options
	mapped(nil, theirTypes)(&opts)
	f, err := event.New(event.FormatJSON, opts)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		kind event.Type
		name string
	}{
		"MoneyDeposited": {event.TypeNamed("FundsCredited"), "FundsCredited"},
		"InterestPaid":   {event.TypeNamed("FundsCredited"), "FundsCredited"},
		"MoneyWithdrawn": {event.TypeNamed("FundsDebited"), "FundsDebited"},
		"AccountOpened":  {event.TypeNamed("AccountOpened"), "AccountOpened"}, // not renamed by the mapping
		"CardIssued":     {event.Ignorable, "CardIssued"},
		"AccountRenamed": {event.Ignorable, "AccountRenamed"}, // ignored because of the flag
		"FundsCredited":  {event.Unknown, "FundsCredited"},    // renamed, so this name is unknown
	} {
		d := decode(f, change("eventType", jsonText(name)))
		if d.Event.Type != want.kind || d.Event.TypeName != want.name || (d.Fault != nil) != (want.kind == event.Unknown) {
			t.Errorf("%s: %+v, fault %v", name, d.Event, d.Fault)
		}
	}
}

// A fault contains the field's name in the producer's messages.
func TestMappedFaultsNameTheirFields(t *testing.T) {
	opts := options
	mapped(map[event.Field]event.FieldPath{
		event.FieldVersion: path("meta", "seq"), event.FieldData: path("body"), event.FieldAmount: path("value"), event.FieldEventID: {Header: "id"},
	}, nil)(&opts)
	f, err := event.New(event.FormatJSON, opts)
	if err != nil {
		t.Fatal(err)
	}
	id := event.Header{Key: "id", Value: []byte("e-1")}
	for _, tt := range []struct {
		value, field string
		headers      []event.Header
	}{
		{`{"accountId":"a","meta":{"seq":1}}`, "header id", nil},
		{`{"accountId":"a","meta":{"seq":"1"}}`, "meta.seq", []event.Header{id}},
		{`{"accountId":"a","meta":7}`, "meta.seq", []event.Header{id}},
		{change("meta", ""), "meta.seq", []event.Header{id}},
		{`{"meta":{"seq":1},` + change("data", "")[1:], "body", []event.Header{id}},
		{`{"meta":{"seq":1},"body":{"value":1,"currency":"EUR"},` + change()[1:], "body.value", []event.Header{id}},
	} {
		if d := decode(f, tt.value, tt.headers...); d.Fault == nil || d.Fault.Field != tt.field {
			t.Errorf("%s: fault %v, want one of %s", tt.value, d.Fault, tt.field)
		}
	}
}

// If a field contains a number instead of a text, the fault names the declaration that a mapping
// needs.
func TestANumberInsteadOfATextNamesTheRemedy(t *testing.T) {
	for value, want := range map[string]string{
		`{"eventId":7}`: "eventId: is a number instead of a string: a mapping can declare type: integer",
		`{"eventId":"e","accountId":"a","version":1,"eventType":"AccountClosed","occurredAt":1767225600}`: "occurredAt: is a number instead of an RFC 3339 text: a mapping can declare its unit",
		`{"eventId":true}`: "eventId: is not a string",
	} {
		if d := decode(event.NewJSON(event.Options{}), value); d.Fault == nil || d.Fault.Error() != want {
			t.Errorf("%s: %v, want %s", value, d.Fault, want)
		}
	}
}

// If a version has the wrong type, the fault says which type the mapping or the format allows.
func TestAVersionOfAnotherTypeNamesTheRemedy(t *testing.T) {
	version := func(value string) event.Message { return event.Message{Value: []byte(change("version", value))} }
	text := event.Mapping{Fields: map[event.Field]event.FieldPath{event.FieldVersion: {Path: []string{"version"}, Written: event.WrittenText}}}
	for _, tt := range []struct {
		format, want string
		message      event.Message
		mapping      event.Mapping
	}{
		{event.FormatJSON, "version: is a number instead of a text, as the mapping declares with type: text", version("7"), text},
		{event.FormatJSON, "version: is not a string", version("true"), text},
		{event.FormatJSON, "version: is not a JSON number", version(`"7"`), event.Mapping{}},
		{event.FormatCloudEvents, "sequence: is neither an integer nor an integer as text", structured("sequence", "[1]"), event.Mapping{}},
	} {
		f, err := event.New(tt.format, event.Options{Mapping: tt.mapping})
		if err != nil {
			t.Fatal(err)
		}
		if d := decodeMessage(f, tt.message); d.Fault == nil || d.Fault.Error() != tt.want {
			t.Errorf("%v, want %s", d.Fault, tt.want)
		}
	}
}
