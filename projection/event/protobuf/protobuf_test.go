package protobuf_test

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"projector/projection/event"
	"projector/projection/event/protobuf"
)

const file = `syntax = "proto3";
package bank;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "confluent/type/decimal.proto";
import "confluent/meta.proto";
import "common/money.proto";

enum Kind { KIND_UNKNOWN = 0; AccountOpened = 1; FundsCredited = 2; FundsDebited = 3; AccountClosed = 4; }

message Event {
  option (confluent.message_meta) = { doc: "an event" };
  string event_id = 1;
  Kind event_type = 2;
  string accountId = 3;
  oneof order { int64 version = 4; }
  google.protobuf.Timestamp occurred_at = 5;
  google.protobuf.StringValue correlation_id = 6;
  Data data = 7;
  message Data {
    confluent.type.Decimal amount = 1;
    string currency = 2;
  }
}

message Plain {
  string event_id = 1;
  string event_type = 2;
  string account_id = 3;
  uint64 version = 4;
  string occurred_at = 5;
  string correlation_id = 6;
  common.Money data = 7;
}

message Odd {
  bytes event_id = 1;
  repeated string event_type = 2;
  google.protobuf.UInt64Value version = 4;
  double occurred_at = 5;
  map<string, string> data = 7;
}
`

const money = `syntax = "proto2"; package common; message Money { optional string amount = 1; required string currency = 2; }`

func format(t testing.TB, opts event.Options) event.Format {
	t.Helper()
	records, err := event.NewRecords(opts)
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	s, err := protobuf.Compile(file, map[string]string{"common/money.proto": money}, &tree)
	if err != nil {
		t.Fatal(err)
	}
	return records.Format(s)
}

func decode(f event.Format, value []byte) event.Decoded {
	d := event.Decoded{Skip: true, Fault: &event.Fault{}}
	f.Decode(event.Message{Value: value}, &d)
	return d
}

// path encodes the indexes that identify a message type in its file.
func path(indexes ...int64) []byte {
	b := binary.AppendVarint(nil, int64(len(indexes)))
	for _, i := range indexes {
		b = binary.AppendVarint(b, i)
	}
	return b
}

func text(b []byte, n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func number(b []byte, n protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
}

func message(b []byte, n protowire.Number, inner []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), inner)
}

var at = time.Date(2026, 1, 1, 0, 0, 0, 123_456_789, time.UTC)

// The function credit returns an encoded Event with the given encoded fields appended.
func credit(more ...[]byte) []byte {
	b := text(nil, 1, "e-1")
	b = number(b, 2, 2)
	b = text(b, 3, "acc-1")
	b = number(b, 4, 17)
	b = message(b, 5, number(number(nil, 1, at.Unix()), 2, int64(at.Nanosecond())))
	b = message(b, 6, text(nil, 1, "c-1"))
	b = message(b, 7, text(message(nil, 1, number(text(nil, 1, "\x04\x01"), 3, 2)), 2, "EUR"))
	for _, m := range more {
		b = append(b, m...)
	}
	return b
}

func plain(version int64, amount, currency string) []byte {
	b := text(text(text(nil, 1, "e-1"), 2, "FundsCredited"), 3, "acc-1")
	b = text(number(b, 4, version), 5, "2026-01-01T00:00:00.123456Z")
	data := text(nil, 1, amount)
	if currency != "" {
		data = text(data, 2, currency)
	}
	return message(b, 7, data)
}

func TestEvents(t *testing.T) {
	f := format(t, event.Options{FirstVersion: 1})
	want := decode(f, append(path(), credit()...)).Event
	if want.ID != "e-1" || want.AccountID != "acc-1" || want.CorrelationID != "c-1" || want.Version != 17 || want.Amount != 1025 ||
		want.Currency.Code() != "EUR" || want.OccurredAt != at.UnixMicro() || want.TypeName != "FundsCredited" {
		t.Fatalf("%+v", want)
	}
	for name, value := range map[string][]byte{
		"index of the first message": append(path(0), credit()...),
		"unknown fields":             append(path(), credit(number(nil, 100, 5), text(nil, 101, "x"))...),
		"the last of a field counts": append(path(), append(text(nil, 1, "other"), credit()...)...),
	} {
		if d := decode(f, value); d.Fault != nil || d.Event != want {
			t.Errorf("%s: %+v, fault %v", name, d.Event, d.Fault)
		}
	}
	want.CorrelationID = ""
	if d := decode(f, append(path(1), plain(17, "10.25", "EUR")...)); d.Fault != nil || d.Event != want {
		t.Errorf("another message of the file: %+v, fault %v", d.Event, d.Fault)
	}
	closed := number(credit(), 2, 4)
	if d := decode(f, append(path(), closed...)); d.Fault != nil || d.Event.Type != event.TypeNamed("AccountClosed") {
		t.Errorf("closed: %+v, fault %v", d.Event, d.Fault)
	}
}

