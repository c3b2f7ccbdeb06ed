package avro_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"projector/projection/event"
	"projector/projection/event/avro"
)

// doubling returns a schema in which each record refers twice to the previous record. The schema
// has n levels and 2 to the power of n leaves.
func doubling(n int, leaf string) string {
	s := `{"type":"record","name":"R0","fields":[` + leaf + `]}`
	for i := 1; i <= n; i++ {
		s = fmt.Sprintf(`{"type":"record","name":"R%d","fields":[{"name":"a","type":%s},{"name":"b","type":"R%d"}]}`, i, s, i-1)
	}
	return inEvent(s)
}

// inEvent returns the schema of an event with one additional field of the given type.
func inEvent(kind string) string {
	return `{"type":"record","name":"Event","fields":[{"name":"eventId","type":"string"},{"name":"x","type":` + kind + `}]}`
}

func repeated(n int, between, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
	}
	return strings.Join(parts, between)
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const (
	// allocatedPerByte limits how many bytes the compilation of a schema may allocate for each byte
	// of the schema.
	allocatedPerByte = 512
	// allocatedAnyway is added to the limit that allocatedPerByte gives. It covers small schemas
	// and allocations of other goroutines.
	allocatedAnyway = 2 << 20
	// allocatedByValue limits how many bytes reading a value of any size may allocate.
	allocatedByValue = 256 << 10
)

func namedRecords(n int, format string) string {
	return inEvent(`{"type":"record","name":"R","fields":[` + repeated(n, ",", format) + `]}`)
}

func deep(n int) string {
	return inEvent(deepType(n))
}

// hostileSchemas contains schemas that an attacker could register in order to crash the program.
var hostileSchemas = map[string]struct{ schema, says string }{
	"2^26 records":            {doubling(26, ``), ""},
	"2^26 numbers":            {doubling(26, `{"name":"n","type":"int"}`), ""},
	"2^60 numbers":            {doubling(60, `{"name":"n","type":"int"}`), ""},
	"2^26 default values":     {strings.ReplaceAll(doubling(26, ``), `"},{`, `","default":{}},{`), ""},
	"10,000 fields":           {namedRecords(10_000, `{"name":"a#","type":"int"}`), ""},
	"records of nothing":      {namedRecords(5_000, `{"name":"a#","type":{"type":"record","name":"B#","fields":[]}}`), ""},
	"a record of itself":      {namedRecords(10_000, `{"name":"a#","type":"R"}`), ""},
	"a tree of itself":        {namedRecords(10_000, `{"name":"a#","type":["null","R"]}`), ""},
	"names before their type": {namedRecords(4_000, `{"name":"a#","type":"B#"},{"name":"b#","type":{"type":"record","name":"B#","fields":[]}}`), ""},
	"a large union":           {inEvent(`[` + repeated(9_000, ",", `{"type":"record","name":"B#","fields":[]}`) + `]`), ""},
	"50,000 symbols":          {inEvent(`{"type":"enum","name":"R","symbols":[` + repeated(50_000, ",", `"a#"`) + `]}`), ""},
	"long decimals":           {namedRecords(4_000, `{"name":"a#","type":{"type":"bytes","logicalType":"decimal","precision":65000,"scale":65000}}`), ""},
	"arrays, 900 deep":        {deep(900), ""},
	"arrays, 1,300 deep":      {deep(1_300), "invalid array"},
	"JSON, 100,000 deep":      {strings.Repeat(`{"type":`, 100_000), ""},
	"more than 512 KiB":       {namedRecords(20_000, `{"name":"a#","type":"int"}`), "larger than 524288 bytes"},
}

// TestHostileSchemas shows that the memory to compile a schema is limited by the size of the
// schema. It also shows that reading a value of the schema allocates at most allocatedByValue.
func TestHostileSchemas(t *testing.T) {
	records, err := event.NewRecords(options)
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	for name, hostile := range hostileSchemas {
		var s *avro.Schema
		n := allocated(func() { s, err = avro.Compile(hostile.schema, nil, &tree) })
		if n > uint64(allocatedPerByte*len(hostile.schema)+allocatedAnyway) {
			t.Errorf("%s: %d MiB allocated for %d bytes", name, n>>20, len(hostile.schema))
		}
		if err != nil && !strings.Contains(err.Error(), hostile.says) || err == nil && hostile.says != "" {
			t.Errorf("%s: %v, want %q", name, err, hostile.says)
		}
		if err != nil {
			continue
		}
		f := records.Format(s)
		for _, value := range [][]byte{make([]byte, 1<<20), bytes.Repeat([]byte{2}, 1<<20), bytes.Repeat([]byte{4}, 1<<20)} {
			var d event.Decoded
			if n := allocated(func() { f.Decode(event.Message{Value: value}, &d) }); n > allocatedByValue || d.Fault == nil {
				t.Errorf("%s: %d KiB allocated by a value, %v", name, n>>10, d.Fault)
			}
		}
	}
	large := namedRecords(3_000, `{"name":"a#","type":"int"}`)
	if _, err := avro.Compile(large, slices.Repeat([]string{large}, 10), &tree); err == nil || !strings.Contains(err.Error(), "references included") {
		t.Errorf("large references: %v", err)
	}
}

