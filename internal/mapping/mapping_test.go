package mapping_test

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"projector/internal/mapping"
	"projector/projection/event"
)

const whole = `# how the cards team names things
eventTypes:
  MoneyDeposited: FundsCredited
  InterestPaid: FundsCredited
  MoneyWithdrawn: FundsDebited
  CardIssued: ignored
fields:
  version: meta.seq
  accountId: {key: true}
  correlationId:
    header: x-trace-id
  data: ""
  amount: [value, the.amount]
  currency: 978
`

func TestParse(t *testing.T) {
	want := event.Mapping{
		Types: map[string]event.Type{
			"MoneyDeposited": event.TypeNamed("FundsCredited"), "InterestPaid": event.TypeNamed("FundsCredited"),
			"MoneyWithdrawn": event.TypeNamed("FundsDebited"), "CardIssued": event.Ignorable,
		},
		Fields: map[event.Field]event.FieldPath{
			event.FieldVersion:       {Path: []string{"meta", "seq"}},
			event.FieldAccountID:     {Key: true},
			event.FieldCorrelationID: {Header: "x-trace-id"},
			event.FieldData:          {},
			event.FieldAmount:        {Path: []string{"value", "the.amount"}},
			event.FieldCurrency:      {Path: []string{"978"}},
		},
	}
	for name, text := range map[string]string{
		"YAML": whole,
		"JSON": "{\n\t\"eventTypes\": {\"MoneyDeposited\": \"FundsCredited\", \"InterestPaid\": \"FundsCredited\",\n" +
			"\t\t\"MoneyWithdrawn\": \"FundsDebited\", \"CardIssued\": \"ignored\"},\n" +
			"\t\"fields\": {\"version\": \"meta.seq\", \"accountId\": {\"key\": true}, \"correlationId\": {\"header\": \"x-trace-id\"},\n" +
			"\t\t\"data\": \"\", \"amount\": [\"value\", \"the.amount\"], \"currency\": \"978\"}\n}\n",
	} {
		m, err := mapping.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(m.Mapping, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, m.Mapping, want)
		}
	}
}

