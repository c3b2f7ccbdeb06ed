package protobuf_test

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"projector/projection/event"
	"projector/projection/event/protobuf"
)

// byLibrary reads the values of a message type with Protobuf's own decoder.
type byLibrary struct {
	message protoreflect.MessageDescriptor
	wanted  *event.Branch
}

func (b byLibrary) Read(value []byte, found *event.Values) string {
	decoded := dynamicpb.NewMessage(b.message)
	options := proto.UnmarshalOptions{AllowPartial: true, DiscardUnknown: true}
	if len(value) == 0 || value[0] != 0 || options.Unmarshal(value[1:], decoded) != nil {
		return "the library does not read it"
	}
	b.inside(decoded, b.wanted, found)
	return ""
}

// inside reads a message at the place of a branch.
func (b byLibrary) inside(m protoreflect.Message, wanted *event.Branch, found *event.Values) {
	if wanted.HasField && b.known(m, wanted.Field, found) {
		return
	}
	found.RecordAt(wanted, string(m.Descriptor().FullName()))
	for i := range wanted.Members {
		b.member(m, &wanted.Members[i], found)
	}
}

// member reads a field or a oneof that is wanted. It shares nothing with the other members, even if
// they want the same field.
func (b byLibrary) member(m protoreflect.Message, member *event.Member, found *event.Values) {
	name, fields := protoreflect.Name(member.Name), m.Descriptor().Fields()
	d, oneof := fields.ByName(name), m.Descriptor().Oneofs().ByName(name)
	mayBeOneof := !member.HasField || member.Field == event.FieldData || member.Field == event.FieldEnvelope
	if oneof == nil || !mayBeOneof {
		if d == nil {
			d = fields.ByJSONName(member.Name)
		}
		if d != nil {
			b.field(m, d, &member.Branch, found)
		}
		return
	}
	if d = m.WhichOneof(oneof); d == nil {
		return
	}
	b.field(m, d, &member.Branch, found)
	if member.HasRecord {
		found.Text(member.Record, string(d.Name()))
	}
}

func (b byLibrary) field(m protoreflect.Message, d protoreflect.FieldDescriptor, wanted *event.Branch, found *event.Values) {
	if d.HasPresence() && !m.Has(d) {
		return
	}
	v := m.Get(d)
	switch {
	case d.IsList() && d.Message() != nil && wanted.Entries != nil:
		found.List(wanted.Field)
		for i := range v.List().Len() {
			found.BeginEntry()
			b.inside(v.List().Get(i).Message(), wanted.Entries, found)
			found.EndEntry()
		}
	case d.IsList() && wanted.Entries == nil:
		found.Array(wanted)
	case d.IsList() || d.IsMap():
		if wanted.HasField {
			found.Other(wanted.Field)
		}
	case d.Message() != nil:
		b.inside(v.Message(), wanted, found)
	case wanted.HasField && !d.HasPresence() && isZero(v) && slices.Contains(neverZero, wanted.Field):
	case wanted.HasField:
		b.scalar(d, v, wanted.Field, found)
	}
}

func (b byLibrary) known(m protoreflect.Message, f event.Field, found *event.Values) bool {
	get := func(name protoreflect.Name) protoreflect.Value { return m.Get(m.Descriptor().Fields().ByName(name)) }
	switch m.Descriptor().FullName() {
	case "google.protobuf.Timestamp":
		if n := get("nanos").Int(); n < 0 || n > 999_999_999 {
			found.Other(f)
		} else {
			const most = math.MaxInt64/1_000_000 - 1
			found.Instant(f, min(max(get("seconds").Int(), -most), most)*1_000_000+n/1000)
		}
	case "confluent.type.Decimal":
		found.Decimal(f, get("value").Bytes(), int(get("scale").Int()))
	case "google.protobuf.StringValue":
		found.Text(f, get("value").String())
	case "google.protobuf.Int64Value", "google.protobuf.Int32Value", "google.protobuf.UInt64Value", "google.protobuf.UInt32Value":
		b.scalar(m.Descriptor().Fields().ByName("value"), get("value"), f, found)
	default:
		return false
	}
	return true
}