// TestHostileValues reads values that would need much more memory than their size if they were
// decoded, and values that would take long to read.
func TestHostileValues(t *testing.T) {
	const (
		empty = `{"type":"record","name":"None","fields":[]}`
		size  = 8 << 20
	)
	block := func(count int64, body ...byte) []byte { return append(varint(count), body...) }
	start := avroText("e-1")
	for name, tt := range map[string]struct {
		schema string
		value  []byte
		says   string
	}{
		"no bytes, 2^26 records":     {doubling(26, ``), start, "more steps"},
		"10^9 nulls":                 {inEvent(`{"type":"array","items":"null"}`), append(start, block(1_000_000_000, 0)...), "more steps"},
		"2^62 records":               {inEvent(`{"type":"array","items":` + empty + `}`), append(start, block(1<<62, 0)...), "more steps"},
		"arrays of 4,096 nulls each": {inEvent(`{"type":"array","items":{"type":"array","items":"null"}}`), append(append(start, varint(size)...), bytes.Repeat(block(4096, 0), size/3)...), "more steps"},
		"8 MiB of booleans":          {inEvent(`{"type":"array","items":"boolean"}`), append(append(start, varint(size)...), make([]byte, size+1)...), "accountId"},
		"booleans for the event id":  {`{"type":"record","name":"E","fields":[{"name":"eventId","type":{"type":"array","items":"boolean"}}]}`, append(varint(size), make([]byte, size+1)...), "eventId"},
		"8 MiB of data":              {strings.Replace(inEvent(`["null","string",{"type":"map","values":"null"}]`), `"x"`, `"data"`, 1), append(append(append(start, 4), varint(size)...), make([]byte, size+1)...), "accountId"},
		"arrays in arrays":           {inEvent(deepType(400)), append(start, bytes.Repeat([]byte{2}, 4096)...), "ends before"},
		"a list of itself":           {inEvent(`{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}`), append(start, bytes.Repeat([]byte{2}, size)...), "does not follow"},
		"a record of itself":         {namedRecords(10_000, `{"name":"a#","type":"R"}`), start, "does not follow"},
		"a text of 2^62 bytes":       {inEvent(`"string"`), append(start, varint(1<<62)...), "ends before"},
		"a text of -1 bytes":         {inEvent(`"string"`), append(start, varint(-1)...), "does not follow"},
		"a block of -1 bytes":        {inEvent(`{"type":"array","items":"int"}`), append(start, append(varint(-5), varint(-1)...)...), "does not follow"},
		"the smallest count":         {inEvent(`{"type":"array","items":"int"}`), append(start, append(varint(math.MinInt64), varint(1)...)...), "does not follow"},
		"a fixed of 2 GiB":           {inEvent(`{"type":"fixed","name":"F","size":2147483647}`), append(start, 1), "ends before"},
	} {
		f := format(t, options, tt.schema)
		var d event.Decoded
		if n := allocated(func() { f.Decode(event.Message{Value: tt.value}, &d) }); n > allocatedByValue {
			t.Errorf("%s: %d MiB allocated", name, n>>20)
		}
		if d.Fault == nil || d.Fault.Class != event.MalformedPayload || !strings.Contains(d.Fault.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", name, d.Fault, tt.says)
		}
	}
}

func deepType(n int) string {
	return strings.Repeat(`{"type":"array","items":`, n) + `"int"` + strings.Repeat(`}`, n)
}

// FuzzAvroSchema checks that the memory to compile any schema and to read any of its values is
// limited. If a run takes longer than a minute, the test panics and reports the input.
func FuzzAvroSchema(f *testing.F) {
	f.Add([]byte(benchSchema), []byte{0})
	for _, hostile := range hostileSchemas {
		if len(hostile.schema) < 64<<10 {
			f.Add([]byte(hostile.schema), bytes.Repeat([]byte{2}, 100))
		}
	}
	records, err := event.NewRecords(options)
	if err != nil {
		f.Fatal(err)
	}
	tree := records.Tree()
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		hangs := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("hangs on %q and %q", schema, value)) }) //nolint:forbidigo // a fuzzer that hangs would say nothing
		defer hangs.Stop()
		var s *avro.Schema
		n := allocated(func() { s, err = avro.Compile(string(schema), nil, &tree) })
		if n > uint64(allocatedPerByte*len(schema)+allocatedAnyway) {
			t.Errorf("%d MiB allocated for a schema of %d bytes", n>>20, len(schema))
		}
		if err != nil {
			return
		}
		var d event.Decoded
		n = allocated(func() { records.Format(s).Decode(event.Message{Value: value}, &d) })
		if n > uint64(allocatedByValue+len(value)) {
			t.Errorf("%d KiB allocated for a value of %d bytes", n>>10, len(value))
		}
		if d.Fault == nil && d.Identity != event.Identified {
			t.Errorf("%+v", d)
		}
	})
}