func TestParseTimes(t *testing.T) {
	for text, want := range map[string]event.TimeUnit{"s": event.Seconds, "s.fraction": event.SecondsWithFraction, "ms": event.Milliseconds, "us": event.Microseconds, "ns": event.Nanoseconds, "date": event.Date, "rfc3339": event.RFC3339} {
		m, err := mapping.Parse([]byte("fields:\n  occurredAt: {path: meta.ts, unit: " + text + "}\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if place := m.Fields[event.FieldOccurredAt]; m.Time != want || len(place.Path) != 2 {
			t.Errorf("%s: unit %s, place %+v", text, m.Time, place)
		}
	}
	m, err := mapping.Parse([]byte("fields:\n  occurredAt: {unit: s}\n  amount: {path: a.b}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, moved := m.Fields[event.FieldOccurredAt]; moved || m.Time != event.Seconds || len(m.Fields[event.FieldAmount].Path) != 2 {
		t.Errorf("%+v", m.Mapping)
	}
}

func TestParseNamesTheLine(t *testing.T) {
	tests := []struct {
		name, text string
		says       []string
	}{
		{"empty", "", []string{"line 1", "empty"}},
		{"comment only", "# nothing\n", []string{"line 1"}},
		{"a list", "- a\n", []string{"line 1", "table"}},
		{"broken", "fields:\n  version: [a\n", []string{"line 2, column 1: did not find"}},
		{"broken in the first line", "fields: [a", []string{"line 1, column 1: did not find"}},
		{"broken at the end", "{\"fields\": {\n \"a\": [1,\n", []string{"line 2, column 1: did not find"}},
		{"tab", "fields:\n\tversion: a\n", []string{"line 2"}},
		{"unknown table", "fields: {}\ntypes: {}\n", []string{"line 2", `"types"`, "eventTypes"}},
		{"table is text", "eventTypes: all\n", []string{"line 1", "eventTypes", "table"}},
		{"table is empty", "fields:\n", []string{"line 1", "fields", "table"}},
		{"unknown type", "eventTypes:\n  A: FundsCredited\n  B: FundsMoved\n", []string{"line 3", "B", "FundsCredited"}},
		{"type is a list", "eventTypes:\n  A: [FundsCredited]\n", []string{"line 2", "A"}},
		{"type twice", "eventTypes:\n  A: FundsCredited\n  A: FundsDebited\n", []string{"line 3", `"A"`, "line 2"}},
		{"unknown field", "fields:\n  sequence: seq\n", []string{"line 2", `"sequence"`, "version"}},
		{"field twice", `{"fields": {"version": "a",` + "\n" + `"version": "b"}}`, []string{"line 2", "version", "line 1"}},
		{"no place", "fields:\n  version:\n", []string{"line 2", "version"}},
		{"empty path", "fields:\n  version: ''\n", []string{"line 2", "version"}},
		{"unknown source", "fields:\n  version: {heder: seq}\n", []string{"line 2", "version", "header"}},
		{"no header", "fields:\n  version: {header: }\n", []string{"line 2", "version"}},
		{"key: false", "fields:\n  accountId: {key: false}\n", []string{"line 2", "accountId"}},
		{"unknown unit", "fields:\n  occurredAt: {path: ts, unit: minutes}\n", []string{"line 2", "occurredAt", "date"}},
		{"unit of an id", "fields:\n  eventId: {path: id, unit: ms}\n", []string{"line 2", "eventId", "PATH"}},
		{"list of lists", "fields:\n  amount:\n  - [a]\n", []string{"line 3", "amount"}},
		{"a scale in octal, or not", "fields:\n  amount:\n    scale: 010\n", []string{"line 3, column 12", "scale: must be a number of decimals from 0 to 18, such as 4"}},
		{"zeros of an integer", "fields:\n  amount: {scale: 4,\n    zeros: dropped}\n", []string{"line 3", "amount: zeros"}},
		{"zeros of minor units", "fields:\n  amount: {unit: minor, zeros: refused}\n", []string{"line 2", "amount: zeros"}},
		{"zeros of units", "fields:\n  amount: {units: a, nanos: b, zeros: dropped}\n", []string{"line 2", "amount: units and nanos have no"}},
		{"another word for zeros", "fields:\n  amount: {zeros: kept}\n", []string{"line 2", "zeros: refused or dropped"}},
		{"alias", "fields:\n  eventId: &a id\n  version: *a\n", []string{"line 3", "version"}},
		{
			"several", "eventTypes:\n  A: B\n  C: D\nfields:\n  sequence: seq\n  version: {heder: seq}\nmore: 1\n",
			[]string{"line 2, column 6: eventTypes: A", "\nline 3, column 6: eventTypes: C", "\nline 5, column 3: fields", "\nline 6, column 13: fields: version", "\nline 7, column 1: \"more\""},
		},
		{"the name of a record as an id", "fields:\n  accountId: {record: true}\n", []string{"line 2", "accountId", "record"}},
		{"type of another field", "fields:\n  version: {path: a, type: boolean}\n", []string{"line 2", "fields: version: type", "of an event type, boolean"}},
		{"tagged", "fields:\n  eventId: !!binary aGk=\n", []string{"line 2", "fields: eventId", "must be a path"}},
		{"constant in small letters", "fields:\n  currency: {constant: eur}\n", []string{"line 2", "currency: constant", "EUR"}},
		{"constant of the other case", "fields:\n  currency: {constant: EUR, case: lower}\n", []string{"line 2", "currency: constant", "eur"}},
		{"a case of a number", "fields:\n  currency: {code: numeric, case: lower}\n", []string{"line 2", "currency: case is for letters"}},
		{"a number as constant", "fields:\n  currency: {code: numeric, constant: 978}\n", []string{"line 2", "currency: constant: must be letters"}},
		{"an integer without its code", "fields:\n  currency: {type: integer}\n", []string{"line 2", "currency: type", "code: numeric"}},
		{"another type of a code", "fields:\n  currency: {code: numeric, type: number}\n", []string{"line 2", "code: alphabetic or numeric, and type: integer"}},
		{"no such constant", "fields:\n  currency: {case: lower, constant: xxx}\n", []string{"line 2", "currency: constant", "ISO 4217"}},
		{"NUL", "fields:\n  version: é\x00\n", []string{"line 2, column 13: control characters"}},
		{"not UTF-8", "\ufefffields:\n  version: a\n  eventId: \xff\n", []string{"line 3, column 12: ", "UTF-8"}},
		{"two documents", "fields: {}\n---\nfields: {}\n", []string{"line 2", "second"}},
	}
	for _, tt := range tests {
		m, err := mapping.Parse([]byte(tt.text))
		if err == nil {
			t.Errorf("%s: read as %+v", tt.name, m)
			continue
		}
		for _, text := range tt.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q does not say %q", tt.name, err, text)
			}
		}
	}
}