// neverZero contains the fields that are missing if their number is 0. A part of a joined text may be
// 0.
var neverZero = []event.Field{event.FieldEventID, event.FieldAccountID, event.FieldOccurredAt, event.FieldCorrelationID, event.FieldCurrency}

func isZero(v protoreflect.Value) bool {
	switch v := v.Interface().(type) {
	case int32, int64, uint32, uint64:
		return reflect.ValueOf(v).IsZero()
	}
	return false
}

func (b byLibrary) scalar(d protoreflect.FieldDescriptor, v protoreflect.Value, f event.Field, found *event.Values) {
	switch v := v.Interface().(type) {
	case string:
		if v != "" || d.HasPresence() {
			found.Text(f, v)
		}
	case protoreflect.EnumNumber:
		named := d.Enum().Values().ByNumber(v)
		switch {
		case v == 0 && !d.HasPresence():
		case named == nil:
			found.Other(f)
		default:
			found.Text(f, string(named.Name()))
		}
	case int32:
		found.Integer(f, int64(v))
	case int64:
		found.Integer(f, v)
	case uint32:
		found.Unsigned(f, uint64(v))
	case uint64:
		found.Unsigned(f, v)
	case float32, float64:
		found.Fraction(f)
	default:
		found.Other(f)
	}
}

// drawing draws a random schema and values of that schema.
type drawing struct {
	*rapid.T
	proto2   bool
	tame     bool // the schema and its values are those of a usual event, except for oneofs
	messages strings.Builder
	n        int
}

// kinds contains the field types, grouped by how their values are encoded.
var kinds = map[string][]string{
	"varint": {"int32", "int64", "sint32", "sint64", "uint32", "uint64", "bool", "Kind"},
	"fixed":  {"fixed32", "fixed64", "sfixed32", "sfixed64", "float", "double"},
	"text":   {"string", "string", "string", "bytes"},
	"message": {
		"google.protobuf.Timestamp", "google.protobuf.StringValue", "google.protobuf.Int64Value", "google.protobuf.UInt64Value",
		"google.protobuf.Int32Value", "google.protobuf.UInt32Value", "confluent.type.Decimal",
	},
}

// The variable usual contains the field types of a typical event.
var usual = map[string]string{
	"eventId": "string", "eventType": "Kind", "accountId": "string", "version": "int64", "occurredAt": "google.protobuf.Timestamp",
	"correlationId": "string", "amount": "confluent.type.Decimal", "currency": "string", "x": "string",
}

// Fields with these names may be drawn as a oneof of that name. A mapping wants some of them as a
// whole. The amount of an event is never read from a oneof.
var oneofs = map[string]int{"data": 2, "inner": 2, "amount": 40}

// The type drawn is a random field of a message.
type drawn struct {
	number protowire.Number
	name   string
	kind   string
	fields []drawn // fields of the message, if the field is a message
}

