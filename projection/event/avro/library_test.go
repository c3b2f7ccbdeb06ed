package avro_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	lib "github.com/twmb/avro"
	"pgregory.net/rapid"

	"projector/projection/event"
)

// byLibrary reads values with the decoder of the Avro library, which decodes all fields into maps.
type byLibrary struct {
	schema *lib.Schema
	wanted *event.Branch
}

type (
	libDecimal struct {
		unscaled []byte
		scale    int
	}
	libInstant int64
)

func instants(kind string, micros func(int64) int64) lib.CustomType {
	return lib.CustomType{LogicalType: kind, AvroType: "long", Decode: func(v any, _ *lib.SchemaNode) (any, error) {
		n, _ := v.(int64)
		return libInstant(micros(n)), nil
	}}
}

func exactly(kind string) lib.CustomType {
	return lib.CustomType{LogicalType: "decimal", AvroType: kind, Decode: func(v any, n *lib.SchemaNode) (any, error) {
		unscaled, _ := v.([]byte)
		return libDecimal{unscaled, n.Scale}, nil
	}}
}

var conversions = []lib.SchemaOpt{
	exactly("bytes"), exactly("fixed"),
	instants("timestamp-millis", func(n int64) int64 { return min(max(n, -math.MaxInt64/1000), math.MaxInt64/1000) * 1000 }),
	instants("timestamp-micros", func(n int64) int64 { return n }),
	instants("timestamp-nanos", func(n int64) int64 { return int64(math.Floor(float64(n) / 1000)) }),
	lib.CustomType{LogicalType: "uuid"},
}

func (b byLibrary) Read(value []byte, found *event.Values) string {
	var all map[string]any
	rest, err := b.schema.Decode(value, &all)
	if err != nil || len(rest) > 0 {
		return "the library does not read it"
	}
	b.read(all, b.wanted, found)
	return ""
}

func (b byLibrary) read(v any, branch *event.Branch, found *event.Values) {
	if members, is := v.(map[string]any); is {
		for i := range branch.Members {
			m := &branch.Members[i]
			if inner, there := members[m.Name]; there {
				b.read(inner, &m.Branch, found)
			}
		}
	}
	if !branch.HasField {
		return
	}
	switch f := branch.Field; v := v.(type) {
	case nil:
		found.Null(f)
	case string:
		found.Text(f, v)
	case int64:
		found.Integer(f, v)
	case int32:
		found.Integer(f, int64(v))
	case float32, float64:
		found.Fraction(f)
	case libDecimal:
		found.Decimal(f, v.unscaled, v.scale)
	case libInstant:
		found.Instant(f, int64(v))
	case map[string]any:
		found.Object(f)
	default:
		found.Other(f)
	}
}

// The type typed is a random type together with an encoded value of the type.
type typed struct {
	schema string
	value  []byte
}

func varint(n int64) []byte { return binary.AppendVarint(nil, n) }

func avroText(s string) []byte { return append(varint(int64(len(s))), s...) }

// drawing draws random schemas, each with a value.
type drawing struct {
	*rapid.T
	names int
	known []typed // references to the named types that were drawn before
}

func (d *drawing) name() string {
	d.names++
	return fmt.Sprintf("T%d", d.names)
}

// The method named adds a named type to the types to which other types may refer.
func (d *drawing) named(name, format string, value []byte, args ...any) typed {
	d.known = append(d.known, typed{`"` + name + `"`, value}, typed{`"bank.` + name + `"`, value})
	return typed{fmt.Sprintf(format, args...), value}
}

// The method text draws a type for a text, such as a string or an enum.
func (d *drawing) text(of ...string) typed {
	s := rapid.SampledFrom(of).Draw(d.T, "text")
	if rapid.Bool().Draw(d.T, "as an enum") && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && s != "" {
		name := d.name()
		return d.named(name, `{"type":"enum","name":%q,"symbols":["other",%q]}`, varint(1), name, s)
	}
	return typed{rapid.SampledFrom([]string{
		`"string"`, `{"type":"string"}`, `{"type":"string","logicalType":"uuid"}`, `{"type":"string","logicalType":"none"}`,
	}).Draw(d.T, "string"), avroText(s)}
}