// An option that a format does not support is detected only when the format is created. The error
// must still name the line of the mapping file.
func TestLocateNamesTheLineOfAConflict(t *testing.T) {
	tests := []struct{ name, format, text, line string }{
		{"two fields in one place", "json", "fields:\n  eventId: id\n  version: id\n", "line 3, column 3: version"},
		{"the place of another field", "json", "fields:\n  eventId: version\n", "line 2, column 3: eventId"},
		{"inside of another field", "json", "fields:\n  eventId: version.id\n", "line 2, column 3: eventId"},
		{"around another field", "json", "fields:\n\n  eventId: a.b\n  version: a\n", "line 4, column 3: version"},
		{"an empty name", "json", "fields:\n  eventId: a..b\n", "line 2, column 3: eventId"},
		{"an empty list", "json", "fields:\n  eventId: []\n", "line 2, column 3: eventId"},
		{"data in a header", "json", "fields:\n  data:\n    path: a\n  amount: {header: a, path: b..c}\n", "line 4, column 3: amount"},
		{"header and key", "json", "fields:\n  accountId: {header: a, key: true}\n", "line 2, column 3: accountId"},
		{"data without an amount of its own", "json", "fields:\n  amount: a\n  currency: a\n", "line 3, column 3: currency"},
		{"units and nanos in one place", "json", "fields:\n  amount: {units: a, nanos: a}\n", "line 2, column 3: amount: two fields"},
		{"nanos around the units", "json", "fields:\n  amount: {units: a.b, nanos: a}\n", "line 2, column 3: amount: "},
		{"an attribute with a point", "cloudevents", "fields:\n  version: meta.seq\n", "line 2, column 3: version"},
		{"an attribute that is known", "cloudevents", "fields:\n  version: specversion\n", "line 2, column 3: version"},
		{"data that is an attribute", "cloudevents", "fields:\n  data: body\n", "line 2, column 3: data"},
		{"several", "json", "fields:\n  amount: {header: a, outer: a}\n  eventId: a..b\n", "line 3, column 3: eventId: the path \"a..b\" has an empty name\nline 2, column 3: amount"},
		{"several in one place", "json", "fields:\n  eventId: a\n  version: a\n  accountId: a\n", "line 4, column 3: accountId: two fields are to be read from \"a\"\nline 3, column 3: version"},
		{"the name of a record in JSON", "json", "fields:\n  eventType: {record: true}\n", "line 2, column 3: eventType: is the name of a record"},
		{"the name of a record in escaped JSON", "avro", "envelope: {path: a, escaped: true}\nfields:\n  eventType: {record: true}\n", "line 3, column 3: eventType: is the name of a record"},
		{"a name with a type", "avro", "fields:\n  eventType: {record: true, type: text}\n", "line 2, column 3: eventType: is the name of a record"},
		{"a name and a header", "avro", "fields:\n  eventType: {record: true, header: a}\n", "line 2, column 3: eventType: can be in one place"},
		{"the name of the record of a text", "avro", "fields:\n  eventId: id\n  eventType: {record: true, path: id}\n", "line 3, column 3: eventType: two fields"},
		{"the name of a record twice", "avro", "fields:\n  eventType: {join: [{record: true, path: a}, kind, {record: true, path: a}], with: /}\n", "line 2, column 3: eventType: has the name of the same record twice"},
		{"flag and mapping", "debezium-outbox", "fields:\n  version: seq\n", "line 2, column 3: version"},
	}
	for _, tt := range tests {
		m, err := mapping.Parse([]byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		opts := event.Options{Mapping: m.Mapping, Debezium: event.DebeziumOptions{VersionHeader: "v"}}
		_, err = event.Places(tt.format, opts)
		if err == nil {
			t.Errorf("%s: accepted", tt.name)
			continue
		}
		if located := m.Locate(err); !strings.HasPrefix(located.Error(), tt.line) {
			t.Errorf("%s: %q, want it to begin with %q", tt.name, located, tt.line)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"fields":{"version":["a","b"]},"eventTypes":{"A":"ignored"}}`))
	f.Add([]byte("fields: {amount: {units: a, nanos: a}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := mapping.Parse(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Fatalf("no line: %v", err)
			}
			return
		}
		var n yaml.Node
		if err := yaml.Unmarshal(text, &n); err != nil || !allows(n.Content[0]) {
			t.Fatalf("read, and the schema does not allow it (%v)", err)
		}
		for _, format := range event.Formats() {
			if _, err := event.New(format, event.Options{Mapping: m.Mapping}); err != nil && !strings.HasPrefix(m.Locate(err).Error(), "line ") {
				t.Fatalf("%s: no line: %v", format, err)
			}
		}
	})
}