// Producers that write several event types into a topic may have a message for each type. The name
// of the message is then the type.
func TestTheNameOfTheMessageIsTheType(t *testing.T) {
	types := map[string]event.Type{
		"bank.Event": event.TypeNamed("FundsCredited"), "bank.Plain": event.TypeNamed("FundsDebited"),
		"bank.Event.Data": event.TypeNamed("FundsCredited"), "common.Money": event.TypeNamed("FundsDebited"),
	}
	for _, inside := range [][]string{nil, {"data"}} {
		f := format(t, event.Options{FirstVersion: 1, Mapping: event.Mapping{
			Types: types, Fields: map[event.Field]event.FieldPath{event.FieldEventType: {Record: true, Path: inside}},
		}})
		for want, value := range map[string][]byte{
			"FundsCredited": append(path(), credit()...),
			"FundsDebited":  append(path(1), plain(17, "10.25", "EUR")...),
		} {
			if d := decode(f, value); d.Fault != nil || d.Event.TypeName != want || d.Event.Amount != 1025 {
				t.Errorf("name of the message at %q: %+v, fault %v; want %s", inside, d.Event, d.Fault, want)
			}
		}
	}
}

// withOneof is a schema with one message for all events and a oneof of their contents, as many
// producers write it.
const withOneof = `syntax = "proto2"; package bank;
	message Event { optional string event_id = 1; optional string account = 2; optional int64 version = 3; optional string at = 4;
		oneof content { Money opened = 10; Money credited = 11; Fee fee = 12; string note = 13; group Closing = 15 { optional string reason = 1; } }
		oneof amount { string plain = 16; string signed = 17; } optional string kind = 18;
		oneof eventMoney { Money paid = 20; } optional string event_money = 21; }
	message Money { optional string amount = 1; optional string currency = 2; optional string reversal = 3; }
	message Fee { optional string currency = 1; optional string amount = 2; }`

// oneofMapping returns a mapping for withOneof, with some fields replaced.
func oneofMapping(fields map[event.Field]event.FieldPath) event.Mapping {
	all := map[event.Field]event.FieldPath{
		event.FieldEventID: {Path: []string{"eventId"}}, event.FieldAccountID: {Path: []string{"account"}}, event.FieldOccurredAt: {Path: []string{"at"}},
		event.FieldEventType: {Record: true, Path: []string{"content"}}, event.FieldData: {Path: []string{"content"}},
	}
	maps.Copy(all, fields)
	return event.Mapping{Fields: all, Types: map[string]event.Type{
		"opened": event.TypeNamed("AccountOpened"), "credited": event.TypeNamed("FundsCredited"), "fee": event.TypeNamed("FundsDebited"),
		"closing": event.TypeNamed("AccountClosed"), "note": event.Ignorable,
		"credited/": event.TypeNamed("FundsCredited"), "credited/yes": event.TypeNamed("FundsDebited"), "e-1": event.TypeNamed("FundsCredited"), "paid": event.TypeNamed("FundsCredited"),
	}}
}

func oneofFormat(t *testing.T, m event.Mapping) event.Format {
	t.Helper()
	records, err := event.NewRecords(event.Options{FirstVersion: 1, Mapping: m})
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	s, err := protobuf.Compile(withOneof, nil, &tree)
	if err != nil {
		t.Fatal(err)
	}
	return records.Format(s)
}

// oneofHead returns an encoded Event of withOneof without content.
func oneofHead() []byte {
	return text(number(text(text(path(), 1, "e-1"), 2, "acc-1"), 3, 7), 4, "2026-01-01T00:00:00Z")
}

