package event_test

import (
	"fmt"
	"strings"
	"testing"

	avrolib "github.com/twmb/avro"
	"google.golang.org/protobuf/encoding/protowire"

	"projector/projection/event"
	"projector/projection/event/avro"
	"projector/projection/event/protobuf"
)

// postingMapping returns a mapping for records whose entries are in the array at the given path.
func postingMapping(entries ...string) event.Mapping {
	return event.Mapping{
		Types: map[string]event.Type{"C": event.TypeNamed("FundsCredited"), "D": event.TypeNamed("FundsDebited")},
		Fields: map[event.Field]event.FieldPath{
			event.FieldEventID: {Outer: []string{"id"}, Written: event.WrittenInteger}, event.FieldOccurredAt: {Outer: []string{"at"}},
			event.FieldAccountID: path("account"), event.FieldVersion: path("seq"), event.FieldEventType: path("side"),
			event.FieldData: {}, event.FieldAmount: path("cents"), event.FieldCurrency: {Constant: "EUR"},
		},
		Time: event.Milliseconds, Amount: event.AmountShape{Form: event.AmountMinor}, Envelope: event.Envelope{Entries: entries},
	}
}

// The function each formats every event of a value as "ENTRY ID ACCOUNT@VERSION AMOUNT", or as the
// entry's number and the fault.
func each(f event.Format, value string) string {
	var all []string
	var d *event.Decoded
	last := int32(0)
	add := func() {
		ev := &d.Event
		text := fmt.Sprintf("%d %s %s@%d %d", last, ev.ID, ev.AccountID, ev.Version, ev.Signed())
		if d.Fault != nil {
			text = fmt.Sprint(last, " ", d.Fault)
		}
		all = append(all, text)
	}
	event.DecodeEach(f, event.Message{Value: []byte(value)}, func(entry int32) *event.Decoded {
		if d != nil {
			add()
		}
		d, last = new(event.Decoded), entry
		return d
	})
	add()
	return strings.Join(all, ", ")
}

const twoEntries = "1 7/0 a@1 -5, 2 7/1 b@2 5"

func TestAvroSeries(t *testing.T) {
	const entry = `{"type":"record","name":"Entry","fields":[{"name":"account","type":["null","string"]},{"name":"seq","type":"int"},
		{"name":"side","type":{"type":"enum","name":"Side","symbols":["C","D"]}},{"name":"cents","type":"long"},{"name":"tags","type":{"type":"array","items":"string"}}]}`
	one := map[string]any{"account": "a", "seq": int32(1), "side": "D", "cents": int64(5), "tags": []any{"x"}}
	two := map[string]any{"account": "b", "seq": int32(2), "side": "C", "cents": int64(5), "tags": []any{}}
	many := make([]any, event.MostEntries+1)
	for i := range many {
		many[i] = one
	}
	for name, tt := range map[string]struct {
		list  string // type of the field
		value any
		want  string
	}{
		"two":             {`{"type":"array","items":` + entry + `}`, []any{one, two}, twoEntries},
		"null or entries": {`["null",{"type":"array","items":["null",` + entry + `]}]`, []any{one, two}, twoEntries},
		"null":            {`["null",{"type":"array","items":` + entry + `}]`, nil, "0 lines: is null"},
		"none":            {`{"type":"array","items":` + entry + `}`, []any{}, "0 lines: has no entries"},
		"a null entry":    {`{"type":"array","items":["null",` + entry + `]}`, []any{nil, two}, "1 lines[].account: is missing, 2 7/1 b@2 5"},
		"texts":           {`{"type":"array","items":"string"}`, []any{"x"}, "1 lines[].account: is missing"},
		"too many":        {`{"type":"array","items":` + entry + `}`, many, "0 lines: has more than 1000 entries"},
		"a record":        {entry, one, "0 lines: is not an array, as the mapping declares"},
		"a map":           {`{"type":"map","values":` + entry + `}`, map[string]any{"k": one}, "0 lines: is not an array, as the mapping declares"},
		"a text":          {`"string"`, "[]", "0 lines: is not an array, as the mapping declares"},
		"nothing, a lot":  {`{"type":"array","items":"null"}`, make([]any, 4000), "0 lines: has more than 1000 entries"},
	} {
		schema := `{"type":"record","name":"Posting","fields":[{"name":"id","type":"long"},{"name":"lines","type":` + tt.list + `},{"name":"at","type":"long"}]}`
		value, err := avrolib.MustParse(schema).Encode(map[string]any{"id": int64(7), "at": int64(1767225600123), "lines": tt.value})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, tree := records(t, event.Options{Mapping: postingMapping("lines")})
		s, err := avro.Compile(schema, nil, &tree)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Format(s)
		if got := each(f, string(value)); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
		if got := each(f, string(value)); got != tt.want {
			t.Errorf("%s, again:\n got %s\nwant %s", name, got, tt.want)
		}
		if got := each(f, string(value[:len(value)-1])); !strings.HasPrefix(got, "0 ") || !strings.Contains(got, "ends before") {
			t.Errorf("%s, cut: %s", name, got)
		}
	}
}