func (d *drawing) number() typed {
	n := rapid.SampledFrom([]int64{0, 1, 17, -1, math.MaxInt32, 1_767_225_600_123}).Draw(d.T, "number")
	kinds := []string{
		`"long"`, `{"type":"long","logicalType":"timestamp-millis"}`, `{"type":"long","logicalType":"timestamp-micros"}`,
		`{"type":"long","logicalType":"timestamp-nanos"}`, `{"type":"long","logicalType":"local-timestamp-micros"}`,
		`{"type":"long","logicalType":"time-micros"}`, `{"type":"long","logicalType":"date"}`, `{"type":"long","logicalType":"decimal","precision":4}`,
	}
	if n <= math.MaxInt32 {
		kinds = append(kinds, `"int"`, `{"type":"int","logicalType":"date"}`, `{"type":"int","logicalType":"time-millis"}`,
			`{"type":"int","logicalType":"timestamp-micros"}`)
	}
	return typed{rapid.SampledFrom(kinds).Draw(d.T, "integer"), varint(n)}
}

func (d *drawing) exact() typed {
	raw := rapid.SampledFrom([]string{"", "\x01", "\x04\x01", "\xff", "\x00\x00\x00\x00\x00\x00\x00\x04\x01"}).Draw(d.T, "unscaled")
	if rapid.Bool().Draw(d.T, "fixed") && raw != "" {
		name := d.name()
		return d.named(name, `{"type":"fixed","name":%q,"size":%d%s}`, []byte(raw), name, len(raw),
			rapid.SampledFrom([]string{"", `,"logicalType":"decimal","precision":2,"scale":1`}).Draw(d.T, "fixed logical"))
	}
	return typed{rapid.SampledFrom([]string{
		`"bytes"`, `{"type":"bytes","logicalType":"decimal","precision":18,"scale":2}`, `{"type":"bytes","logicalType":"decimal","precision":5}`,
	}).Draw(d.T, "bytes"), avroText(raw)}
}

func (d *drawing) other() typed {
	return rapid.SampledFrom([]typed{
		{`"null"`, nil},
		{`"boolean"`, []byte{1}},
		{`"double"`, make([]byte, 8)},
		{`"float"`, make([]byte, 4)},
		{`{"type":"array","items":"long"}`, []byte{4, 2, 4, 3, 4, 2, 2, 0}},
		{`{"type":"array","items":["null","string"]}`, []byte{4, 0, 2, 2, 'x', 0}},
		{`{"type":"map","values":"string"}`, append(append([]byte{2}, avroText("currency")...), append(avroText("EUR"), 0)...)},
		{`{"type":"map","values":"string"}`, append(append([]byte{1, 26}, avroText("currency")...), append(avroText("USD"), 0)...)},
		{`{"type":"map","values":["null","long"]}`, append(append([]byte{2}, avroText("amount")...), 2, 6, 0)},
	}).Draw(d.T, "other")
}

// anyType draws a random type. In most cases it calls the parameter likely, which draws a type that
// fits the field.
func (d *drawing) anyType(depth int, likely func() typed) typed {
	var drawn typed
	switch rapid.IntRange(0, 24).Draw(d.T, "kind") {
	case 0:
		drawn = d.other()
	case 1:
		drawn = d.exact()
	case 2:
		drawn = d.number()
	case 3:
		if len(d.known) > 0 {
			drawn = rapid.SampledFrom(d.known).Draw(d.T, "reference")
			break
		}
		drawn = likely()
	case 4:
		if depth > 0 {
			drawn = d.record(depth-1, "amount", "currency")
			break
		}
		drawn = likely()
	default:
		drawn = likely()
	}
	return d.within(drawn)
}