// message draws a message type with fields of the given names. It returns the name and the fields
// of the type.
func (d *drawing) message(depth int, names ...string) (string, []drawn) {
	d.n++
	name := fmt.Sprintf("M%d", d.n)
	var text strings.Builder
	var fields []drawn
	inOneof := 0
	for i, field := range names {
		if n := oneofs[field]; n > 0 && inOneof == 0 && rapid.IntRange(1, n).Draw(d.T, "a oneof") == 1 {
			fields = append(fields, d.oneof(depth, &text, field, 20*(i+1))...)
			continue
		}
		f := drawn{number: protowire.Number(i + 1), name: field}
		f.kind, f.fields = d.kind(depth, field)
		label := ""
		if field == "eventId" && rapid.Bool().Draw(d.T, "a JSON name") {
			field = "event_id"
		}
		switch {
		case inOneof == 0 && rapid.IntRange(0, 9).Draw(d.T, "oneof") == 0:
			inOneof = rapid.IntRange(1, 3).Draw(d.T, "fields of it")
			fmt.Fprintf(&text, "oneof o%d { ", i)
		case inOneof > 0:
		case field == "lines" || d.rare(24, "a list"):
			label = "repeated "
		case d.proto2 || rapid.IntRange(0, 4).Draw(d.T, "optional") == 0:
			label = "optional "
		}
		if d.proto2 && label == "optional " && f.kind == "int64" && rapid.Bool().Draw(d.T, "a default") {
			field += fmt.Sprintf(" = %d [default = 3]", f.number)
		} else {
			field += fmt.Sprintf(" = %d", f.number)
		}
		fmt.Fprintf(&text, "%s%s %s; ", label, f.kind, field)
		if inOneof > 0 {
			if inOneof--; inOneof == 0 || i == len(names)-1 {
				text.WriteString("} ")
			}
		}
		fields = append(fields, f)
	}
	fmt.Fprintf(&d.messages, "message %s { %s }\n", name, text.String())
	return name, fields
}

// oneof draws a oneof that may be wanted itself. The numbers of its fields begin with the parameter
// first.
func (d *drawing) oneof(depth int, text *strings.Builder, name string, first int) []drawn {
	fmt.Fprintf(text, "oneof %s { ", name)
	var fields []drawn
	for i := range 3 {
		f := drawn{number: protowire.Number(first + i), name: fmt.Sprint(name, i)}
		f.kind, f.fields = d.kind(depth, name)
		fmt.Fprintf(text, "%s %s = %d; ", f.kind, f.name, f.number)
		fields = append(fields, f)
	}
	text.WriteString("} ")
	return fields
}

// rare draws whether something unusual is done. It is done in one of n+1 cases, and never in a tame
// drawing.
func (d *drawing) rare(n int, what string) bool {
	return !d.tame && rapid.IntRange(0, n).Draw(d.T, what) == 0
}

func (d *drawing) kind(depth int, field string) (string, []drawn) {
	if kind := usual[field]; kind != "" && !d.rare(9, "unusual") {
		return kind, nil
	}
	switch {
	case field == "lines" && !d.rare(9, "no messages"):
		return d.message(0, "accountId", "version", "amount", "currency", "data")
	case depth > 0 && (field == "data" || field == "inner" || rapid.IntRange(0, 3).Draw(d.T, "a message") == 0):
		return d.message(depth-1, "amount", "x", "inner", "currency", "y", "lines")
	}
	of := rapid.SampledFrom([]string{"varint", "fixed", "text", "message"}).Draw(d.T, "kind")
	return rapid.SampledFrom(kinds[of]).Draw(d.T, of), nil
}

// value draws an encoded message in which each field may appear in any order and any number of
// times.
func (d *drawing) value(fields []drawn, atLeastOnce bool) []byte {
	var order []drawn
	if atLeastOnce {
		order = append(order, fields...)
	}
	for range rapid.IntRange(0, 4).Draw(d.T, "more of them") {
		order = append(order, rapid.SampledFrom(fields).Draw(d.T, "field"))
	}
	if len(order) > 0 && rapid.Bool().Draw(d.T, "in any order") {
		order = rapid.Permutation(order).Draw(d.T, "order")
	}
	var b []byte
	if rapid.IntRange(0, 9).Draw(d.T, "an unknown field") == 0 {
		b = protowire.AppendString(protowire.AppendTag(b, 999, protowire.BytesType), "unknown")
	}
	for _, f := range order {
		b = d.field(b, f)
	}
	return b
}

