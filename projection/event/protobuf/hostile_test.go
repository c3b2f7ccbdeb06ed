package protobuf_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"projector/projection/event"
	"projector/projection/event/protobuf"
)

const (
	// allocatedPerByte limits how many bytes the compilation of a schema may allocate for each byte
	// of the schema.
	allocatedPerByte = 512
	// allocatedAnyway is added to the limit that allocatedPerByte gives. It covers small schemas
	// and allocations of other goroutines. It also covers Protobuf's own files, which the compiler
	// always reads.
	allocatedAnyway = 4 << 20
	// allocatedByValue limits how many bytes reading a value of any size may allocate.
	allocatedByValue = 256 << 10
	// allocatedByEntries does so for a value with as many entries as are read.
	allocatedByEntries = 8 << 20
)

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func repeated(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i+1)))
	}
	return b.String()
}

func nested(n int, opening string) string {
	return strings.Repeat(opening, n) + strings.Repeat("}", n)
}

const proto3 = `syntax = "proto3"; `

// hostileSchemas contains schemas that an attacker could register in order to crash the program.
var hostileSchemas = map[string]struct{ schema, says string }{
	"10,000 fields":             {proto3 + `message A {` + repeated(10_000, "int32 a#=#;") + `}`, ""},
	"10,000 messages":           {proto3 + repeated(10_000, "message A#{}"), ""},
	"10,000 maps":               {proto3 + `message A {` + repeated(10_000, "map<int32,int32>a#=#;") + `}`, ""},
	"10,000 fields of itself":   {proto3 + `message A {` + repeated(10_000, "A a#=#;") + `}`, ""},
	"10,000 symbols":            {proto3 + "enum E{Z=0;" + repeated(10_000, "A#=#;") + "}", ""},
	"5,000 fields of an enum":   {proto3 + "enum E{Z=0;" + repeated(10_000, "A#=#;") + "}" + repeated(5_000, "message M#{E eventType=1;}"), ""},
	"10,000 options":            {proto3 + `message A{` + repeated(10_000, "int32 a#=#[deprecated=true];") + `}`, ""},
	"messages, 31 deep":         {proto3 + repeated(200, "message A#{"+nested(30, "message B{")+"}"), ""},
	"messages, 50 deep":         {proto3 + nested(50, "message A{"), "nesting depth"},
	"messages, 20,000 deep":     {proto3 + nested(20_000, "message A{"), "nested too deeply"},
	"messages, open":            {proto3 + strings.Repeat("message A{", 20_000), "nested too deeply"},
	"options, 100,000 deep":     {proto3 + "option x=" + strings.Repeat("{a:", 100_000), "nested too deeply"},
	"options in <>":             {proto3 + "option x={a:" + strings.Repeat("<a:", 100_000), "nested too deeply"},
	"a text that does not end":  {proto3 + `option x="` + strings.Repeat(`{\`, 100_000), "invalid"},
	"a comment with braces":     {proto3 + `/*` + strings.Repeat("{", 200) + `*/ //` + strings.Repeat("{", 200) + "\noption java_package='" + strings.Repeat("{", 200) + "';", ""},
	"a comment that is open":    {proto3 + `/*` + strings.Repeat("{", 200), "block comment"},
	"20,000 imports":            {proto3 + repeated(20_000, `import "x#.proto";`), "more than 1000 imports"},
	"an import of itself":       {proto3 + `import "<schema>";`, "cycle"},
	"500,000 semicolons":        {proto3 + strings.Repeat(";", 500_000), "syntax error"},
	"more than 512 KiB":         {proto3 + strings.Repeat(" ", 512<<10), "larger than 524288 bytes"},
	"compiled, no names":        {base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("\x22\x00"), 100_000)), "invalid"},
	"compiled, 20,000 imports":  {compiledFile(&descriptorpb.FileDescriptorProto{Syntax: proto.String("proto3"), Dependency: strings.Split(strings.Repeat("x ", 20_000), " ")}), "more than 1000 imports"},
	"compiled, 10,000 messages": {compiledFile(manyMessages(10_000)), ""},
}

func compiledFile(file *descriptorpb.FileDescriptorProto) string {
	raw, err := proto.Marshal(file)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func manyMessages(n int) *descriptorpb.FileDescriptorProto {
	file := &descriptorpb.FileDescriptorProto{Syntax: proto.String("proto3")}
	for i := range n {
		file.MessageType = append(file.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(fmt.Sprint("M", i))})
	}
	return file
}