func TestProtobufSeries(t *testing.T) {
	const file = `syntax = "proto2";
		message Posting { optional int64 id = 1; optional int64 at = 2; repeated Entry lines = 3; repeated group Line = 4 { optional string account = 1; optional int32 seq = 2; optional string side = 3; optional int64 cents = 4; }
			map<string, Entry> by_name = 5; optional Entry single = 6; repeated string texts = 7; }
		message Entry { optional string account = 1; optional int32 seq = 2; optional string side = 3; optional int64 cents = 4; }`
	number := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	text := func(b []byte, n protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	entry := func(account string, seq uint64, side string) string {
		return string(number(text(number(text(nil, 1, account), 2, seq), 3, side), 4, 5))
	}
	one, two := entry("a", 1, "D"), entry("b", 2, "C")
	posting := func(rest []byte) []byte { return append(number(number([]byte{0}, 1, 7), 2, 1767225600123), rest...) }
	group := func(b []byte, inner string) []byte {
		b = append(protowire.AppendTag(b, 4, protowire.StartGroupType), inner...)
		return protowire.AppendTag(b, 4, protowire.EndGroupType)
	}
	var many []byte
	for range event.MostEntries + 1 {
		many = text(many, 3, one)
	}
	for name, tt := range map[string]struct {
		path, value, want string
	}{
		"two":            {"lines", string(posting(text(text(nil, 3, one), 3, two))), twoEntries},
		"before the id":  {"lines", "\x00" + string(text(text(nil, 3, one), 3, two)) + string(posting(nil)[1:]), twoEntries},
		"none":           {"lines", string(posting(nil)), "0 lines: has no entries"},
		"an empty one":   {"lines", string(posting(text(text(nil, 3, ""), 3, two))), "1 lines[].account: is missing, 2 7/1 b@2 5"},
		"too many":       {"lines", string(posting(many)), "0 lines: has more than 1000 entries"},
		"a broken one":   {"lines", string(posting(text(text(nil, 3, one), 3, "\x0a\xff"))), "0 the value does not follow its schema"},
		"groups":         {"line", string(posting(group(group(nil, one), two))), strings.ReplaceAll(twoEntries, "lines", "line")},
		"a map":          {"by_name", string(posting(text(nil, 5, string(text(text(nil, 1, "k"), 2, one))))), "0 by_name: is not an array, as the mapping declares"},
		"one message":    {"single", string(posting(text(nil, 6, one))), "0 single: is not an array, as the mapping declares"},
		"a list of text": {"texts", string(posting(text(nil, 7, one))), "0 texts: is not an array, as the mapping declares"},
	} {
		r, tree := records(t, event.Options{Mapping: postingMapping(tt.path)})
		s, err := protobuf.Compile(file, nil, &tree)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Format(s)
		for range 2 {
			if got := each(f, tt.value); got != tt.want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
			}
		}
	}
}

// The event may be at a path, or it may be JSON in a text. Both forms also work if the value has a
// schema.
func TestEnvelopesWithASchema(t *testing.T) {
	const inner = `{"type":"record","name":"Inner","fields":[{"name":"account","type":"string"},{"name":"seq","type":"int"},{"name":"side","type":"string"},{"name":"cents","type":"long"}]}`
	one := map[string]any{"account": "a", "seq": int32(1), "side": "D", "cents": int64(5)}
	const json = `{"account":"a","seq":1,"side":"D","cents":5}`
	for name, tt := range map[string]struct {
		kind     string
		value    any
		envelope event.Envelope
		want     string
	}{
		"below a path":         {inner, one, event.Envelope{Path: []string{"body"}}, "0 7 a@1 -5"},
		"as text":              {`"string"`, json, event.Envelope{Path: []string{"body"}, Escaped: true}, "0 7 a@1 -5"},
		"as text, broken":      {`"string"`, "{", event.Envelope{Path: []string{"body"}, Escaped: true}, "0 body: the JSON text ends too early"},
		"as text, not text":    {`"long"`, int64(5), event.Envelope{Path: []string{"body"}, Escaped: true}, "0 body: is not a text that holds JSON, as the mapping declares"},
		"as text, null":        {`["null","string"]`, nil, event.Envelope{Path: []string{"body"}, Escaped: true}, "0 body: is null"},
		"as text, two entries": {`"string"`, "[" + json + ",{}]", event.Envelope{Path: []string{"body"}, Escaped: true, Entries: []string{}}, "1 7/0 a@1 -5, 2 body[].account: is missing"},
	} {
		schema := `{"type":"record","name":"Posting","fields":[{"name":"id","type":"long"},{"name":"body","type":` + tt.kind + `},{"name":"at","type":"long"}]}`
		value, err := avrolib.MustParse(schema).Encode(map[string]any{"id": int64(7), "at": int64(1767225600123), "body": tt.value})
		if err != nil {
			t.Fatal(err)
		}
		m := postingMapping()
		m.Envelope = tt.envelope
		r, tree := records(t, event.Options{Mapping: m})
		s, err := avro.Compile(schema, nil, &tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := each(r.Format(s), string(value)); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}