func (d *drawing) field(b []byte, f drawn) []byte {
	tag := func(t protowire.Type) []byte { return protowire.AppendTag(b, f.number, t) }
	as := f.kind
	if d.rare(59, "of another type") {
		as = rapid.SampledFrom([]string{"int64", "string", "fixed32", "fixed64", "group", "list"}).Draw(d.T, "type")
	}
	number := func() uint64 {
		if d.tame {
			return rapid.SampledFrom([]uint64{2, 1, 17}).Draw(d.T, "number")
		}
		return rapid.SampledFrom([]uint64{1, 2, 17, 17, 17, 17, 0, 9, math.MaxUint32, math.MaxUint64, 1 << 31, 1<<40 + 7}).Draw(d.T, "number")
	}
	switch {
	case f.fields != nil && as == f.kind:
		return protowire.AppendBytes(tag(protowire.BytesType), d.value(f.fields, rapid.IntRange(0, 3).Draw(d.T, "whole") > 0))
	case strings.HasPrefix(as, "google.") || strings.HasPrefix(as, "confluent."):
		inner := []drawn{{1, "", map[bool]string{true: "string", false: "int64"}[strings.HasSuffix(as, "StringValue")], nil}}
		switch {
		case strings.HasSuffix(as, "Timestamp"):
			inner = append(inner, drawn{2, "", "int64", nil})
		case strings.HasSuffix(as, "Decimal"):
			inner = []drawn{{1, "", "string", nil}, {3, "", "int64", nil}}
		}
		return protowire.AppendBytes(tag(protowire.BytesType), d.value(inner, true))
	case as == "group":
		return protowire.AppendTag(protowire.AppendVarint(protowire.AppendTag(tag(protowire.StartGroupType), 1, protowire.VarintType), 3), f.number, protowire.EndGroupType)
	case as == "list":
		return protowire.AppendBytes(tag(protowire.BytesType), rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(d.T, "packed"))
	case slices.Contains(kinds["varint"], as):
		return protowire.AppendVarint(tag(protowire.VarintType), number())
	case strings.HasSuffix(as, "64") || as == "double":
		return protowire.AppendFixed64(tag(protowire.Fixed64Type), number())
	case strings.Contains(as, "fixed32") || as == "float":
		return protowire.AppendFixed32(tag(protowire.Fixed32Type), uint32(number()))
	}
	text := rapid.SampledFrom([]string{"e-1", "\x04\x01", "acc", "", "2026-01-01T00:00:00Z"}).Draw(d.T, "text")
	switch {
	case d.rare(60, "no UTF-8"):
		text = "\xff"
	case f.name == "currency":
		text = "EUR"
	case strings.HasSuffix(f.name, "Id") && text == "":
		text = "id"
	}
	return protowire.AppendString(tag(protowire.BytesType), text)
}

// schema draws a .proto file. It returns the file and the fields of the file's first message.
func (d *drawing) schema() (string, []drawn) {
	syntax := "proto3"
	d.tame = rapid.Bool().Draw(d.T, "tame")
	if d.proto2 = rapid.Bool().Draw(d.T, "proto2"); d.proto2 {
		syntax = "proto2"
	}
	root, fields := d.message(2, "eventId", "eventType", "accountId", "a", "version", "occurredAt", "b", "correlationId", "data", "c")
	messages := strings.Split(strings.TrimSpace(d.messages.String()), "\n")
	slices.SortStableFunc(messages, func(a, b string) int { // the event must be the first message
		return strings.Compare(fmt.Sprint(!strings.HasPrefix(a, "message "+root+" ")), fmt.Sprint(!strings.HasPrefix(b, "message "+root+" ")))
	})
	return fmt.Sprintf(`syntax = %q; import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto"; import "confluent/type/decimal.proto";
%s
enum Kind { NONE = 0; AccountOpened = 1; FundsCredited = 2; AccountClosed = 17; }`, syntax, strings.Join(messages, "\n")), fields
}