func TestTheFieldThatIsSetIsTheType(t *testing.T) {
	f := oneofFormat(t, oneofMapping(nil))
	euros := text(text(nil, 1, "10.25"), 2, "EUR")
	for name, tt := range map[string]struct {
		content []byte
		want    string
		amount  int64
	}{
		"opened":                 {message(nil, 10, euros), "AccountOpened", 0},
		"credited":               {message(nil, 11, euros), "FundsCredited", 1025},
		"another message type":   {message(nil, 12, text(text(nil, 1, "JPY"), 2, "10")), "FundsDebited", 10},
		"the last one counts":    {message(message(nil, 12, text(text(nil, 1, "JPY"), 2, "10")), 11, euros), "FundsCredited", 1025},
		"none after another one": {message(text(nil, 13, "x"), 11, euros), "FundsCredited", 1025},
		"a text":                 {text(message(nil, 11, euros), 13, "x"), "note", 0},
		"parts of one message":   {message(message(nil, 11, text(nil, 1, "10.25")), 11, text(nil, 2, "EUR")), "FundsCredited", 1025},
		"a group":                {append(message(nil, 11, euros), 15<<3|3, 15<<3|4), "AccountClosed", 0},
		"an unknown field":       {text(message(nil, 11, euros), 99, "x"), "FundsCredited", 1025},
		"of another wire type":   {number(message(nil, 11, euros), 12, 5), "FundsCredited", 1025},
	} {
		d := decode(f, slices.Concat(oneofHead(), tt.content))
		if e := d.Event; d.Fault != nil || e.TypeName != tt.want || e.Amount != tt.amount {
			t.Errorf("%s: %+v, fault %v", name, d.Event, d.Fault)
		}
	}
	for name, tt := range map[string]struct {
		content []byte
		field   string
	}{
		"none is set":          {nil, "name of the record content"},
		"only an unknown one":  {text(nil, 99, "x"), "name of the record content"},
		"empty":                {message(nil, 11, nil), "content.amount"},
		"emptied by the next":  {message(message(nil, 11, euros), 12, nil), "content.amount"},
		"parts around another": {message(message(message(nil, 11, text(nil, 1, "10.25")), 12, euros), 11, text(nil, 2, "EUR")), "content.amount"},
	} {
		if d := decode(f, slices.Concat(oneofHead(), tt.content)); d.Fault == nil || d.Fault.Field != tt.field || d.Fault.Class != event.MalformedPayload {
			t.Errorf("%s: %+v, fault %v", name, d.Event, d.Fault)
		}
	}
}

// A mapping may want a oneof and also a field of it, or a field by two names. Each of them is read.
func TestAFieldThatIsWantedTwice(t *testing.T) {
	optional := func(names ...string) event.FieldPath { return event.FieldPath{Path: names, Optional: true} }
	euros := text(text(nil, 1, "10.25"), 2, "EUR")
	joined := event.FieldPath{Separator: '/', Join: []event.FieldPath{{Record: true, Path: []string{"content"}}, optional("credited", "reversal")}}
	for name, tt := range map[string]struct {
		fields  map[event.Field]event.FieldPath
		content []byte
		want    event.Event
	}{
		"a oneof and its field": {
			map[event.Field]event.FieldPath{event.FieldEventType: joined}, message(nil, 11, euros), event.Event{TypeName: "FundsCredited"},
		},
		"a reversal": {
			map[event.Field]event.FieldPath{event.FieldEventType: joined}, message(nil, 11, text(euros, 3, "yes")), event.Event{TypeName: "FundsDebited"},
		},
		"by the name and the JSON name": {
			map[event.Field]event.FieldPath{event.FieldEventType: {Path: []string{"event_id"}}}, message(nil, 11, euros), event.Event{TypeName: "FundsCredited"},
		},
		"the correlation id by both": {
			map[event.Field]event.FieldPath{event.FieldCorrelationID: {Path: []string{"event_id"}}},
			message(nil, 11, euros),
			event.Event{TypeName: "FundsCredited", CorrelationID: "e-1"},
		},
	} {
		d := decode(oneofFormat(t, oneofMapping(tt.fields)), slices.Concat(oneofHead(), tt.content))
		if e := d.Event; d.Fault != nil || e.TypeName != tt.want.TypeName || e.Amount != 1025 || e.ID != "e-1" || e.CorrelationID != tt.want.CorrelationID {
			t.Errorf("%s: %+v, fault %v", name, d.Event, d.Fault)
		}
	}
}

