package protobuf_test

import (
	"encoding/base64"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"projector/projection/event"
	"projector/projection/event/protobuf"
)

const (
	importing = `syntax = "proto3"; package bank;
import "common/money.proto";
import "google/protobuf/timestamp.proto";
message Unused {}
message Event {
  string event_id = 1;
  string event_type = 2;
  optional string account_id = 3;
  sint64 version = 4;
  google.protobuf.Timestamp occurred_at = 5;
  string other = 6 [json_name = "correlationId"];
  common.Money data = 7;
}`
	moneyPath = "common/money.proto"
)

// The function compiled returns a file in the compiled form that some clients register. It has no
// JSON names except those that the file sets.
func compiled(t testing.TB, path string, texts map[string]string) string {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(
		&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(texts)})}
	files, err := compiler.Compile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	file := protodesc.ToFileDescriptorProto(files[0])
	for _, m := range file.GetMessageType() {
		for _, f := range m.GetField() {
			if f.GetJsonName() != "correlationId" {
				f.JsonName = nil
			}
		}
	}
	return encoded(t, file)
}

func encoded(t testing.TB, file *descriptorpb.FileDescriptorProto) string {
	t.Helper()
	raw, err := proto.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// A file gives the same result as .proto text and in compiled form, together with its imports.
func TestCompiledFiles(t *testing.T) {
	records, err := event.NewRecords(event.Options{FirstVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	texts := map[string]string{"bank/events.proto": importing, moneyPath: money}
	body := text(text(text(nil, 1, "e-1"), 2, "FundsCredited"), 3, "acc-1")
	body = text(message(number(body, 4, 34), 5, number(nil, 1, at.Unix())), 6, "c-1") // 34 is 17 in zigzag encoding
	value := append(path(1), message(body, 7, text(text(nil, 1, "10.25"), 2, "EUR"))...)
	for name, files := range map[string][2]string{
		"text":           {importing, money},
		"compiled":       {compiled(t, "bank/events.proto", texts), compiled(t, moneyPath, texts)},
		"compiled file":  {compiled(t, "bank/events.proto", texts), money},
		"compiled other": {importing, compiled(t, moneyPath, texts)},
	} {
		s, err := protobuf.Compile(files[0], map[string]string{moneyPath: files[1]}, &tree)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := decode(records.Format(s), value)
		if e := d.Event; d.Fault != nil || e.ID != "e-1" || e.AccountID != "acc-1" || e.Version != 17 || e.OccurredAt != at.Unix()*1_000_000 ||
			e.CorrelationID != "c-1" || e.Amount != 1025 || e.Currency.Code() != "EUR" {
			t.Errorf("%s: %+v, fault %v", name, d.Event, d.Fault)
		}
	}
}

// Values identify their message type by its index in the file. A map field adds a message type,
// which has an index only in some forms of the file.
func TestMapsAmongTheMessages(t *testing.T) {
	records, err := event.NewRecords(event.Options{FirstVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	const (
		nested  = `message Event { string event_id = 1; string event_type = 2; string account_id = 3; int64 version = 4; string occurred_at = 5; }`
		asMap   = `syntax = "proto3"; message Bank { map<string, string> tags = 1; ` + nested + ` }`
		written = `syntax = "proto3"; message Bank { repeated .Bank.TagsEntry tags = 1;
			message TagsEntry { option map_entry = true; string key = 1; string value = 2; } ` + nested + ` }`
	)
	body := text(text(text(nil, 1, "e-1"), 2, "AccountClosed"), 3, "acc-1")
	body = text(number(body, 4, 17), 5, "2026-01-01T00:00:00Z")
	for name, tt := range map[string]struct {
		schema string
		place  []byte
	}{
		"a text with a map":             {asMap, path(0, 0)},
		"a text with its entry":         {written, path(0, 1)},
		"a compiled file with an entry": {compiled(t, "bank.proto", map[string]string{"bank.proto": asMap}), path(0, 1)},
	} {
		s, err := protobuf.Compile(tt.schema, nil, &tree)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := decode(records.Format(s), append(tt.place, body...)); d.Fault != nil || d.Event.ID != "e-1" || d.Event.Version != 17 {
			t.Errorf("%s: %+v, fault %v", name, d.Event, d.Fault)
		}
	}
}

func TestCompiledFilesThatCannotBeUsed(t *testing.T) {
	records, err := event.NewRecords(event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	field := func(number int32, typeName string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{
			Name: new("a"), Number: &number, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
		}
		if typeName != "" {
			f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), &typeName
		}
		return f
	}
	with := func(f *descriptorpb.FieldDescriptorProto) string {
		return encoded(t, &descriptorpb.FileDescriptorProto{
			Syntax:      new("proto3"),
			MessageType: []*descriptorpb.DescriptorProto{{Name: new("M"), Field: []*descriptorpb.FieldDescriptorProto{f}}},
		})
	}
	if _, err := protobuf.Compile(with(field(1, "")), nil, &tree); err != nil {
		t.Error(err)
	}
	for name, schema := range map[string]string{
		"other bytes":         base64.StdEncoding.EncodeToString([]byte("nonsense")),
		"a field's number":    with(field(0, "")),
		"a type nobody has":   with(field(1, ".bank.Missing")),
		"an import of itself": encoded(t, &descriptorpb.FileDescriptorProto{Syntax: new("proto3"), Dependency: []string{"<schema>"}}),
		"a missing import":    encoded(t, &descriptorpb.FileDescriptorProto{Syntax: new("proto3"), Dependency: []string{"missing.proto"}}),
		"an unknown syntax":   encoded(t, &descriptorpb.FileDescriptorProto{Syntax: new("proto4")}),
	} {
		if _, err := protobuf.Compile(schema, nil, &tree); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzCompiledFile shows that no compiled file can crash the compiler.
func FuzzCompiledFile(f *testing.F) {
	texts := map[string]string{"bank/events.proto": importing, moneyPath: money}
	for _, path := range []string{"bank/events.proto", moneyPath} {
		raw, err := base64.StdEncoding.DecodeString(compiled(f, path, texts))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	records, err := event.NewRecords(event.Options{})
	if err != nil {
		f.Fatal(err)
	}
	tree := records.Tree()
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := protobuf.Compile(base64.StdEncoding.EncodeToString(raw), map[string]string{moneyPath: money}, &tree)
		if err != nil {
			return
		}
		decode(records.Format(s), append(path(), credit()...))
	})
}