// wantings returns mappings, by what is special about them.
func wantings() map[string]event.Mapping {
	credit, debit, opened := event.TypeNamed("FundsCredited"), event.TypeNamed("FundsDebited"), event.TypeNamed("AccountOpened")
	named := func(names ...string) event.FieldPath { return event.FieldPath{Path: names, Record: true} }
	path := func(names ...string) event.FieldPath { return event.FieldPath{Path: names} }
	outer := func(name string) event.FieldPath { return event.FieldPath{Outer: []string{name}} }
	optional := func(p event.FieldPath) event.FieldPath { p.Optional = true; return p }
	joined := func(parts ...event.FieldPath) event.FieldPath { return event.FieldPath{Join: parts, Separator: '/'} }
	return map[string]event.Mapping{
		"usual": {},
		"by the name of the field": {
			Types:  map[string]event.Type{"data0": credit, "data1": debit, "M2": opened},
			Fields: map[event.Field]event.FieldPath{event.FieldEventType: named("data")},
		},
		"a oneof and its fields": {
			Types: map[string]event.Type{"data0//": credit, "data1//e-1": debit, "data1//acc": credit, "data2/e-1/": debit, "/e-1/": opened, "//e-1": opened},
			Fields: map[event.Field]event.FieldPath{event.FieldEventType: joined(
				optional(named("data")), optional(path("data2", "x")), optional(path("data1", "x")),
			)},
		},
		"a field by two names": {
			Types: map[string]event.Type{"e-1/FundsCredited": credit, "acc/FundsCredited": debit, "/FundsCredited": opened},
			Fields: map[event.Field]event.FieldPath{
				event.FieldEventType: joined(optional(path("event_id")), path("eventType")), event.FieldEventID: path("eventId"),
			},
		},
		"a oneof in a oneof": {
			Types: map[string]event.Type{"inner0": credit, "inner1": debit, "inner2": opened},
			Fields: map[event.Field]event.FieldPath{
				event.FieldEventType: named("data", "inner"), event.FieldData: path("data", "inner"), event.FieldCorrelationID: path("data1", "inner", "x"),
			},
		},
		"entries in a oneof": {
			Types:    map[string]event.Type{"data0": credit, "data1": debit, "data2": opened},
			Envelope: event.Envelope{Path: []string{"data"}, Entries: []string{"lines"}},
			Fields: map[event.Field]event.FieldPath{
				event.FieldEventID: outer("eventId"), event.FieldOccurredAt: outer("occurredAt"), event.FieldEventType: named("data"), event.FieldData: {},
			},
		},
	}
}

// each decodes all events of a message.
func each(f event.Format, value []byte) []event.Decoded {
	var all []*event.Decoded
	event.DecodeEach(f, event.Message{Value: value}, func(int32) *event.Decoded {
		all = append(all, &event.Decoded{Skip: true, Fault: &event.Fault{}})
		return all[len(all)-1]
	})
	decoded := make([]event.Decoded, len(all))
	for i, d := range all {
		decoded[i] = *d
	}
	return decoded
}

// TestAnySchemaIsReadAsTheLibraryReadsIt shows that random messages are decoded to the same events
// as with Protobuf's own library. A field may appear several times, in a oneof, with another type,
// or not at all. A mapping may want a oneof and its fields, or a field by two names.
func TestAnySchemaIsReadAsTheLibraryReadsIt(t *testing.T) {
	wanted := map[string]*event.Records{}
	for name, m := range wantings() {
		records, err := event.NewRecords(event.Options{FirstVersion: 1, Mapping: m})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wanted[name] = records
	}
	decimal := `syntax = "proto3"; package confluent.type; message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }`
	whole, faults := map[string]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		d := &drawing{T: t}
		schema, fields := d.schema()
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(wanted))).Draw(t, "mapping")
		records := wanted[name]
		tree := records.Tree()
		compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: protocompile.SourceAccessorFromMap(map[string]string{"e.proto": schema, "confluent/type/decimal.proto": decimal}),
		})}
		files, err := compiler.Compile(t.Context(), "e.proto")
		if err != nil {
			t.Fatal(schema, err)
		}
		subject, err := protobuf.Compile(schema, nil, &tree)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			value := append([]byte{0}, d.value(fields, true)...)
			if d.rare(20, "cut") {
				value = value[:len(value)-1]
			}
			wants := each(records.Format(byLibrary{files[0].Messages().Get(0), &tree}), value)
			gots := each(records.Format(subject), value)
			for i := range min(len(wants), len(gots)) {
				want, got := &wants[i], &gots[i]
				switch {
				case want.Fault == nil:
					whole[name+" "+want.Event.TypeName]++
				case want.Fault.Field != "":
					faults++
				case got.Fault != nil: // the library does not give the reason of a fault
					got.Fault.Reason, want.Fault.Reason = "", ""
				}
			}
			if !reflect.DeepEqual(gots, wants) {
				t.Fatalf("%s\n%s\n%q\ngot  %s\nwant %s", name, schema, value, shown(gots), shown(wants))
			}
		}
	})
	t.Logf("%d with a fault in a field, events: %v", faults, whole)
}

