//go:build kafka

package e2e_test

import (
	encbinary "encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protowire"

	"projector/internal/testbank"
)

// schemaStore registers schemas as producers do.
type schemaStore struct {
	t      testing.TB
	client *sr.Client
}

func newSchemaStore(t testing.TB, url string) *schemaStore {
	t.Helper()
	client, err := sr.NewClient(sr.URLs(url), sr.HTTPClient(&http.Client{Timeout: time.Minute})) // the registry answers slowly at first on a busy machine
	if err != nil {
		t.Fatal(err)
	}
	return &schemaStore{t, client}
}

func (s *schemaStore) register(subject string, schema sr.Schema) (id int) {
	s.t.Helper()
	created, err := s.client.CreateSchema(s.t.Context(), subject, schema)
	if err != nil {
		s.t.Fatalf("register %s: %v", subject, err)
	}
	return created.ID
}

func framed(id int, body []byte) []byte {
	return append(encbinary.BigEndian.AppendUint32([]byte{0}, uint32(id)), body...)
}

const (
	// avroScalar allows each scalar type, so a field can have a value of a wrong type.
	avroScalar = `"null","string","long","double","boolean"`
	avroEvent  = `{"type":"record","name":"Event","namespace":"bank","fields":[
		{"name":"eventId","type":["null","string"]},{"name":"eventType","type":["null","string"]},{"name":"accountId","type":["null","string"]},
		{"name":"version","type":["null","long","double"]},{"name":"occurredAt","type":["null","string",{"type":"long","logicalType":"timestamp-micros"}]},
		{"name":"correlationId","type":["null","string"]},{"name":"data","type":["null",%s]}]}`
	avroMoney = `{"type":"record","name":"Money","namespace":"common","fields":[
		{"name":"amount","type":[{"type":"bytes","logicalType":"decimal","precision":38,"scale":4},` + avroScalar + `]},
		{"name":"currency","type":[` + avroScalar + `]}]}`
)

// avroWriter encodes events with one schema.
type avroWriter struct {
	id       int
	schema   *avro.Schema
	decimals bool // amounts may be Avro decimals
}

// mapWriter returns a writer that encodes the field data as an Avro map. Its schema has no
// references.
func mapWriter(s *schemaStore) avroWriter {
	s.t.Helper()
	text := fmt.Sprintf(avroEvent, `{"type":"map","values":[`+avroScalar+`]}`)
	return avroWriter{s.register("events-value", sr.Schema{Schema: text}), avro.MustParse(text), false}
}

// recordWriter returns a writer that encodes the field data as an Avro record. The schema of this
// record is registered separately, and the event's schema refers to it.
func recordWriter(s *schemaStore) avroWriter {
	s.t.Helper()
	s.register("common.Money", sr.Schema{Schema: avroMoney})
	text := fmt.Sprintf(avroEvent, `"common.Money"`)
	id := s.register("moved-events-value", sr.Schema{Schema: text, References: []sr.SchemaReference{
		{Name: "common.Money", Subject: "common.Money", Version: 1},
	}})
	return avroWriter{id, avro.MustParse(fmt.Sprintf(avroEvent, avroMoney)), true}
}

// The function typed converts JSON values to the types of the schema. Numbers become long or
// double. A value that is not a scalar becomes true, because true is as wrong for every field as
// the original value.
func typed(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any, map[string]any:
		return true
	default:
		return v
	}
}

