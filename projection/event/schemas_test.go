package event_test

import (
	encbinary "encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	avrolib "github.com/twmb/avro"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"projector/projection/event"
	"projector/projection/event/avro"
	"projector/projection/event/protobuf"
)

func records(t testing.TB, opts event.Options) (*event.Records, event.Branch) {
	t.Helper()
	r, err := event.NewRecords(opts)
	if err != nil {
		t.Fatal(err)
	}
	tree := r.Tree()
	return r, tree
}

// plainValue returns the value of a JSON text. Integers and other numbers get different Go types.
func plainValue(text string) any {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		panic(err)
	}
	return typedNumbers(v)
}

func typedNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for name, inner := range v {
			v[name] = typedNumbers(inner)
		}
	}
	return v
}

// members returns the values of the members that are not absent.
func (p *parts) members() map[string]any {
	all := map[string]any{}
	for name, text := range map[string]string{
		"eventId": p.id, "eventType": p.kind, "accountId": p.account, "version": p.version, "occurredAt": p.at,
		"correlationId": p.correlation, "data": p.data,
	} {
		if text != "" {
			all[name] = plainValue(text)
		}
	}
	return all
}

const avroEnvelope = `{"type":"record","name":"Event","fields":[
	{"name":"data","type":["null","boolean","long",{"type":"array","items":"string"},%s]},
	{"name":"unknown","type":{"type":"map","values":"double"}},
	{"name":"version","type":["null","long","double"]},
	{"name":"eventId","type":["null","string"]},{"name":"eventType","type":["string","null"]},
	{"name":"accountId","type":["null","string"]},{"name":"occurredAt","type":["null","string"]},
	{"name":"correlationId","type":["null","string"]}]}`

// avroSchemas contains two schemas. In the first schema, data is a map, in which a name may be
// missing. In the second schema, data is a record, in which no name may be missing.
var avroSchemas = []string{
	fmt.Sprintf(avroEnvelope, `{"type":"map","values":["null","string","long",{"type":"array","items":{"type":"map","values":"null"}}]}`),
	strings.Replace(fmt.Sprintf(avroEnvelope, `{"type":"record","name":"Data","fields":[
		{"name":"amount","type":["null","string","long"]},{"name":"currency","type":["null","string"]}]}`),
		`"boolean","long",{"type":"array","items":"string"},`, ``, 1),
}

func (p *parts) asAvro(t *rapid.T, schema *avrolib.Schema) event.Message {
	all := p.members()
	for _, name := range memberOrder { // an absent member becomes null
		if _, there := all[name]; !there {
			all[name] = nil
		}
	}
	all["unknown"] = map[string]any{"x": 1.5}
	if data, is := all["data"].(map[string]any); is {
		delete(data, "x")
	}
	value, err := schema.Encode(all)
	if err != nil {
		t.Fatalf("encode %v: %v", all, err)
	}
	return event.Message{Value: value}
}

func TestAvroAgrees(t *testing.T) {
	asJSON := event.NewJSON(options)
	valid, tree := records(t, options)
	for i, text := range avroSchemas {
		writer := avrolib.MustParse(text)
		reader, err := avro.Compile(text, nil, &tree)
		if err != nil {
			t.Fatal(err)
		}
		format := valid.Format(reader)
		rapid.Check(t, func(t *rapid.T) {
			p := drawParts(t)
			isObject := strings.HasPrefix(p.data, "{") || p.data == "null"
			if p.broken() || i == 1 && !isObject {
				return // Avro cannot represent this event
			}
			want := decodeMessage(asJSON, p.asJSON())
			sameOutcome(t, p, event.FormatAvro, want, decodeMessage(format, p.asAvro(t, writer)))
		})
	}
}

// protoType returns the Protobuf type for the field of a value, and the encoded field.
func protoType(number protowire.Number, v any) (kind string, field []byte) {
	switch v := v.(type) {
	case string:
		return "optional string", protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), v)
	case int64:
		return "optional sint64", protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), protowire.EncodeZigZag(v))
	case float64:
		return "optional uint64", protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), uint64(v))
	case bool:
		return "bool", protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), protowire.EncodeBool(v))
	case []any:
		return "repeated string", nil
	}
	return "optional string", nil
}

// asProto returns a Protobuf file and an encoded message of one of its types. The type of the event
// is the second message that is declared inside the first message. Its members have the types that
// their values need.
func (p *parts) asProto() (file string, m event.Message) {
	all := p.members()
	var body, data []byte
	var fields, dataFields strings.Builder
	for i, name := range memberOrder[:6] {
		number := protowire.Number(i + 1)
		kind, field := protoType(number, all[name])
		if f, is := all[name].(float64); is && f < 1e9 { // 1.0
			kind, field = "double", protowire.AppendFixed64(protowire.AppendTag(nil, number, protowire.Fixed64Type), 1)
		}
		fmt.Fprintf(&fields, "%s %s = %d;\n", kind, snake(name), number)
		body = append(body, field...)
	}
	object, is := all["data"].(map[string]any)
	if !is {
		kind, field := protoType(7, all["data"])
		if all["data"] == nil {
			kind = "Data"
		}
		fmt.Fprintf(&fields, "%s data = 7;\n", kind)
		body = append(body, field...)
	}
	for i, name := range []string{"amount", "currency"} {
		kind, field := protoType(protowire.Number(i+1), object[name])
		fmt.Fprintf(&dataFields, "%s %s = %d;\n", kind, name, i+1)
		data = append(data, field...)
	}
	if is {
		fields.WriteString("Data data = 7;\n")
		body = protowire.AppendBytes(protowire.AppendTag(body, 7, protowire.BytesType), data)
	}
	body = protowire.AppendVarint(protowire.AppendTag(body, 99, protowire.VarintType), 1) // a field of a newer schema
	file = fmt.Sprintf("syntax = \"proto3\";\nmessage Other {\nmap<string, string> ignored = 1;\nmessage First {}\nmessage Event {\n%s}\n}\nmessage Data {\n%s}\n",
		fields.String(), dataFields.String())
	value := encbinary.AppendVarint(encbinary.AppendVarint(encbinary.AppendVarint(nil, 2), 0), 1)
	return file, event.Message{Value: append(value, body...)}
}

func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func TestProtobufAgrees(t *testing.T) {
	asJSON := event.NewJSON(options)
	valid, tree := records(t, options)
	formats := map[string]event.Format{}
	rapid.Check(t, func(t *rapid.T) {
		p := drawParts(t)
		if p.broken() {
			return // Protobuf cannot represent this event
		}
		file, message := p.asProto()
		if formats[file] == nil {
			reader, err := protobuf.Compile(file, nil, &tree)
			if err != nil {
				t.Fatalf("%v in\n%s", err, file)
			}
			formats[file] = valid.Format(reader)
		}
		want := decodeMessage(asJSON, p.asJSON())
		sameOutcome(t, p, event.FormatProtobuf, want, decodeMessage(formats[file], message))
	})
}