func shown(all []event.Decoded) string {
	var text strings.Builder
	for _, d := range all {
		fmt.Fprintf(&text, "%+v, %v; ", d.Event, d.Fault)
	}
	return text.String()
}

// TestFieldsThatComeSeveralTimes checks two rules with fixed examples. Several messages of one
// field are merged, and the last field of a oneof counts.
func TestFieldsThatComeSeveralTimes(t *testing.T) {
	records, err := event.NewRecords(event.Options{FirstVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	s, err := protobuf.Compile(`syntax = "proto2"; import "google/protobuf/timestamp.proto";
		message Event { optional string eventId = 1; oneof type { string eventType = 2; string other = 3; Nothing nothing = 9; } optional string accountId = 4;
			optional int64 version = 5; optional google.protobuf.Timestamp occurredAt = 6;
			optional group Data = 7 { optional string amount = 1; optional string currency = 2; optional Event within = 3; } repeated Event events = 8; }
		message Nothing {}`, nil, &tree)
	if err != nil {
		t.Fatal(err)
	}
	f := records.Format(s)
	group := func(b []byte, n protowire.Number, inner []byte) []byte {
		return protowire.AppendTag(append(protowire.AppendTag(b, n, protowire.StartGroupType), inner...), n, protowire.EndGroupType)
	}
	start := text(text(number(path(), 5, 17), 1, "e-1"), 4, "acc-1")
	start = message(message(text(start, 2, "FundsCredited"), 6, number(nil, 1, 5)), 6, number(nil, 2, 7000))
	whole := group(group(start, 7, text(text(nil, 1, "1.00"), 2, "USD")), 7, text(nil, 2, "EUR"))
	d := decode(f, whole)
	if e := d.Event; d.Fault != nil || e.OccurredAt != 5_000_007 || e.Amount != 100 || e.Currency.Code() != "EUR" {
		t.Errorf("in parts: %+v, %v", d.Event, d.Fault)
	}
	for name, value := range map[string][]byte{
		"another of the oneof":      text(slices.Clone(whole), 3, "x"),
		"a message of the oneof":    message(slices.Clone(whole), 9, nil),
		"the group does not end":    append(slices.Clone(whole), 7<<3|3),
		"another group ends":        append(slices.Clone(whole), 7<<3|3, 8<<3|4),
		"an end without a group":    append(slices.Clone(whole), 7<<3|4),
		"a group within ends later": append(slices.Clone(whole), 7<<3|3, 10<<3|3, 7<<3|4),
	} {
		if d := decode(f, value); d.Fault == nil || d.Fault.Class != event.MalformedPayload {
			t.Errorf("%s: %+v", name, d.Event)
		}
	}
	again := text(text(slices.Clone(whole), 3, "x"), 2, "FundsDebited")
	if d := decode(f, again); d.Fault != nil || d.Event.Type != event.TypeNamed("FundsDebited") {
		t.Errorf("the oneof set again: %+v, %v", d.Event, d.Fault)
	}
}
