package event_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"projector/projection/event"
)

// memberOrder is the order in which the function change writes members.
var memberOrder = []string{"eventId", "eventType", "accountId", "version", "occurredAt", "correlationId", "data"}

// The variable credit contains the members of a valid event, as JSON texts by name.
var credit = map[string]string{
	"eventId": `"e-1"`, "eventType": `"FundsCredited"`, "accountId": `"acc-1"`, "version": `17`,
	"occurredAt": `"2026-01-01T00:00:00.123Z"`, "correlationId": `"c-1"`, "data": `{"amount":"10.25","currency":"EUR"}`,
}

// The function change returns the event credit with some members replaced. The arguments are pairs
// of a name and a JSON text. An empty text removes the member.
func change(pairs ...string) string {
	members := maps.Clone(credit)
	for pair := range slices.Chunk(pairs, 2) {
		members[pair[0]] = pair[1]
	}
	var parts []string
	for _, name := range memberOrder {
		if members[name] != "" {
			parts = append(parts, `"`+name+`":`+members[name])
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func decode(f event.Format, value string, headers ...event.Header) event.Decoded {
	d := event.Decoded{Skip: true, Tombstone: true, Fault: &event.Fault{}} // Decode must overwrite all fields
	f.Decode(event.Message{Value: []byte(value), Headers: headers}, &d)
	return d
}

var (
	micros  = time.Date(2026, 1, 1, 0, 0, 0, 123_000_000, time.UTC).UnixMicro()
	options = event.Options{FirstVersion: 1, Ignore: []string{"AccountRenamed"}}
)

func TestJSONWholeEvents(t *testing.T) {
	eur := currency(t, "EUR")
	whole := event.Event{
		ID: "e-1", AccountID: "acc-1", CorrelationID: "c-1", TypeName: "FundsCredited", Type: event.TypeNamed("FundsCredited"),
		Version: 17, OccurredAt: micros, Amount: 1025, Currency: eur,
	}
	with := func(edit func(*event.Event)) event.Event {
		e := whole
		edit(&e)
		return e
	}
	typed := func(typ event.Type, name string, c event.Currency) event.Event {
		return with(func(e *event.Event) { e.Type, e.TypeName, e.Amount, e.Currency = typ, name, 0, c })
	}
	closed := typed(event.TypeNamed("AccountClosed"), "AccountClosed", event.Currency{})
	id200 := strings.Repeat("é", 100) // 200 bytes
	tests := []struct {
		name, value string
		want        event.Event
	}{
		{"credit", change(), whole},
		{"debit", change("eventType", `"FundsDebited"`), with(func(e *event.Event) {
			e.Type, e.TypeName = event.TypeNamed("FundsDebited"), "FundsDebited"
		})},
		{"opened", change("eventType", `"AccountOpened"`, "data", `{"currency":"EUR"}`), typed(event.TypeNamed("AccountOpened"), "AccountOpened", eur)},
		{"opened, amount is an unknown field", change("eventType", `"AccountOpened"`, "data", `{"currency":"EUR","amount":5}`), typed(event.TypeNamed("AccountOpened"), "AccountOpened", eur)},
		{"closed without data", change("eventType", `"AccountClosed"`, "data", ""), closed},
		{"closed with null data", change("eventType", `"AccountClosed"`, "data", "null"), closed},
		{"closed with empty data", change("eventType", `"AccountClosed"`, "data", "{}"), closed},
		{"closed with null currency", change("eventType", `"AccountClosed"`, "data", `{"currency":null}`), closed},
		{"closed with currency", change("eventType", `"AccountClosed"`, "data", `{"currency":"EUR"}`), typed(event.TypeNamed("AccountClosed"), "AccountClosed", eur)},
		{"ignorable", change("eventType", `"AccountRenamed"`), typed(event.Ignorable, "AccountRenamed", event.Currency{})},
		{"ignorable, data not looked at", change("eventType", `"AccountRenamed"`, "data", `{"amount":0,"currency":7}`), typed(event.Ignorable, "AccountRenamed", event.Currency{})},
		{"ids of 200 bytes", change("eventId", `"`+id200+`"`, "accountId", `"`+id200+`"`), with(func(e *event.Event) { e.ID, e.AccountID = id200, id200 })},
		{"ids of one byte", change("eventId", `"x"`, "accountId", `" "`), with(func(e *event.Event) { e.ID, e.AccountID = "x", " " })},
		{"escapes", change("eventId", `"\u0065-\ud83d\ude00\/\""`, "eventType", `"Funds\u0043redited"`, "occurredAt", `"2026-01-01T00\u003a00:00.123Z"`,
			"data", `{"amount":"1\u0030.25","currency":"\u0045UR"}`), with(func(e *event.Event) { e.ID = `e-😀/"` })},
		{"an escaped member name", strings.Replace(change(), `"eventId"`, `"event\u0049d"`, 1), whole},
		{"the first version", change("version", "1"), with(func(e *event.Event) { e.Version = 1 })},
		{"the last version", change("version", "9223372036854775807"), with(func(e *event.Event) { e.Version = math.MaxInt64 })},
		{"no correlation id", change("correlationId", ""), with(func(e *event.Event) { e.CorrelationID = "" })},
		{"null correlation id", change("correlationId", "null"), with(func(e *event.Event) { e.CorrelationID = "" })},
		{"empty correlation id", change("correlationId", `""`), with(func(e *event.Event) { e.CorrelationID = "" })},
		{"the longest amount", change("data", `{"amount":"92233720368547758.07","currency":"EUR"}`), with(func(e *event.Event) { e.Amount = math.MaxInt64 })},
		{"unknown fields", strings.Replace(change(), `{`, `{"extra":{"eventId":null,"a":[1,{"a":2}]},"EVENTID":"other","Version":"x",`, 1), whole},
		{"data first", `{"data":{"currency":"EUR","note":[null],"amount":"10.25"},` + change("data", "")[1:], whole},
		{"white space around", " \t\r\n" + strings.ReplaceAll(change(), ",", " ,\n") + "\n \t\r", whole},
	}
	f := event.NewJSON(options)
	for _, tt := range tests {
		d := decode(f, tt.value)
		if d.Fault != nil || d.Skip || d.Tombstone || d.Identity != event.Identified {
			t.Errorf("%s: %+v, fault %v; want a whole event", tt.name, d, d.Fault)
			continue
		}
		if d.Event != tt.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, d.Event, tt.want)
		}
	}
}

// An event is identified if its ids and its version can be read. A duplicate is then recognised
// even if the event has other faults.
func TestJSONFaultsOfIdentifiedEvents(t *testing.T) {
	const malformed, unknown, badAmount, badCurrency = event.MalformedPayload, event.UnknownEventType, event.InvalidAmount, event.UnsupportedCurrency
	tests := []struct {
		name, value string
		class       event.Class
		field       string
	}{
		{"eventType missing", change("eventType", ""), malformed, "eventType"},
		{"eventType null", change("eventType", "null"), malformed, "eventType"},
		{"eventType number", change("eventType", "1"), malformed, "eventType"},
		{"eventType unknown", change("eventType", `"FundsMoved"`), unknown, "eventType"},
		{"eventType in other case", change("eventType", `"fundsCredited"`), unknown, "eventType"},
		{"eventType empty", change("eventType", `""`), unknown, "eventType"},
		{"occurredAt missing", change("occurredAt", ""), malformed, "occurredAt"},
		{"occurredAt null", change("occurredAt", "null"), malformed, "occurredAt"},
		{"occurredAt number", change("occurredAt", "1767225600"), malformed, "occurredAt"},
		{"occurredAt without offset", change("occurredAt", `"2026-01-01T00:00:00"`), malformed, "occurredAt"},
		{"occurredAt of an ignorable type", change("eventType", `"AccountRenamed"`, "occurredAt", `"now"`), malformed, "occurredAt"},
		{"correlationId number", change("correlationId", "1"), malformed, "correlationId"},
		{"correlationId object", change("correlationId", "{}"), malformed, "correlationId"},
		{"correlationId with NUL", change("correlationId", `"a\u0000"`), malformed, "correlationId"},
		{"correlationId of an ignorable type", change("eventType", `"AccountRenamed"`, "correlationId", "true"), malformed, "correlationId"},
		{"data missing", change("data", ""), malformed, "data"},
		{"data null", change("data", "null"), malformed, "data"},
		{"data array", change("data", `["10.25","EUR"]`), malformed, "data"},
		{"data text", change("data", `"{}"`), malformed, "data"},
		{"data missing in opened", change("eventType", `"AccountOpened"`, "data", ""), malformed, "data"},
		{"data text in closed", change("eventType", `"AccountClosed"`, "data", `""`), malformed, "data"},
		{"amount missing", change("data", `{"currency":"EUR"}`), malformed, "data.amount"},
		{"amount null", change("data", `{"amount":null,"currency":"EUR"}`), malformed, "data.amount"},
		{"amount number", change("data", `{"amount":10.25,"currency":"EUR"}`), malformed, "data.amount"},
		{"amount negative number", change("data", `{"amount":-1,"currency":"EUR"}`), malformed, "data.amount"},
		{"amount boolean", change("data", `{"amount":true,"currency":"EUR"}`), malformed, "data.amount"},
		{"amount number, bad currency", change("data", `{"amount":10.25,"currency":"XXX"}`), malformed, "data.amount"},
		{"currency missing", change("data", `{"amount":"10.25"}`), malformed, "data.currency"},
		{"currency null", change("data", `{"amount":"10.25","currency":null}`), malformed, "data.currency"},
		{"currency number", change("data", `{"amount":"10.25","currency":978}`), malformed, "data.currency"},
		{"currency missing in opened", change("eventType", `"AccountOpened"`, "data", `{}`), malformed, "data.currency"},
		{"currency null in opened", change("eventType", `"AccountOpened"`, "data", `{"currency":null}`), malformed, "data.currency"},
		{"currency number in closed", change("eventType", `"AccountClosed"`, "data", `{"currency":978}`), malformed, "data.currency"},
		{"currency without minor units", change("data", `{"amount":"10","currency":"XAU"}`), badCurrency, "data.currency"},
		{"currency withdrawn", change("data", `{"amount":"10","currency":"BGN"}`), badCurrency, "data.currency"},
		{"currency in lower case", change("data", `{"amount":"10.25","currency":"eur"}`), badCurrency, "data.currency"},
		{"currency empty", change("data", `{"amount":"10.25","currency":""}`), badCurrency, "data.currency"},
		{"currency with NUL", change("data", `{"amount":"10.25","currency":"EU\u0000"}`), badCurrency, "data.currency"},
		{"currency in opened", change("eventType", `"AccountOpened"`, "data", `{"currency":"ZZZ"}`), badCurrency, "data.currency"},
		{"currency in closed", change("eventType", `"AccountClosed"`, "data", `{"currency":"ZZZ"}`), badCurrency, "data.currency"},
		{"both bad: the currency decides", change("data", `{"amount":"-1","currency":"ZZZ"}`), badCurrency, "data.currency"},
		{"amount negative", change("data", `{"amount":"-10.25","currency":"EUR"}`), badAmount, "data.amount"},
		{"amount zero", change("data", `{"amount":"0.00","currency":"EUR"}`), badAmount, "data.amount"},
		{"amount empty", change("data", `{"amount":"","currency":"EUR"}`), badAmount, "data.amount"},
		{"amount too precise", change("data", `{"amount":"10.000","currency":"EUR"}`), badAmount, "data.amount"},
		{"amount with exponent", change("data", `{"amount":"1e1","currency":"EUR"}`), badAmount, "data.amount"},
		{"amount too large", change("data", `{"amount":"92233720368547758.08","currency":"EUR"}`), badAmount, "data.amount"},
		{"amount too large in debit", change("eventType", `"FundsDebited"`, "data", `{"amount":"9223372036854775808","currency":"JPY"}`), badAmount, "data.amount"},
		{"envelope before type", change("eventType", `"FundsMoved"`, "occurredAt", "null"), malformed, "occurredAt"},
		{"envelope before data", change("occurredAt", "null", "data", "null"), malformed, "occurredAt"},
	}
	f := event.NewJSON(options)
	for _, tt := range tests {
		d := decode(f, tt.value)
		if d.Fault == nil || d.Fault.Class != tt.class || d.Fault.Field != tt.field || d.Fault.Reason == "" || d.Skip || d.Tombstone {
			t.Errorf("%s: fault %+v, skip %v; want %s of %s", tt.name, d.Fault, d.Skip, tt.class, tt.field)
			continue
		}
		if d.Identity != event.Identified || d.Event.ID != "e-1" || d.Event.AccountID != "acc-1" || d.Event.Version != 17 {
			t.Errorf("%s: the identity is lost: %+v", tt.name, d)
		}
		if d.Event.Amount != 0 || !d.Event.Currency.IsZero() {
			t.Errorf("%s: a faulty event has money: %+v", tt.name, d.Event)
		}
	}
}

func TestJSONFaultsOfTheIdentity(t *testing.T) {
	long := `"` + strings.Repeat("é", 100) + `x"` // 201 bytes
	tests := []struct{ name, value, field string }{
		{"eventId missing", change("eventId", ""), "eventId"},
		{"eventId null", change("eventId", "null"), "eventId"},
		{"eventId empty", change("eventId", `""`), "eventId"},
		{"eventId number", change("eventId", "5"), "eventId"},
		{"eventId too long", change("eventId", long), "eventId"},
		{"eventId with NUL", change("eventId", `"a\u0000b"`), "eventId"},
		{"eventId in other case", strings.Replace(change(), "eventId", "eventID", 1), "eventId"},
		{"accountId missing", change("accountId", ""), "accountId"},
		{"accountId null", change("accountId", "null"), "accountId"},
		{"accountId empty", change("accountId", `""`), "accountId"},
		{"accountId array", change("accountId", `["a"]`), "accountId"},
		{"accountId too long", change("accountId", long), "accountId"},
		{"accountId with NUL", change("accountId", `"\u0000"`), "accountId"},
		{"version missing", change("version", ""), "version"},
		{"version null", change("version", "null"), "version"},
		{"version text", change("version", `"17"`), "version"},
		{"version boolean", change("version", "true"), "version"},
		{"version fraction", change("version", "17.5"), "version"},
		{"version whole fraction", change("version", "17.0"), "version"},
		{"version exponent", change("version", "17e0"), "version"},
		{"version zero", change("version", "0"), "version"},
		{"version minus zero", change("version", "-0"), "version"},
		{"version negative", change("version", "-1"), "version"},
		{"version overflow", change("version", "9223372036854775808"), "version"},
		{"version far overflow", change("version", "1"+strings.Repeat("0", 400)), "version"},
		{"empty object", "{}", "eventId"},
		{"unknown type without identity", change("eventType", `"FundsMoved"`, "version", "null"), "version"},
	}
	f := event.NewJSON(options)
	for _, tt := range tests {
		d := decode(f, tt.value)
		if d.Identity != event.Unidentified || d.Fault == nil || d.Fault.Class != event.MalformedPayload || d.Fault.Field != tt.field || d.Skip {
			t.Errorf("%s: %+v, fault %+v; want an unidentified malformed_payload of %s", tt.name, d, d.Fault, tt.field)
		}
	}
}

// The fields that can be read are set also if the event is not identified, because they help the
// person who reads the dead letter.
func TestJSONKeepsEvidenceOfTheUnidentified(t *testing.T) {
	d := decode(event.NewJSON(options), change("version", `"17"`))
	if d.Event.ID != "e-1" || d.Event.AccountID != "acc-1" || d.Event.CorrelationID != "c-1" || d.Event.Version != 0 {
		t.Errorf("evidence: %+v", d.Event)
	}
}

// If the JSON is invalid at any place, no member of it is used.
func TestJSONSyntaxFaults(t *testing.T) {
	tests := []struct{ name, value, reason string }{
		{"empty", "", "empty"},
		{"white space", " \n", "ends too early"},
		{"array", "[" + change() + "]", "not a JSON object"},
		{"text", `"` + strings.ReplaceAll(change(), `"`, `\"`) + `"`, "not a JSON object"},
		{"null", "null", "not a JSON object"},
		{"number", "17", "not a JSON object"},
		{"no JSON", "eventId=e-1", "not valid JSON"},
		{"cut off", change()[:len(change())-1], "ends too early"},
		{"cut off in a text", change()[:8], "ends too early"},
		{"byte order mark", "\xef\xbb\xbf" + change(), "byte order mark"},
		{"only the id of a schema", "\x00\x00\x00\x00\x07", "in a registry (--format=avro or protobuf)"},
		{"a text behind the id of a schema", "\x00\x00\x00\x00\x07\"e-1\"", "not a JSON object"},
		{"behind two ids of a schema", "\x00\x00\x00\x00\x07\x00\x00\x00\x00\x07" + change(), "in a registry (--format=avro or protobuf)"},
		{"cut off behind the id of a schema", "\x00\x00\x00\x00\x07" + change()[:8] + "}", "ends too early"},
		{"Avro", "\x00\x00\x00\x00\x07\x06e-1", "in a registry (--format=avro or protobuf)"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "invalid UTF-8"},
		{"second object", change() + change(), "follows the object"},
		{"second object after a line feed", change() + "\n{}", "follows the object"},
		{"garbage behind", change() + "x", "follows the object"},
		{"NUL behind", change() + "\x00", "follows the object"},
		{"brace behind", change() + "}", "follows the object"},
		{"duplicate key", strings.Replace(change(), "{", `{"version":17,`, 1), "twice"},
		{"duplicate key, escaped", strings.Replace(change(), "{", `{"versio\u006e":17,`, 1), "twice"},
		{"duplicate key in data", change("data", `{"amount":"1","amount":"1","currency":"EUR"}`), "twice"},
		{"duplicate unknown key", change("data", `{"a":1,"a":1,"amount":"1","currency":"EUR"}`), "twice"},
		{"duplicate key in an unknown field", strings.Replace(change(), "{", `{"x":[{"y":{"a":1,"a":2}}],`, 1), "twice"},
		{"duplicate key under an ignorable type", change("eventType", `"AccountRenamed"`, "data", `{"a":1,"a":1}`), "twice"},
		{"invalid UTF-8 in an id", change("eventId", "\"\xff\""), "invalid UTF-8"},
		{"invalid UTF-8 in a key", strings.Replace(change(), "{", "{\"\xc3\":1,", 1), "invalid UTF-8"},
		{"invalid UTF-8 in an unknown field", strings.Replace(change(), "{", "{\"x\":\"\xed\xa0\x80\",", 1), "invalid UTF-8"},
		{"lone high surrogate", change("eventId", `"\ud800"`), "surrogate"},
		{"lone low surrogate", change("eventId", `"\udc00"`), "surrogate"},
		{"high surrogate before a letter", change("eventId", `"\ud800x"`), "surrogate"},
		{"two high surrogates", change("eventId", `"\ud800\ud800"`), "surrogate"},
		{"lone surrogate in an unknown field", strings.Replace(change(), "{", `{"x":["\udfff"],`, 1), "surrogate"},
		{"lone surrogate in a key", strings.Replace(change(), "{", `{"\ud800":1,`, 1), "surrogate"},
		{"unknown escape", change("eventId", `"\x41"`), "escape"},
		{"control character", change("eventId", "\"a\nb\""), "not valid JSON"},
		{"leading zero", change("version", "017"), "not valid JSON"},
		{"plus sign", change("version", "+17"), "not valid JSON"},
		{"NaN", change("version", "NaN"), "not valid JSON"},
		{"single quotes", strings.ReplaceAll(change(), `"`, `'`), "not valid JSON"},
		{"trailing comma", strings.TrimSuffix(change(), "}") + ",}", "not valid JSON"},
		{"leading comma", "{," + change()[1:], "not valid JSON"},
		{"two commas", strings.Replace(change(), ",", ",,", 1), "not valid JSON"},
		{"comma for a colon", strings.Replace(change(), ":", ",", 1), "not valid JSON"},
		{"no comma", strings.Replace(change(), ",", " ", 1), "not valid JSON"},
		{"only a comma", "{,}", "not valid JSON"},
		{"vertical tab behind", change() + "\v", "follows the object"},
		{"comment", change() + "// done", "follows the object"},
		{"key without quotes", strings.Replace(change(), `"eventId"`, `eventId`, 1), "not valid JSON"},
		{"number as a key", `{1:2}`, "not valid JSON"},
		{"object as a key", `{{}:2}`, "not valid JSON"},
		{"nested beyond measure", change("data", strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)), "not valid JSON"},
	}
	f := event.NewJSON(options)
	header := event.Header{Key: "correlationId", Value: []byte("h-1")}
	for _, tt := range tests {
		d := decode(f, tt.value, header)
		if d.Identity != event.Unidentified || d.Skip || d.Tombstone || d.Fault == nil ||
			d.Fault.Class != event.MalformedPayload || d.Fault.Field != "" || !strings.Contains(d.Fault.Error(), tt.reason) {
			t.Errorf("%s: %v, fault %+v; want malformed_payload with %q", tt.name, d.Identity, d.Fault, tt.reason)
		}
		if d.Event != (event.Event{CorrelationID: "h-1"}) {
			t.Errorf("%s: a broken document has fields: %+v", tt.name, d.Event)
		}
	}
}