var (
	exactTime  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d(\.\d+)?Z$`)
	exactCents = regexp.MustCompile(`^(0|[1-9]\d{0,20})\.\d\d$`)
)

// dataOf returns the members of data that the mapping reads. A missing member is null. It
// returns nil if there is no data.
func dataOf(fields map[string]any) map[string]any {
	data, is := fields["data"].(map[string]any)
	if !is {
		return nil
	}
	return map[string]any{"amount": typed(data["amount"]), "currency": typed(data["currency"])}
}

func (w avroWriter) write(r *testbank.Record, n int, fields map[string]any) {
	record := map[string]any{}
	for _, name := range []string{"eventId", "eventType", "accountId", "version", "occurredAt", "correlationId"} {
		record[name] = typed(fields[name])
	}
	if at, ok := exactly(fields["occurredAt"]); ok && n%2 == 0 {
		record["occurredAt"] = at
	}
	record["data"] = nil
	if data := dataOf(fields); data != nil {
		if text, _ := data["amount"].(string); w.decimals && n%2 == 0 && data["currency"] == "EUR" && exactCents.MatchString(text) {
			data["amount"], _ = new(big.Rat).SetString(text)
		}
		record["data"] = data
	}
	body, err := w.schema.Encode(record)
	if err != nil {
		panic(fmt.Sprintf("%v: %v", record, err))
	}
	r.Value = framed(w.id, body)
}

const (
	protoMoney = `syntax = "proto3"; package common;
message Money {
  oneof value { string amount = 1; double rounded = 3; }
  optional string currency = 2;
}`
	protoEvents = `syntax = "proto3"; package bank;
import "common/money.proto";
import "google/protobuf/timestamp.proto";
message Unused { message Inner {} }
message Account {
  message Event {
    optional string event_id = 1;
    optional string event_type = 2;
    optional string account_id = 3;
    optional int64 version = 4;
    optional string occurred_at = 5;
    optional string correlation_id = 6;
    common.Money data = 7;
  }
  message Timed {
    optional string event_id = 1;
    optional string event_type = 2;
    optional string account_id = 3;
    optional int64 version = 4;
    google.protobuf.Timestamp occurred_at = 5;
    optional string correlation_id = 6;
    common.Money data = 7;
  }
}`
)

// protoWriter encodes events as messages that are nested in another message.
type protoWriter struct{ id int }

func newProtoWriter(s *schemaStore) protoWriter {
	s.t.Helper()
	s.register("common/money.proto", sr.Schema{Schema: protoMoney, Type: sr.TypeProtobuf})
	return protoWriter{s.register("bank-value", sr.Schema{Schema: protoEvents, Type: sr.TypeProtobuf, References: []sr.SchemaReference{
		{Name: "common/money.proto", Subject: "common/money.proto", Version: 1},
	}})}
}

func (w protoWriter) write(r *testbank.Record, _ int, fields map[string]any) {
	var body []byte
	add := func(n protowire.Number, v any) {
		if text, is := v.(string); is {
			body = protowire.AppendString(protowire.AppendTag(body, n, protowire.BytesType), text)
		}
	}
	for i, name := range []string{"eventId", "eventType", "accountId"} {
		add(protowire.Number(i+1), fields[name])
	}
	if n, is := typed(fields["version"]).(int64); is {
		body = protowire.AppendVarint(protowire.AppendTag(body, 4, protowire.VarintType), uint64(n))
	}
	kind := int64(0)
	if at, ok := exactly(fields["occurredAt"]); ok {
		kind = 1
		inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(at.Unix()))
		inner = protowire.AppendVarint(protowire.AppendTag(inner, 2, protowire.VarintType), uint64(at.Nanosecond()))
		body = protowire.AppendBytes(protowire.AppendTag(body, 5, protowire.BytesType), inner)
	} else {
		add(5, fields["occurredAt"])
	}
	add(6, fields["correlationId"])
	if data := dataOf(fields); data != nil {
		body = protowire.AppendBytes(protowire.AppendTag(body, 7, protowire.BytesType), protoData(data))
	}
	place := encbinary.AppendVarint(encbinary.AppendVarint(encbinary.AppendVarint(nil, 2), 1), kind)
	r.Value = framed(w.id, append(place, body...))
}

// ownTypes contains the event types that have a record or a field of their own, with the names of the
// record and of the field. The last ones are for all other types.
var ownTypes = []struct{ eventType, record, field string }{
	{"AccountOpened", "Opened", "opened"},
	{"FundsCredited", "Credited", "credited"},
	{"FundsDebited", "Debited", "debited"},
	{"AccountClosed", "Closed", "closed"},
	{testbank.IgnoredType, "Noted", "noted"},
	{"", "Other", "other"},
}

// ownType returns the index in ownTypes of the type of an event.
func ownType(fields map[string]any) int {
	for i := range ownTypes {
		if ownTypes[i].eventType == fields["eventType"] {
			return i
		}
	}
	return len(ownTypes) - 1
}

// unionWriter encodes events with a union of records. The type of an event is the name of its record.
type unionWriter struct {
	id      int
	records []*avro.Schema
}

const unionMapping = `
eventTypes: {bank.Opened: AccountOpened, bank.Credited: FundsCredited, bank.Debited: FundsDebited, bank.Closed: AccountClosed, bank.Noted: ignored}
fields:
  eventType: {record: true}
`

// newUnionWriter returns a writer whose schema refers to a schema of recordWriter. Apicurio refuses a
// union that only names its records, so the records are in the schema of the union.
func newUnionWriter(s *schemaStore) unionWriter {
	s.t.Helper()
	var w unionWriter
	var records []string
	for _, own := range ownTypes {
		format := strings.NewReplacer(`"name":"Event"`, `"name":"`+own.record+`"`, `{"name":"eventType","type":["null","string"]},`, "").Replace(avroEvent)
		w.records = append(w.records, avro.MustParse(fmt.Sprintf(format, avroMoney)))
		records = append(records, fmt.Sprintf(format, `"common.Money"`))
	}
	w.id = s.register("union-value", sr.Schema{Schema: "[" + strings.Join(records, ",") + "]", References: []sr.SchemaReference{
		{Name: "common.Money", Subject: "common.Money", Version: 1},
	}})
	return w
}

func (w unionWriter) write(r *testbank.Record, n int, fields map[string]any) {
	i := ownType(fields)
	avroWriter{schema: w.records[i], decimals: true}.write(r, n, fields)
	r.Value = framed(w.id, append(encbinary.AppendVarint(nil, int64(i)), r.Value[5:]...))
}

const (
	protoOneof = `syntax = "proto3"; package bank;
import "common/money.proto";
message Entry {
  string event_id = 1;
  string account_id = 3;
  optional int64 version = 4;
  string occurred_at = 5;
  string correlation_id = 6;
  oneof content { common.Money opened = 10; common.Money credited = 11; common.Money debited = 12; common.Money closed = 13; common.Money noted = 14; common.Money other = 15; }
}`
	oneofMapping = `
eventTypes: {opened: AccountOpened, credited: FundsCredited, debited: FundsDebited, closed: AccountClosed, noted: ignored}
fields:
  eventType: {record: true, path: content}
  data: content
`
)

// oneofWriter encodes events as messages with a oneof. The type of an event is the name of the field
// that is set.
type oneofWriter struct{ id int }

// newOneofWriter returns a writer whose schema refers to a schema of newProtoWriter.
func newOneofWriter(s *schemaStore) oneofWriter {
	s.t.Helper()
	return oneofWriter{s.register("oneof-value", sr.Schema{Schema: protoOneof, Type: sr.TypeProtobuf, References: []sr.SchemaReference{
		{Name: "common/money.proto", Subject: "common/money.proto", Version: 1},
	}})}
}

func (w oneofWriter) write(r *testbank.Record, _ int, fields map[string]any) {
	var body []byte
	for n, name := range map[protowire.Number]string{1: "eventId", 3: "accountId", 5: "occurredAt", 6: "correlationId"} {
		if text, is := fields[name].(string); is {
			body = protowire.AppendString(protowire.AppendTag(body, n, protowire.BytesType), text)
		}
	}
	if n, is := typed(fields["version"]).(int64); is {
		body = protowire.AppendVarint(protowire.AppendTag(body, 4, protowire.VarintType), uint64(n))
	}
	if fields["eventType"] != nil {
		content := protoData(dataOf(fields))
		body = protowire.AppendBytes(protowire.AppendTag(body, protowire.Number(10+ownType(fields)), protowire.BytesType), content)
	}
	r.Value = framed(w.id, append([]byte{0}, body...))
}

func exactly(v any) (time.Time, bool) {
	text, _ := v.(string)
	if !exactTime.MatchString(text) {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil
}

func protoData(data map[string]any) (body []byte) {
	if text, is := data["amount"].(string); is {
		body = protowire.AppendString(protowire.AppendTag(body, 1, protowire.BytesType), text)
	}
	if text, is := data["currency"].(string); is {
		body = protowire.AppendString(protowire.AppendTag(body, 2, protowire.BytesType), text)
	}
	return body
}