// The method within returns the type itself or draws a union in which the type is one branch.
func (d *drawing) within(t typed) typed {
	if strings.HasPrefix(t.schema, "[") || t.schema == `"null"` {
		return t
	}
	switch rapid.IntRange(0, 19).Draw(d.T, "union") {
	case 0:
		return typed{`["null",` + t.schema + `]`, append(varint(1), t.value...)}
	case 1:
		return typed{`[` + t.schema + `,"null"]`, append(varint(0), t.value...)}
	case 2:
		return typed{`["null",` + t.schema + `]`, varint(0)}
	case 3:
		other := `"boolean"`
		if t.schema == other { // a union has each type once
			other = `"double"`
		}
		return typed{`["null",` + other + `,` + t.schema + `]`, append(varint(2), t.value...)}
	}
	return t
}

// record draws a record with fields of the given names, and with other fields between them.
func (d *drawing) record(depth int, names ...string) typed {
	name := d.name()
	var fields []string
	var value []byte
	add := func(field string, t typed) {
		beside := rapid.SampledFrom([]string{
			"", "", "", "", `,"logicalType":"timestamp-micros"`, `,"logicalType":"decimal","precision":2,"scale":2`, // a fixed of one byte has this precision
		}).Draw(d.T, "beside the type")
		fields = append(fields, fmt.Sprintf(`{"name":%q,"type":%s%s}`, field, t.schema, beside))
		value = append(value, t.value...)
	}
	for _, field := range names {
		if rapid.IntRange(0, 3).Draw(d.T, "before it") == 0 {
			add("x"+field, d.anyType(depth, d.number))
		}
		add(field, d.field(depth, field))
	}
	return d.named(name, `{"type":"record","name":%q,"namespace":"bank","fields":[%s]}`, value, name, strings.Join(fields, ","))
}

func (d *drawing) field(depth int, field string) typed {
	switch field {
	case "eventType":
		return d.within(d.text("AccountOpened", "FundsCredited", "FundsDebited", "AccountClosed"))
	case "eventId", "accountId":
		if rapid.IntRange(0, 9).Draw(d.T, "a usual id") > 0 {
			return d.within(d.text("e-1", "acc", "acc", "acc", "\xff"))
		}
	case "version":
		if rapid.IntRange(0, 4).Draw(d.T, "a usual version") > 0 {
			return typed{`"long"`, varint(17)}
		}
		return d.anyType(depth, d.number)
	case "occurredAt":
		return d.anyType(depth, func() typed { return typed{micros, varint(5)} })
	case "data":
		return d.anyType(depth, func() typed { return d.record(depth-1, "amount", "currency") })
	case "amount":
		return d.anyType(depth, func() typed {
			return typed{`{"type":"bytes","logicalType":"decimal","precision":18,"scale":2}`, avroText("\x04\x01")}
		})
	case "currency":
		return d.anyType(depth, func() typed { return d.text("EUR", "EUR", "XXX") })
	}
	return d.anyType(depth, func() typed { return d.text("e-1", "acc", "c-1", "") })
}

// TestAnySchemaIsReadAsTheLibraryReadsIt shows that random records of random schemas are decoded to
// the same event as with the Avro library. The fields of the event may have any Avro type.
func TestAnySchemaIsReadAsTheLibraryReadsIt(t *testing.T) {
	records, err := event.NewRecords(options)
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	whole, faults := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := &drawing{T: t}
		drawn := d.record(2, "eventId", "eventType", "accountId", "version", "occurredAt", "correlationId", "data")
		if n := rapid.IntRange(0, 20).Draw(t, "cut"); n < 2 {
			drawn.value = drawn.value[:len(drawn.value)-min(n, len(drawn.value))]
		}
		parsed, err := lib.Parse(drawn.schema, conversions...)
		if err != nil {
			t.Fatalf("the library does not accept %s: %v", drawn.schema, err)
		}
		want := decode(records.Format(byLibrary{parsed, &tree}), drawn.value)
		got := decode(format(t, options, drawn.schema), drawn.value)
		switch {
		case want.Fault == nil:
			whole++
		case want.Fault.Field != "":
			faults++
		case got.Fault != nil: // the library does not give the reason of a fault
			got.Fault.Reason, want.Fault.Reason = "", ""
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\n%q\ngot  %+v, %v\nwant %+v, %v", drawn.schema, drawn.value, got.Event, got.Fault, want.Event, want.Fault)
		}
	})
	t.Logf("%d events, %d with a fault in a field", whole, faults)
}