// The name of a oneof may be the JSON name of a field. Its own name counts.
func TestAOneofIsFoundByItsName(t *testing.T) {
	f := oneofFormat(t, oneofMapping(map[event.Field]event.FieldPath{
		event.FieldEventType: {Record: true, Path: []string{"eventMoney"}}, event.FieldData: {Path: []string{"eventMoney"}},
	}))
	d := decode(f, message(text(oneofHead(), 21, "x"), 20, text(text(nil, 1, "10.25"), 2, "EUR")))
	if d.Fault != nil || d.Event.TypeName != "FundsCredited" || d.Event.Amount != 1025 {
		t.Errorf("%+v, fault %v", d.Event, d.Fault)
	}
}

// The fields of a oneof may have different units or signs, so no amount is read from the oneof.
func TestAOneofIsNoAmount(t *testing.T) {
	f := oneofFormat(t, oneofMapping(map[event.Field]event.FieldPath{
		event.FieldData: {}, event.FieldCurrency: {Constant: "EUR"}, event.FieldEventType: {Path: []string{"kind"}},
	}))
	for _, field := range []protowire.Number{16, 17} {
		d := decode(f, text(text(oneofHead(), 18, "credited"), field, "10.25"))
		if d.Fault == nil || d.Fault.Class != event.MalformedPayload || d.Fault.Field != "amount" {
			t.Errorf("field %d: %+v, fault %v", field, d.Event, d.Fault)
		}
	}
}

