package avro_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	lib "github.com/twmb/avro"

	"projector/projection/event"
	"projector/projection/event/avro"
)

var options = event.Options{FirstVersion: 1}

// The function envelope returns the schema of an event with the given types for version, occurredAt
// and data.
func envelope(version, at, data string) string {
	return fmt.Sprintf(`{"type":"record","name":"Event","namespace":"bank","fields":[
		{"name":"eventId","type":{"type":"string","logicalType":"uuid"}},
		{"name":"eventType","type":{"type":"enum","name":"Kind","symbols":["AccountOpened","FundsCredited"]}},
		{"name":"accountId","type":"string"},{"name":"version","type":%s},{"name":"occurredAt","type":%s},
		{"name":"extra","type":["null",{"type":"array","items":"bank.Kind"}],"default":null},{"name":"data","type":%s}]}`, version, at, data)
}

func record(amount string) string {
	return `{"type":"record","name":"Data","fields":[{"name":"amount","type":` + amount + `},{"name":"currency","type":"string"}]}`
}

const (
	long   = `"long"`
	micros = `{"type":"long","logicalType":"timestamp-micros"}`
)

func format(t interface {
	Helper()
	Fatal(...any)
}, opts event.Options, schema string, references ...string,
) event.Format {
	t.Helper()
	records, err := event.NewRecords(opts)
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	s, err := avro.Compile(schema, references, &tree)
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

// The variable raw makes the library's encoder accept decimals and times in their encoded form.
var raw = []lib.SchemaOpt{
	lib.CustomType{LogicalType: "decimal"},
	lib.CustomType{LogicalType: "timestamp-millis"},
	lib.CustomType{LogicalType: "uuid"},
	lib.CustomType{LogicalType: "timestamp-micros"},
	lib.CustomType{LogicalType: "timestamp-nanos"},
	lib.CustomType{LogicalType: "local-timestamp-micros"},
}

func encode(t testing.TB, schema string, changes map[string]any) []byte {
	t.Helper()
	all := map[string]any{
		"eventId": "e-1", "eventType": "FundsCredited", "accountId": "acc-1", "version": int64(17), "occurredAt": int64(1_767_225_600_123_456),
		"data": map[string]any{"amount": "10.25", "currency": "EUR"},
	}
	for name, v := range changes {
		all[name] = v
	}
	value, err := lib.MustParse(schema, raw...).Encode(all)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func data(amount any, currency string) map[string]any {
	return map[string]any{"data": map[string]any{"amount": amount, "currency": currency}}
}

func TestAmounts(t *testing.T) {
	decimal := func(scale int) string {
		return fmt.Sprintf(`{"type":"bytes","logicalType":"decimal","precision":40,"scale":%d}`, scale)
	}
	fixed := `{"type":"fixed","name":"Money","size":9,"logicalType":"decimal","precision":18,"scale":2}`
	for name, tt := range map[string]struct {
		kind     string
		amount   any
		currency string
		want     int64 // 0 means a fault of this class
		class    event.Class
	}{
		"text":                      {`"string"`, "10.25", "EUR", 1025, ""},
		"decimal":                   {decimal(2), []byte{0x04, 0x01}, "EUR", 1025, ""},
		"decimal, sign extended":    {decimal(2), []byte{0, 0, 0, 0x04, 0x01}, "EUR", 1025, ""},
		"decimal in a fixed":        {fixed, []byte{0, 0, 0, 0, 0, 0, 0, 4, 1}, "EUR", 1025, ""},
		"decimal or null":           {`["null",` + decimal(2) + `]`, []byte{0x04, 0x01}, "EUR", 1025, ""},
		"decimal without fraction":  {decimal(0), []byte{10}, "EUR", 1000, ""},
		"decimal, smallest":         {decimal(2), []byte{1}, "EUR", 1, ""},
		"zeros of the scale":        {decimal(4), []byte{0x01, 0x86, 0xa0}, "JPY", 10, ""},                               // 10.0000
		"a long scale":              {decimal(18), append([]byte{1}, make([]byte, 8)...), "EUR", 0, event.InvalidAmount}, // 18.446…
		"more digits than EUR has":  {decimal(3), []byte{0x27, 0x11}, "EUR", 0, event.InvalidAmount},                     // 10.001
		"three digits, three in it": {decimal(3), []byte{0x27, 0x11}, "KWD", 10001, ""},
		"negative":                  {decimal(2), []byte{0xff}, "EUR", 0, event.InvalidAmount},
		"zero":                      {decimal(2), []byte{0}, "EUR", 0, event.InvalidAmount},
		"largest":                   {decimal(2), []byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "EUR", math.MaxInt64, ""},
		"too large":                 {decimal(2), []byte{0, 0x80, 0, 0, 0, 0, 0, 0, 0}, "EUR", 0, event.InvalidAmount},
		"beyond all money":          {decimal(2), append([]byte{1}, make([]byte, 1000)...), "EUR", 0, event.InvalidAmount},
		"no bytes":                  {decimal(2), []byte{}, "EUR", 0, event.MalformedPayload},
		"bytes without a scale":     {`"bytes"`, []byte{0x04, 0x01}, "EUR", 0, event.MalformedPayload},
		"double":                    {`"double"`, 10.25, "EUR", 0, event.MalformedPayload},
		"float":                     {`"float"`, float32(10.25), "EUR", 0, event.MalformedPayload},
		"long":                      {long, int64(1025), "EUR", 0, event.MalformedPayload},
		"null":                      {`["null","string"]`, nil, "EUR", 0, event.MalformedPayload},
		"text with an exponent":     {`"string"`, "1e3", "EUR", 0, event.InvalidAmount},
		"other currency":            {`"string"`, "1", "XXX", 0, event.UnsupportedCurrency},
	} {
		schema := envelope(long, micros, record(tt.kind))
		d := decode(format(t, options, schema), encode(t, schema, data(tt.amount, tt.currency)))
		switch {
		case d.Identity != event.Identified || d.Event.ID != "e-1" || d.Event.AccountID != "acc-1" || d.Event.Version != 17:
			t.Errorf("%s: %+v, fault %v", name, d, d.Fault)
		case tt.want == 0 && (d.Fault == nil || d.Fault.Class != tt.class):
			t.Errorf("%s: %+v, fault %v, want class %s", name, d.Event, d.Fault, tt.class)
		case tt.want != 0 && (d.Fault != nil || d.Event.Amount != tt.want || d.Event.Currency.Code() != tt.currency):
			t.Errorf("%s: %+v, fault %v, want %d", name, d.Event, d.Fault, tt.want)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		kind    string
		version any
		want    int64 // 0 means malformed
	}{
		{long, int64(math.MaxInt64), math.MaxInt64},
		{`"int"`, int32(5), 5},
		{`["null","int"]`, int32(5), 5},
		{`["null","int"]`, nil, 0},
		{long, int64(0), 0},
		{long, int64(-3), 0},
		{`"double"`, 5.0, 0},
		{`"float"`, float32(5), 0},
		{`"string"`, "5", 0},
		{micros, int64(5), 0},
	} {
		schema := envelope(tt.kind, micros, record(`"string"`))
		d := decode(format(t, options, schema), encode(t, schema, map[string]any{"version": tt.version}))
		good := d.Fault == nil && d.Event.Version == tt.want
		malformed := d.Identity == event.Unidentified && d.Fault != nil && d.Fault.Class == event.MalformedPayload && d.Fault.Field == "version"
		if tt.want != 0 && !good || tt.want == 0 && !malformed {
			t.Errorf("%v as %s: %+v, fault %v", tt.version, tt.kind, d.Event, d.Fault)
		}
	}
}

func TestTimes(t *testing.T) {
	want := time.Date(2026, 1, 1, 0, 0, 0, 123_456_000, time.UTC)
	logical := func(name string) string { return `{"type":"long","logicalType":"` + name + `"}` }
	for _, tt := range []struct {
		kind string
		at   any
		want int64 // 0 means malformed
	}{
		{logical("timestamp-micros"), want.UnixMicro(), want.UnixMicro()},
		{logical("timestamp-millis"), want.UnixMilli(), want.UnixMilli() * 1000},
		{logical("timestamp-nanos"), want.UnixNano() + 999, want.UnixMicro()},
		{logical("timestamp-nanos"), int64(-1), -1},
		{logical("timestamp-millis"), int64(math.MaxInt64), 0},
		{logical("timestamp-millis"), int64(math.MinInt64), 0},
		{logical("timestamp-micros"), int64(math.MinInt64), 0},
		{logical("local-timestamp-micros"), want.UnixMicro(), 0},
		{long, want.UnixMicro(), 0},
		{`["null",` + micros + `]`, nil, 0},
		{`["null",` + micros + `]`, want.UnixMicro(), want.UnixMicro()},
		{`"string"`, "2026-01-01T01:00:00.123456+01:00", want.UnixMicro()},
		{`"string"`, "2026-01-01", 0},
	} {
		schema := envelope(long, tt.kind, record(`"string"`))
		d := decode(format(t, options, schema), encode(t, schema, map[string]any{"occurredAt": tt.at}))
		good := d.Fault == nil && d.Event.OccurredAt == tt.want
		malformed := d.Identity == event.Identified && d.Fault != nil && d.Fault.Class == event.MalformedPayload && d.Fault.Field == "occurredAt"
		if tt.want != 0 && !good || tt.want == 0 && !malformed {
			t.Errorf("%v as %s: %+v, fault %v", tt.at, tt.kind, d.Event, d.Fault)
		}
	}
}

// A damaged value gives a fault and does not affect other values. The fields that were read from it
// before the damage are not used.
func TestBrokenValues(t *testing.T) {
	schema := envelope(long, micros, record(`"string"`))
	f, value := format(t, options, schema), encode(t, schema, nil)
	for n := range value {
		if d := decode(f, value[:n]); d.Identity != event.Unidentified || d.Fault == nil || d.Fault.Class != event.MalformedPayload {
			t.Errorf("%d of %d bytes: %+v, fault %v", n, len(value), d, d.Fault)
		}
	}
	if d := decode(f, append(value, 0)); d.Fault == nil || d.Identity != event.Unidentified {
		t.Errorf("with a byte behind it: %+v", d)
	}
	broken := []byte(strings.Replace(string(value), "EUR", "E\xffR", 1))
	if d := decode(f, broken); d.Fault == nil || d.Fault.Class != event.MalformedPayload || d.Identity != event.Unidentified {
		t.Errorf("text that is not UTF-8: %+v, fault %v", d, d.Fault)
	}
	if d := decode(f, value); d.Fault != nil {
		t.Errorf("the whole value: %v", d.Fault)
	}
}

func TestReferencesAndMapping(t *testing.T) {
	money := `{"type":"record","name":"Money","namespace":"common","fields":[{"name":"value","type":"string"},
		{"name":"unit","type":{"type":"map","values":"string"}}]}`
	header := `{"type":"record","name":"Header","namespace":"common","fields":[{"name":"seq","type":"int"},
		{"name":"fee","type":["null","common.Money"]},{"name":"parent","type":["null","common.Header"]}]}`
	schema := `{"type":"record","name":"Deposited","namespace":"bank","fields":[{"name":"meta","type":["common.Header","null"]},
		{"name":"id","type":"string"},{"name":"name","type":"string"},{"name":"account","type":"string"},
		{"name":"body","type":["null","string","common.Money"]},{"name":"at","type":` + micros + `}]}`
	path := func(names ...string) event.FieldPath { return event.FieldPath{Path: names} }
	f := format(t, event.Options{Mapping: event.Mapping{
		Types: map[string]event.Type{"MoneyDeposited": event.TypeNamed("FundsCredited")},
		Fields: map[event.Field]event.FieldPath{
			event.FieldEventID: path("id"), event.FieldEventType: path("name"), event.FieldAccountID: path("account"),
			event.FieldVersion: path("meta", "seq"), event.FieldOccurredAt: path("at"), event.FieldData: path("body"),
			event.FieldAmount: path("value"), event.FieldCurrency: path("unit", "iso"),
		},
	}}, schema, money, header)
	var cache lib.SchemaCache
	for _, text := range []string{money, header} {
		if _, err := cache.Parse(text); err != nil {
			t.Fatal(err)
		}
	}
	writer, err := cache.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	value, err := writer.Encode(map[string]any{
		"meta": map[string]any{"seq": int32(3), "fee": nil, "parent": map[string]any{"seq": int32(9), "fee": nil, "parent": nil}},
		"id":   "e-1", "name": "MoneyDeposited", "account": "acc-1", "at": time.UnixMicro(5),
		"body": map[string]any{"value": "10.25", "unit": map[string]any{"iso": "EUR"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := decode(f, value)
	if e := d.Event; d.Fault != nil || e.Version != 3 || e.Amount != 1025 || e.OccurredAt != 5 || e.Type != event.TypeNamed("FundsCredited") {
		t.Errorf("%+v, fault %v", d.Event, d.Fault)
	}
}

// Producers that write several event types into a topic have a record for each type. They register
// a union of these records, or each record as a schema of its own. The name of the record is then
// the type.
func TestTheNameOfTheRecordIsTheType(t *testing.T) {
	recordOf := func(name, data string) string {
		return `{"type":"record","name":"` + name + `","namespace":"bank.ledger","fields":[{"name":"eventId","type":"string"},
			{"name":"accountId","type":"string"},{"name":"version","type":"long"},{"name":"occurredAt","type":` + micros + `},{"name":"data","type":` + data + `}]}`
	}
	credited, debited := recordOf("Credited", record(`"string"`)), recordOf("Debited", `"bank.ledger.Data"`)
	opts := event.Options{FirstVersion: 1, Mapping: event.Mapping{
		Types: map[string]event.Type{
			"bank.ledger.Credited": event.TypeNamed("FundsCredited"), "bank.ledger.Debited": event.TypeNamed("FundsDebited"),
		},
		Fields: map[event.Field]event.FieldPath{event.FieldEventType: {Record: true}},
	}}
	encoded := encode(t, credited, nil)
	check := func(name, schema string, value []byte, want string, references ...string) {
		t.Helper()
		d := decode(format(t, opts, schema, references...), value)
		if e := d.Event; d.Fault != nil || e.TypeName != want || e.Version != 17 || e.Amount != 1025 {
			t.Errorf("%s: %+v, fault %v; want %s", name, e, d.Fault, want)
		}
	}
	check("a schema for each type", credited, encoded, "FundsCredited")
	const union = `["bank.ledger.Credited","bank.ledger.Debited"]`
	check("the first of a union", union, append([]byte{0}, encoded...), "FundsCredited", credited, debited)
	check("the second of a union", union, append([]byte{2}, encoded...), "FundsDebited", credited, debited)
	check("a union without references", "["+credited+","+debited+"]", append([]byte{2}, encoded...), "FundsDebited")
	if d := decode(format(t, opts, union, credited, debited), append([]byte{4}, encoded...)); d.Fault == nil || d.Fault.Class != event.MalformedPayload {
		t.Errorf("a third record: %+v, fault %v", d.Event, d.Fault)
	}
	if d := decode(format(t, opts, recordOf("Reversed", record(`"string"`))), encoded); d.Fault == nil || d.Fault.Class != event.UnknownEventType {
		t.Errorf("a record that the mapping does not name: %+v, fault %v", d.Event, d.Fault)
	}
}

func TestTheNameOfARecordInsideTheEvent(t *testing.T) {
	const (
		money = `"fields":[{"name":"amount","type":"string"},{"name":"currency","type":"string"}]`
		inner = `["null",{"type":"record","name":"Credited",` + money + `},{"type":"record","name":"Debited","namespace":"other",` + money + `},
			{"type":"array","items":"bank.Credited"}]`
	)
	opts := event.Options{FirstVersion: 1, Mapping: event.Mapping{
		Types: map[string]event.Type{
			"FundsCredited/bank.Credited": event.TypeNamed("FundsCredited"), "FundsCredited/other.Debited": event.TypeNamed("FundsDebited"),
			"FundsCredited/": event.Ignorable,
		},
		Fields: map[event.Field]event.FieldPath{event.FieldEventType: {
			Separator: '/', Join: []event.FieldPath{{Path: []string{"eventType"}}, {Record: true, Path: []string{"data"}, Optional: true}},
		}},
	}}
	schema := envelope(long, micros, inner)
	f := format(t, opts, schema)
	amount := map[string]any{"amount": "10.25", "currency": "EUR"}
	for name, tt := range map[string]struct {
		data any
		want string
	}{
		"inherits the namespace": {map[string]any{"bank.Credited": amount}, "FundsCredited"},
		"its own namespace":      {map[string]any{"other.Debited": amount}, "FundsDebited"},
		"null":                   {nil, ""},
		"an array":               {[]any{amount}, ""},
	} {
		d := decode(f, encode(t, schema, map[string]any{"data": tt.data}))
		if tt.want == "" && (d.Fault != nil || d.Event.Type != event.Ignorable) || tt.want != "" && (d.Event.TypeName != tt.want || d.Event.Amount != 1025) {
			t.Errorf("%s: %+v, fault %v", name, d.Event, d.Fault)
		}
	}
}

// Avro for Java, and so Confluent's registry, accepts names that the specification does not: any
// namespace, and letters of all alphabets.
func TestNamesAsJavaAcceptsThem(t *testing.T) {
	schema := strings.ReplaceAll(envelope(long, micros, record(`"string"`)), "bank", "com.my-bank.v1$")
	f := format(t, options, strings.ReplaceAll(schema, `"extra"`, `"Zusätze"`), `{"type":"fixed","name":"Prüfsumme","namespace":"com.my-bank","size":4}`)
	value := encode(t, envelope(long, micros, record(`"string"`)), nil)
	if d := decode(f, value); d.Fault != nil || d.Event.ID != "e-1" || d.Event.Amount != 1025 {
		t.Errorf("%+v, fault %v", d.Event, d.Fault)
	}
	const diamond = `{"type":"enum","name":"Kind","namespace":"com.my-bank","symbols":["a"]}`
	format(t, options, `{"type":"record","name":"E","fields":[{"name":"eventId","type":"com.my-bank.Kind"}]}`, diamond, diamond)
}

// Avro for Java, and so Confluent's registry, ignores attributes that a type cannot have, and does not
// compare aliases with names. A producer that has renamed a field may give its old name to a new one.
func TestAttributesThatJavaIgnores(t *testing.T) {
	plain := envelope(long, micros, record(`"string"`))
	value := encode(t, plain, nil)
	for old, odd := range map[string]string{
		`"type":"array",`:         `"type":"array","name":"extra","namespace":"x","size":3,"values":"int",`,
		`"name":"Data",`:          `"name":"Data","namespace":null,"aliases":["Event"],"symbols":["A"],"items":"int",`,
		`"name":"Event",`:         `"name":"Event","aliases":["E"],"size":5,"doc":{"fields":1},`,
		`"name":"version","type"`: `"name":"version","aliases":["eventId","version"],"order":"IGNORE","type"`,
	} {
		schema := strings.Replace(plain, old, odd, 1)
		if schema == plain {
			t.Fatalf("no %s in %s", old, plain)
		}
		if d := decode(format(t, options, schema), value); d.Fault != nil || d.Event.Amount != 1025 {
			t.Errorf("%s: %+v, fault %v", odd, d.Event, d.Fault)
		}
	}
	const decimal = `{"type":"bytes","logicalType":"decimal","precision":9,"scale":2`
	f := format(t, options, envelope(long, micros, record(decimal+`,"size":2}`)))
	if d := decode(f, encode(t, envelope(long, micros, record(`"bytes"`)), data([]byte{4, 1}, "EUR"))); d.Fault != nil || d.Event.Amount != 1025 {
		t.Errorf("a decimal with a size: %+v, fault %v", d.Event, d.Fault)
	}
}

// The specification says that an invalid decimal is read as its underlying type. For example, Kafka
// Connect's JDBC source writes scale 127 for Oracle's NUMBER without a precision.
func TestInvalidDecimalsAreBytes(t *testing.T) {
	for name, invalid := range map[string]string{
		"scale above precision": `{"type":"bytes","scale":127,"precision":64,"connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}`,
		"no precision":          `{"type":"bytes","logicalType":"decimal","scale":2}`,
		"precision 0":           `{"type":"bytes","logicalType":"decimal","precision":0}`,
		"negative scale":        `{"type":"bytes","logicalType":"decimal","precision":4,"scale":-1}`,
		"precision is a text":   `{"type":"bytes","logicalType":"decimal","precision":"10","scale":"2"}`,
		"a fixed too small":     `{"type":"fixed","name":"F","size":4,"logicalType":"decimal","precision":18,"scale":2}`,
	} {
		plain := `"bytes"`
		var zero any = []byte{1}
		if strings.Contains(invalid, "fixed") {
			plain, zero = `{"type":"fixed","name":"F","size":4}`, []byte{0, 0, 0, 1}
		}
		in := func(kind string) string {
			return strings.Replace(envelope(long, micros, record(`"string"`)), `["null",{"type":"array","items":"bank.Kind"}]`, kind, 1)
		}
		value := encode(t, strings.Replace(in(plain), `"default":null`, `"order":"ignore"`, 1), map[string]any{"extra": zero})
		if d := decode(format(t, options, in(invalid)), value); d.Fault != nil || d.Event.Amount != 1025 {
			t.Errorf("%s of a field that is not read: %+v, fault %v", name, d.Event, d.Fault)
		}
		value = encode(t, envelope(long, micros, record(plain)), data(zero, "EUR"))
		if d := decode(format(t, options, envelope(long, micros, record(invalid))), value); d.Fault == nil || d.Fault.Field != "data.amount" {
			t.Errorf("%s of the amount: %+v, fault %v", name, d.Event, d.Fault)
		}
	}
	// Some producers write the logical type into the field, with or without the scale.
	for _, kind := range []string{
		`"bytes","logicalType":"decimal","precision":4,"scale":2`, `{"type":"bytes","precision":4,"scale":2},"logicalType":"decimal"`,
	} {
		f := format(t, options, envelope(long, micros, strings.Replace(record(`"bytes"`), `"bytes"`, kind, 1)))
		if d := decode(f, encode(t, envelope(long, micros, record(`"bytes"`)), data([]byte{4, 1}, "EUR"))); d.Fault != nil || d.Event.Amount != 1025 {
			t.Errorf("in a field, %s: %+v, fault %v", kind, d.Event, d.Fault)
		}
	}
}

func TestSchemasThatCannotBeUsed(t *testing.T) {
	records, err := event.NewRecords(options)
	if err != nil {
		t.Fatal(err)
	}
	tree := records.Tree()
	for _, schema := range []string{``, `{`, `"string"`, `["null","string"]`, `[]`, `["null",{"type":"record","name":"A","fields":[]}]`, `{"type":"map","values":"string"}`, `{"type":"record","name":"A","fields":[{"name":"x","type":"B"}]}`} {
		if _, err := avro.Compile(schema, nil, &tree); err == nil {
			t.Errorf("%s is accepted", schema)
		}
	}
	if _, err := avro.Compile(`{"type":"record","name":"A","fields":[]}`, []string{`nonsense`}, &tree); err == nil {
		t.Error("a reference that is no schema is accepted")
	}
}

// As in JSON, an id must be a text and not a number.
func TestADecimalIsNoID(t *testing.T) {
	const number = `{"type":"bytes","logicalType":"decimal","precision":20,"scale":0}`
	for _, field := range []string{"accountId", "eventId"} {
		schema := envelope(long, micros, record(`"string"`))
		for _, text := range []string{`"string"`, `{"type":"string","logicalType":"uuid"}`} {
			schema = strings.Replace(schema, `{"name":"`+field+`","type":`+text+`}`, `{"name":"`+field+`","type":`+number+`}`, 1)
		}
		d := decode(format(t, options, schema), encode(t, schema, map[string]any{field: []byte{1, 0}}))
		if d.Identity != event.Unidentified || d.Fault == nil || d.Fault.Class != event.MalformedPayload || d.Fault.Field != field {
			t.Errorf("%s: %+v, %v", field, d.Event, d.Fault)
		}
	}
}

// As in Avro's own library, a name without a namespace refers to a type without one if the type of
// the surrounding namespace is only defined later.
func TestANameRefersToAnEarlierType(t *testing.T) {
	money := func(namespace string, scale int) string {
		amount := fmt.Sprintf(`{"type":"bytes","logicalType":"decimal","precision":9,"scale":%d}`, scale)
		return strings.Replace(record(amount), `"Data"`, `"Data"`+namespace, 1)
	}
	schema := envelope(long, micros+`},{"name":"first","type":`+money(`,"namespace":""`, 2), `"Data"},{"name":"second","type":`+money("", 0))
	whole := map[string]any{"amount": []byte{0x04, 0x01}, "currency": "EUR"}
	d := decode(format(t, options, schema), encode(t, schema, map[string]any{"first": whole, "data": whole, "second": whole}))
	if d.Fault != nil || d.Event.Amount != 1025 {
		t.Errorf("amount %d, fault %v", d.Event.Amount, d.Fault)
	}
}

// The library also accepts a name whose type is only defined after it, with and without a namespace.
func TestANameMayReferToALaterType(t *testing.T) {
	kind := record(`{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`)
	money := map[string]any{"amount": []byte{0x04, 0x01}, "currency": "EUR"}
	for name, namespace := range map[string]string{"Data": ``, "m.Data": `,"namespace":"m"`} {
		schema := envelope(long, micros, `"`+name+`"},{"name":"later","type":`+strings.Replace(kind, `"Data"`, `"Data"`+namespace, 1))
		d := decode(format(t, options, schema), encode(t, schema, map[string]any{"data": money, "later": money}))
		if d.Fault != nil || d.Event.Amount != 1025 {
			t.Errorf("%s: amount %d, fault %v", name, d.Event.Amount, d.Fault)
		}
	}
}
