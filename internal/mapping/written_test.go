package mapping_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	avrolib "github.com/twmb/avro"
	"google.golang.org/protobuf/encoding/protowire"

	"projector/projection/event"
	"projector/projection/event/avro"
	"projector/projection/event/protobuf"
)

// The function written returns a document as a message of the given format, together with the
// event.Format that decodes it.
func written(t *testing.T, format string, opts event.Options, document string) (event.Format, event.Message) {
	t.Helper()
	var m event.Message
	switch format {
	case "structured":
		m = event.Message{Value: []byte(`{"specversion":"1.0","data":` + document + `}`), Headers: structuredHeader}
		format = event.FormatCloudEvents
	case "binary":
		m = event.Message{Value: []byte(document), Headers: []event.Header{{Key: "ce_specversion", Value: []byte("1.0")}}}
		format = event.FormatCloudEvents
	case event.FormatAvro, event.FormatProtobuf:
		return writtenWithSchema(t, format, opts, document)
	default:
		m = event.Message{Value: []byte(document)}
	}
	f, err := event.New(format, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f, m
}

// writtenWithSchema encodes a document with a schema derived from it. Each object becomes a record
// or a message, each integer has 64 bits, and each other number is a double.
func writtenWithSchema(t *testing.T, format string, opts event.Options, document string) (event.Format, event.Message) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(document))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	records, err := event.NewRecords(opts)
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	var reader event.Reader
	var value []byte
	if format == event.FormatAvro {
		schema := avroSchema(v, new(int))
		if value, err = avrolib.MustParse(schema).Encode(plainNumbers(v)); err == nil {
			reader, err = avro.Compile(schema, nil, &tree)
		}
	} else {
		value = append([]byte{0}, protoMessage(v.(map[string]any))...)
		reader, err = protobuf.Compile("syntax = \"proto3\";\n"+protoSchema("M", v.(map[string]any)), nil, &tree)
	}
	if err != nil {
		t.Fatal(err)
	}
	return records.Format(reader), event.Message{Value: value}
}

func isWhole(n json.Number) bool { return !strings.ContainsAny(string(n), ".eE") }

func avroSchema(v any, records *int) string {
	switch v := v.(type) {
	case map[string]any:
		*records++
		name := fmt.Sprint("R", *records)
		var fields []string
		for _, field := range slices.Sorted(maps.Keys(v)) {
			fields = append(fields, fmt.Sprintf(`{"name":%q,"type":%s}`, field, avroSchema(v[field], records)))
		}
		return fmt.Sprintf(`{"type":"record","name":%q,"fields":[%s]}`, name, strings.Join(fields, ","))
	case []any:
		return `{"type":"array","items":` + avroSchema(v[0], records) + `}`
	case json.Number:
		if isWhole(v) {
			return `"long"`
		}
		return `"double"`
	case bool:
		return `"boolean"`
	default:
		return `"string"`
	}
}

// plainNumbers converts numbers to the types that the Avro library accepts.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		made := map[string]any{}
		for name, inner := range v {
			made[name] = plainNumbers(inner)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, inner := range v {
			made[i] = plainNumbers(inner)
		}
		return made
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		n, _ := v.Float64()
		return n
	}
	return v
}

// protoSchema returns a message type whose fields are the members of an object, in alphabetical
// order.
func protoSchema(name string, object map[string]any) string {
	var text strings.Builder
	fmt.Fprintf(&text, "message %s {\n", name)
	for i, field := range slices.Sorted(maps.Keys(object)) {
		v, repeated := object[field], ""
		if list, is := v.([]any); is {
			repeated, v = "repeated ", ""
			if len(list) > 0 {
				v = list[0]
			}
		}
		kind := "string"
		switch v := v.(type) {
		case map[string]any:
			kind = "M" + field
			text.WriteString(protoSchema(kind, v))
		case json.Number:
			kind = "double"
			if isWhole(v) {
				kind = "int64"
			}
		case bool:
			kind = "bool"
		}
		fmt.Fprintf(&text, "%s%s %s = %d;\n", repeated, kind, field, i+1)
	}
	text.WriteString("}\n")
	return text.String()
}

func protoMessage(object map[string]any) []byte {
	var b []byte
	for i, field := range slices.Sorted(maps.Keys(object)) {
		list, is := object[field].([]any)
		if !is {
			list = []any{object[field]}
		}
		for _, v := range list {
			b = protoField(b, protowire.Number(i+1), v)
		}
	}
	return b
}

func protoField(b []byte, n protowire.Number, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), protoMessage(v))
	case json.Number:
		if isWhole(v) {
			whole, _ := v.Int64()
			return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(whole))
		}
		fraction, _ := strconv.ParseFloat(string(v), 64)
		return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), math.Float64bits(fraction))
	case bool:
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), protowire.EncodeBool(v))
	default:
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v.(string))
	}
}