// No currency has the number 0, so a number without presence is no currency if it is 0.
func TestNumericCurrencies(t *testing.T) {
	records, err := event.NewRecords(event.Options{FirstVersion: 1, Mapping: event.Mapping{
		Currency: event.CurrencyNumeric,
		Fields:   map[event.Field]event.FieldPath{event.FieldCurrency: {Path: []string{"currency"}, Written: event.WrittenInteger}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	for _, kind := range []string{"int32", "uint32", "optional int32"} {
		s, err := protobuf.Compile(`syntax = "proto3"; message Event { string event_id = 1; string event_type = 2; string account_id = 3; int64 version = 4;
			string occurred_at = 5; Data data = 7; message Data { string amount = 1; `+kind+` currency = 2; } }`, nil, &tree)
		if err != nil {
			t.Fatal(err)
		}
		f := records.Format(s)
		head := func(kind string) []byte {
			return text(number(text(text(text(path(), 1, "e-1"), 2, kind), 3, "acc-1"), 4, 17), 5, "2026-01-01T00:00:00Z")
		}
		if d := decode(f, message(head("AccountClosed"), 7, nil)); d.Fault != nil || !d.Event.Currency.IsZero() {
			t.Errorf("%s: closed without a currency: %+v, fault %v", kind, d.Event, d.Fault)
		}
		if d := decode(f, message(head("FundsCredited"), 7, text(nil, 1, "1"))); d.Fault == nil || d.Fault.Class != event.MalformedPayload || d.Fault.Field != "data.currency" {
			t.Errorf("%s: credited without a currency: %+v, fault %v", kind, d.Event, d.Fault)
		}
		if d := decode(f, message(head("FundsCredited"), 7, number(text(nil, 1, "1"), 2, 978))); d.Fault != nil || d.Event.Currency.Code() != "EUR" {
			t.Errorf("%s: credited: %+v, fault %v", kind, d.Event, d.Fault)
		}
	}
}

// A number without presence is 0 if it is missing. No producer has an account, an event or a time of
// that number, but a version and a part of an id may be 0.
func TestMissingNumbers(t *testing.T) {
	integer := func(name string) event.FieldPath {
		return event.FieldPath{Path: []string{name}, Written: event.WrittenInteger}
	}
	fields := map[event.Field]event.FieldPath{
		event.FieldEventID: integer("id"), event.FieldAccountID: integer("account"), event.FieldCorrelationID: integer("trace"), event.FieldOccurredAt: {Path: []string{"at"}},
	}
	joined := maps.Clone(fields)
	joined[event.FieldAccountID] = event.FieldPath{Separator: '/', Join: []event.FieldPath{integer("branch"), integer("account")}}
	for name, tt := range map[string]struct {
		fields map[event.Field]event.FieldPath
		unset  protowire.Number
		field  string // of the fault; empty if there is none
		want   event.Event
	}{
		"all is set":        {fields, 0, "", event.Event{ID: "1", AccountID: "3", CorrelationID: "6"}},
		"no event id":       {fields, 1, "id", event.Event{}},
		"no account":        {fields, 3, "account", event.Event{}},
		"no version":        {fields, 4, "", event.Event{ID: "1", AccountID: "3", CorrelationID: "6"}},
		"no time":           {fields, 5, "at", event.Event{}},
		"no correlation id": {fields, 6, "", event.Event{ID: "1", AccountID: "3"}},
		"no branch":         {joined, 8, "", event.Event{ID: "1", AccountID: "0/3", CorrelationID: "6"}},
	} {
		records, err := event.NewRecords(event.Options{Mapping: event.Mapping{Fields: tt.fields, Time: event.Milliseconds}})
		if err != nil {
			t.Fatal(err)
		}
		tree := records.Tree()
		s, err := protobuf.Compile(`syntax = "proto3"; message Event { int64 id = 1; string event_type = 2; uint32 account = 3; sint64 version = 4; fixed64 at = 5;
			int32 trace = 6; int64 branch = 8; }`, nil, &tree)
		if err != nil {
			t.Fatal(err)
		}
		value := text(path(), 2, "AccountClosed")
		for _, n := range []protowire.Number{1, 3, 4, 6, 8} {
			if n != tt.unset {
				value = number(value, n, int64(n))
			}
		}
		if tt.unset != 5 {
			value = protowire.AppendFixed64(protowire.AppendTag(value, 5, protowire.Fixed64Type), 1767225600000)
		}
		d := decode(records.Format(s), value)
		switch e := d.Event; {
		case tt.field == "" && (d.Fault != nil || e.ID != tt.want.ID || e.AccountID != tt.want.AccountID || e.CorrelationID != tt.want.CorrelationID):
			t.Errorf("%s: %+v, fault %v", name, e, d.Fault)
		case tt.field != "" && (d.Fault == nil || d.Fault.Field != tt.field || d.Fault.Class != event.MalformedPayload):
			t.Errorf("%s: %+v, fault %v; want one of %s", name, e, d.Fault, tt.field)
		}
	}
}

func TestFaults(t *testing.T) {
	f := format(t, event.Options{FirstVersion: 1})
	for name, tt := range map[string]struct {
		value []byte
		class event.Class
		field string
	}{
		"empty":                         {nil, event.MalformedPayload, ""},
		"no message of that index":      {append(path(3), credit()...), event.MalformedPayload, ""},
		"negative index":                {append(path(-1), credit()...), event.MalformedPayload, ""},
		"negative count":                {append(binary.AppendVarint(nil, -1), credit()...), event.MalformedPayload, ""},
		"endless path":                  {binary.AppendVarint(nil, math.MaxInt64), event.MalformedPayload, ""},
		"path into a message":           {path(0, 0), event.MalformedPayload, "eventId"}, // selects Event.Data
		"path too deep":                 {append(path(0, 0, 0), credit()...), event.MalformedPayload, ""},
		"cut":                           {append(path(), credit()[:40]...), event.MalformedPayload, ""},
		"text that is not UTF-8":        {append(path(1), plain(17, "10.25", "\xff")...), event.MalformedPayload, ""},
		"nothing set":                   {path(), event.MalformedPayload, "eventId"},
		"first value of an enum":        {append(path(), number(credit(), 2, 0)...), event.MalformedPayload, "eventType"},
		"unknown value of an enum":      {append(path(), number(credit(), 2, 9)...), event.MalformedPayload, "eventType"},
		"version 0":                     {append(path(1), plain(0, "1", "EUR")...), event.MalformedPayload, "version"},
		"version beyond 63 bits":        {append(path(1), plain(-1, "1", "EUR")...), event.MalformedPayload, "version"},
		"nanos out of range":            {append(path(), credit(message(nil, 5, number(nil, 2, -1)))...), event.MalformedPayload, "occurredAt"},
		"time out of range":             {append(path(), credit(message(nil, 5, number(nil, 1, math.MaxInt64)))...), event.MalformedPayload, "occurredAt"},
		"no amount":                     {append(path(1), plain(17, "", "EUR")...), event.InvalidAmount, "data.amount"},
		"no currency":                   {append(path(1), plain(17, "1", "")...), event.MalformedPayload, "data.currency"},
		"negative decimal":              {append(path(), credit(message(nil, 7, message(nil, 1, text(nil, 1, "\xff"))))...), event.InvalidAmount, "data.amount"},
		"negative scale":                {append(path(), credit(message(nil, 7, message(nil, 1, number(nil, 3, -1))))...), event.MalformedPayload, "data.amount"},
		"bytes for an id":               {append(path(2), text(nil, 1, "e-1")...), event.MalformedPayload, "eventId"},
		"another currency than any set": {append(path(1), plain(17, "1", "XXX")...), event.UnsupportedCurrency, "data.currency"},
	} {
		value := tt.value
		if value == nil {
			value = []byte{}
		}
		if d := decode(f, value); d.Fault == nil || d.Fault.Class != tt.class || d.Fault.Field != tt.field {
			t.Errorf("%s: %+v, fault %v; want %s of %q", name, d.Event, d.Fault, tt.class, tt.field)
		}
	}
}

// A message type with the name of a well-known type but with other fields is read like any other
// message type.
func TestTypesWithAKnownNameButOtherFields(t *testing.T) {
	records, err := event.NewRecords(event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	s, err := protobuf.Compile(`syntax = "proto2"; package google.protobuf;
		message Event { optional Timestamp occurredAt = 1; optional StringValue eventId = 2; optional Int64Value version = 3; }
		message Timestamp { optional string seconds = 1; } message StringValue { repeated string value = 1; } message Int64Value {}`, nil, &tree)
	if err != nil {
		t.Fatal(err)
	}
	value := message(message(message(path(), 1, nil), 2, nil), 3, nil)
	if d := decode(records.Format(s), value); d.Fault == nil || d.Fault.Class != event.MalformedPayload {
		t.Errorf("%+v, fault %v", d.Event, d.Fault)
	}
}

// Confluent's Java serializer registers no reference for the files of google/type, because its
// registry has them. A file of the registry with the same path is used instead.
func TestGoogleTypesNeedNoReference(t *testing.T) {
	records, err := event.NewRecords(event.Options{Mapping: event.Mapping{
		Fields: map[event.Field]event.FieldPath{
			event.FieldAmount: {Path: []string{"price", "units"}}, event.FieldCurrency: {Path: []string{"price", "currency_code"}},
		},
		Amount: event.AmountShape{Form: event.AmountUnits, Nanos: []string{"price", "nanos"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	imports := ""
	for _, name := range []string{
		"calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction", "interval", "latlng", "money", "month",
		"phone_number", "postal_address", "quaternion", "timeofday",
	} {
		imports += `import "google/type/` + name + `.proto"; `
	}
	s, err := protobuf.Compile(`syntax = "proto3"; `+imports+`
		message Event { string eventId = 1; string eventType = 2; string accountId = 3; int64 version = 4; string occurredAt = 5; Data data = 7; }
		message Data { google.type.Money price = 1; google.type.PostalAddress merchant = 2; google.type.DateTime at = 3; google.type.Month month = 4; }`, nil, &tree)
	if err != nil {
		t.Fatal(err)
	}
	price := number(number(text(nil, 1, "EUR"), 2, 10), 3, 250_000_000)
	value := message(append(path(), plain(17, "", "")...), 7, message(nil, 1, price))
	if d := decode(records.Format(s), value); d.Fault != nil || d.Event.Amount != 1025 || d.Event.Currency.Code() != "EUR" {
		t.Errorf("%+v, fault %v", d.Event, d.Fault)
	}
	const other = `syntax = "proto3"; package google.type; message Other { string id = 1; }`
	if _, err := protobuf.Compile(`syntax = "proto3"; import "google/type/money.proto"; message Event { google.type.Other eventId = 1; }`,
		map[string]string{"google/type/money.proto": other}, &tree); err != nil {
		t.Errorf("with the registry's own file: %v", err)
	}
}

func TestSchemasThatCannotBeUsed(t *testing.T) {
	records, err := event.NewRecords(event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	for _, schema := range []string{`message`, `syntax = "proto3"; import "missing.proto";`, `syntax = "proto3"; message A { B b = 1; }`} {
		if _, err := protobuf.Compile(schema, nil, &tree); err == nil {
			t.Errorf("%s is accepted", schema)
		}
	}
	s, err := protobuf.Compile(`syntax = "proto3";`, nil, &tree)
	if err != nil {
		t.Fatal(err)
	}
	if d := decode(records.Format(s), path()); d.Fault == nil {
		t.Errorf("a message of a file without messages: %+v", d)
	}
}

func BenchmarkDecode(b *testing.B) {
	f := format(b, event.Options{FirstVersion: 1})
	m := event.Message{Value: append(path(), credit()...)}
	b.ReportAllocs()
	var d event.Decoded
	for b.Loop() {
		f.Decode(m, &d)
	}
	if d.Fault != nil {
		b.Fatal(d.Fault)
	}
}
