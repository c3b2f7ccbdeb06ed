package protobuf_test

import (
	"fmt"
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
	b.members(decoded, b.wanted, found)
	return ""
}

func (b byLibrary) members(m protoreflect.Message, wanted *event.Branch, found *event.Values) {
	fields := m.Descriptor().Fields()
	for i := range wanted.Members {
		member := &wanted.Members[i]
		d := fields.ByName(protoreflect.Name(member.Name))
		if d == nil {
			d = fields.ByJSONName(member.Name)
		}
		if d == nil || d.HasPresence() && !m.Has(d) {
			continue
		}
		v := m.Get(d)
		switch {
		case d.IsList() || d.IsMap():
			if member.HasField {
				found.Other(member.Field)
			}
		case d.Message() != nil:
			if member.HasField && b.known(v.Message(), member.Field, found) {
				continue
			}
			if member.HasField {
				found.Object(member.Field)
			}
			b.members(v.Message(), &member.Branch, found)
		case member.HasField:
			b.scalar(d, v, member.Field, found)
		}
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
	case "google.protobuf.Int64Value", "google.protobuf.Int32Value":
		found.Integer(f, get("value").Int())
	case "google.protobuf.UInt64Value", "google.protobuf.UInt32Value":
		found.Unsigned(f, get("value").Uint())
	default:
		return false
	}
	return true
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
	"correlationId": "string", "amount": "confluent.type.Decimal", "currency": "string",
}

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
		f := drawn{number: protowire.Number(i + 1), name: field}
		f.kind, f.fields = d.kind(depth, field)
		label := ""
		switch {
		case inOneof == 0 && rapid.IntRange(0, 9).Draw(d.T, "oneof") == 0:
			inOneof = rapid.IntRange(1, 3).Draw(d.T, "fields of it")
			fmt.Fprintf(&text, "oneof o%d { ", i)
		case inOneof > 0:
		case rapid.IntRange(0, 24).Draw(d.T, "a list") == 0:
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

func (d *drawing) kind(depth int, field string) (string, []drawn) {
	if kind := usual[field]; kind != "" && rapid.IntRange(0, 9).Draw(d.T, "as usual") > 0 {
		return kind, nil
	}
	if depth > 0 && (field == "data" || rapid.IntRange(0, 3).Draw(d.T, "a message") == 0) {
		return d.message(depth-1, "amount", "x", "currency", "y")
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
	var b []byte
	for _, f := range order {
		b = d.field(b, f)
	}
	return b
}

func (d *drawing) field(b []byte, f drawn) []byte {
	tag := func(t protowire.Type) []byte { return protowire.AppendTag(b, f.number, t) }
	as := f.kind
	if rapid.IntRange(0, 59).Draw(d.T, "of another type") == 0 {
		as = rapid.SampledFrom([]string{"int64", "string", "fixed32", "fixed64", "group", "list"}).Draw(d.T, "type")
	}
	number := func() uint64 {
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
	case rapid.IntRange(0, 60).Draw(d.T, "no UTF-8") == 0:
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

// TestAnySchemaIsReadAsTheLibraryReadsIt shows that random messages are decoded to the same event
// as with Protobuf's own library. A field may appear several times, in a oneof, with another type,
// or not at all.
func TestAnySchemaIsReadAsTheLibraryReadsIt(t *testing.T) {
	records, err := event.NewRecords(event.Options{FirstVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	decimal := `syntax = "proto3"; package confluent.type; message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }`
	whole, faults := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := &drawing{T: t}
		schema, fields := d.schema()
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
			if n := rapid.IntRange(0, 20).Draw(t, "cut"); n < 2 {
				value = value[:len(value)-min(n, len(value))]
			}
			want := decode(records.Format(byLibrary{files[0].Messages().Get(0), &tree}), value)
			got := decode(records.Format(subject), value)
			switch {
			case want.Fault == nil:
				whole++
			case want.Fault.Field != "":
				faults++
			case got.Fault != nil: // the library does not give the reason of a fault
				got.Fault.Reason, want.Fault.Reason = "", ""
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s\n%q\ngot  %+v, %v\nwant %+v, %v", schema, value, got.Event, got.Fault, want.Event, want.Fault)
			}
		}
	})
	t.Logf("%d events, %d with a fault in a field", whole, faults)
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