func tree(t testing.TB) (*event.Records, *event.Branch) {
	t.Helper()
	records, err := event.NewRecords(event.Options{FirstVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	wanted := records.Tree()
	return records, &wanted
}

// TestHostileSchemas shows that the memory to compile a schema is limited by the size of the
// schema.
func TestHostileSchemas(t *testing.T) {
	_, wanted := tree(t)
	for name, hostile := range hostileSchemas {
		var err error
		n := allocated(func() { _, err = protobuf.Compile(hostile.schema, nil, wanted) })
		if n > uint64(allocatedPerByte*len(hostile.schema)+allocatedAnyway) {
			t.Errorf("%s: %d MiB allocated for %d bytes", name, n>>20, len(hostile.schema))
		}
		if err != nil && (hostile.says == "" || !strings.Contains(err.Error(), hostile.says)) || err == nil && hostile.says != "" {
			t.Errorf("%s: %v, want %q", name, err, hostile.says)
		}
	}
	imports := map[string]string{}
	for i := range 20 {
		imports[fmt.Sprintf("m%d.proto", i)] = proto3 + strings.Repeat(" ", 30<<10)
	}
	if _, err := protobuf.Compile(proto3, imports, wanted); err == nil || !strings.Contains(err.Error(), "references included") {
		t.Errorf("large references: %v", err)
	}
}

// A mapping can want a oneof, and so each of its fields. The fields may have the same message type,
// which may have a oneof of its own.
func TestHostileOneofs(t *testing.T) {
	tree := func(path ...string) *event.Branch {
		records, err := event.NewRecords(event.Options{Mapping: event.Mapping{Fields: map[event.Field]event.FieldPath{
			event.FieldEventType: {Record: true, Path: path}, event.FieldData: {Path: path}, event.FieldCorrelationID: {Path: append(slices.Clone(path), "x")},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		wanted := records.Tree()
		return &wanted
	}
	levels := strings.Split(strings.Repeat("a ", 29)+"a", " ")
	ofEnums := "enum E{Z=0;" + repeated(5_000, "A#=#;") + "}"
	for name, hostile := range map[string]struct {
		schema, says string
		wanted       *event.Branch
	}{
		"a oneof in a oneof": {
			proto3 + "message E{oneof a{" + repeated(1000, "A a#=#;") + "}} message A{oneof b{" + repeated(1000, "B b#=#;") + "}} message B{string amount=1;}", "", tree("a", "b"),
		},
		"a oneof of itself":          {proto3 + "message A{oneof a{" + repeated(500, "A a#=#;") + "}}", "", tree(levels...)},
		"a large oneof of itself":    {proto3 + "message A{oneof a{" + repeated(10_000, "A a#=#;") + "}}", "more than 20000 fields", tree(levels...)},
		"a oneof of enums":           {proto3 + ofEnums + "message M{oneof a{" + repeated(5_000, "E a#=#;") + "}}", "", tree("a")},
		"oneofs of enums":            {proto3 + ofEnums + repeated(2_000, "message M#{oneof a{E b=1;}}"), "", tree("a")},
		"messages with a oneof each": {proto3 + repeated(5_000, "message A#{oneof a{A# b=1;A# x=2;}}"), "", tree("a")},
	} {
		var err error
		n := allocated(func() { _, err = protobuf.Compile(hostile.schema, nil, hostile.wanted) })
		if n > uint64(allocatedPerByte*len(hostile.schema)+allocatedAnyway) {
			t.Errorf("%s: %d MiB allocated for %d bytes", name, n>>20, len(hostile.schema))
		}
		if (err != nil) != (hostile.says != "") || err != nil && !strings.Contains(err.Error(), hostile.says) {
			t.Errorf("%s: %v, want %q", name, err, hostile.says)
		}
	}
}

// TestHostileValuesOfOneofs shows that the time and the memory to read a value do not grow with the
// number of fields of a oneof.
func TestHostileValuesOfOneofs(t *testing.T) {
	records, err := event.NewRecords(event.Options{Mapping: event.Mapping{
		Envelope: event.Envelope{Path: []string{"a"}, Entries: []string{"lines"}},
		Fields:   map[event.Field]event.FieldPath{event.FieldEventType: {Record: true, Path: []string{"b"}}, event.FieldData: {Path: []string{"b"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	wanted := records.Tree()
	s, err := protobuf.Compile(proto3+"message M{oneof a{"+repeated(5_000, "A a#=#;")+"}} message A{repeated B lines=1;} message B{oneof b{"+repeated(5_000, "A b#=#;")+"}}", nil, &wanted)
	if err != nil {
		t.Fatal(err)
	}
	f := records.Format(s)
	const size = 1 << 20
	for name, value := range map[string][]byte{
		"each field in turn":    append(path(), bytes.Repeat([]byte{1<<3 | 2, 0, 2<<3 | 2, 0}, size/4)...),
		"empty entries":         message(path(), 1, bytes.Repeat([]byte{1<<3 | 2, 0}, size/2)),
		"entries with a field":  message(path(), 1, bytes.Repeat([]byte{1<<3 | 2, 2, 1<<3 | 2, 0}, size/4)),
		"entries of each field": append(path(), bytes.Repeat(append(message(nil, 1, message(nil, 1, nil)), message(nil, 2, message(nil, 1, nil))...), size/8)...),
	} {
		var all []event.Decoded
		n := allocated(func() { all = each(f, value) })
		if n > allocatedByEntries || len(all) != 1 || all[0].Fault == nil || all[0].Fault.Class != event.MalformedPayload {
			t.Errorf("%s: %d KiB allocated, %s", name, n>>10, shown(all))
		}
	}
}

// hostileFile is a schema with lists, a map and recursive messages.
const hostileFile = `syntax = "proto2";
	message Event { optional string eventId = 1; repeated bool flags = 2 [packed = true]; repeated Event events = 3; map<int32, Event> map = 4;
		optional Event one = 5; optional group Data = 6 { optional string amount = 1; optional Data data = 2; repeated int64 numbers = 3; }
		repeated group Rest = 7 { optional Event event = 1; } repeated string accountId = 8; repeated double version = 9 [packed = true]; }`

// TestHostileValues reads values that would need many times their size in memory if all their
// fields were decoded. The format must not allocate this memory.
func TestHostileValues(t *testing.T) {
	records, wanted := tree(t)
	s, err := protobuf.Compile(hostileFile, nil, wanted)
	if err != nil {
		t.Fatal(err)
	}
	f := records.Format(s)
	deep := text(nil, 1, "e-1")
	for range 9_000 {
		deep = message(nil, 5, deep)
	}
	for _, size := range []int{1 << 20, 16 << 20} {
		start := text(path(), 1, "e-1")
		fill := func(b ...byte) []byte { return append(bytes.Clone(start), bytes.Repeat(b, size/len(b))...) }
		values := map[string][]byte{
			"packed booleans":   message(bytes.Clone(start), 2, make([]byte, size)),
			"booleans":          fill(2<<3, 1),
			"empty messages":    fill(3<<3|2, 0),
			"empty entries":     fill(4<<3|2, 0),
			"one message":       fill(5<<3|2, 0),
			"wanted groups":     fill(6<<3|3, 6<<3|4),
			"groups":            fill(7<<3|3, 7<<3|4),
			"wanted texts":      fill(8<<3|2, 1, 'a'),
			"wanted numbers":    message(bytes.Clone(start), 9, make([]byte, size)),
			"unknown groups":    fill(10<<3|3, 10<<3|4),
			"groups of groups":  fill(7<<3 | 3),
			"unknown in groups": fill(10<<3 | 3),
			"a text":            append(bytes.Clone(start), message(nil, 1, make([]byte, size))...),
			"messages, deep":    append(path(), deep...),
		}
		for name, value := range values {
			if size > 1<<20 && !strings.HasPrefix(name, "packed") && !strings.HasPrefix(name, "empty") {
				continue
			}
			var d event.Decoded
			n := allocated(func() { f.Decode(event.Message{Value: value}, &d) })
			if n > allocatedByValue || d.Fault == nil || d.Fault.Class != event.MalformedPayload {
				t.Errorf("%s of %d MiB: %d KiB allocated, %v", name, size>>20, n>>10, d.Fault)
			}
		}
	}
}

// FuzzProtobufSchema checks that the memory to compile any schema and to read any of its values is
// limited. If a run takes longer than a minute, the test panics and reports the input.
func FuzzProtobufSchema(f *testing.F) {
	f.Add([]byte(file), append(path(), credit()...))
	f.Add([]byte(hostileFile), append(path(), 2<<3|2, 2, 0, 1))
	f.Add([]byte(proto3+`message Event { oneof data { Event a = 1; string b = 2; } oneof eventId { string c = 3; } }`), append(path(), 1<<3|2, 0, 2<<3|2, 0))
	for _, hostile := range hostileSchemas {
		if len(hostile.schema) < 4<<10 {
			f.Add([]byte(hostile.schema), path())
		}
	}
	records, wanted := tree(f)
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		hangs := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("hangs on %q and %q", schema, value)) }) //nolint:forbidigo // a fuzzer that hangs would say nothing
		defer hangs.Stop()
		for _, text := range []string{string(schema), base64.StdEncoding.EncodeToString(schema)} {
			var s *protobuf.Schema
			var err error
			n := allocated(func() { s, err = protobuf.Compile(text, map[string]string{"common/money.proto": money}, wanted) })
			if n > uint64(allocatedPerByte*len(text)+allocatedAnyway) {
				t.Errorf("%d MiB allocated for a schema of %d bytes", n>>20, len(text))
			}
			if err != nil {
				continue
			}
			var d event.Decoded
			n = allocated(func() { records.Format(s).Decode(event.Message{Value: value}, &d) })
			if n > uint64(allocatedByValue+len(value)) {
				t.Errorf("%d KiB allocated for a value of %d bytes", n>>10, len(value))
			}
			if d.Fault == nil && d.Identity != event.Identified {
				t.Errorf("%+v", d)
			}
		}
	})
}
