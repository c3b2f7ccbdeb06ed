package event_test

import (
	"testing"

	avrolib "github.com/twmb/avro"
	"google.golang.org/protobuf/encoding/protowire"

	"projector/projection/event"
	"projector/projection/event/avro"
	"projector/projection/event/protobuf"
)

const movementSchema = `{"type":"record","name":"Movement","fields":[
	{"name":"id","type":"long"},{"name":"bank","type":"int"},{"name":"account","type":"string"},{"name":"credit","type":"boolean"},
	{"name":"seq","type":"long"},{"name":"at","type":"long"},
	{"name":"cents","type":"long"},{"name":"float","type":"double"},{"name":"dec","type":{"type":"bytes","logicalType":"decimal","precision":18,"scale":4}},
	{"name":"whole","type":{"type":"bytes","logicalType":"decimal","precision":18,"scale":2}}]}`

func movementMapping(amount string, form event.AmountShape) event.Mapping {
	return event.Mapping{
		Types: map[string]event.Type{"true": event.TypeNamed("FundsCredited"), "false": event.TypeNamed("FundsDebited")},
		Fields: map[event.Field]event.FieldPath{
			event.FieldEventID: {Path: []string{"id"}, Written: event.WrittenInteger},
			event.FieldAccountID: {Separator: '-', Join: []event.FieldPath{
				{Path: []string{"bank"}, Written: event.WrittenInteger}, path("account"),
			}},
			event.FieldEventType: {Path: []string{"credit"}, Written: event.WrittenBoolean}, event.FieldVersion: path("seq"),
			event.FieldOccurredAt: path("at"), event.FieldData: {}, event.FieldAmount: path(amount), event.FieldCurrency: {Constant: "EUR"},
		},
		Time: event.Milliseconds, Amount: form,
	}
}

func TestMappedAvro(t *testing.T) {
	schema := avrolib.MustParse(movementSchema, avrolib.CustomType{LogicalType: "decimal"})
	value, err := schema.Encode(map[string]any{
		"id": int64(-7), "bank": int32(12), "account": "77", "credit": false, "seq": int64(3), "at": int64(1767225600123),
		"cents": int64(1050), "float": 10.5, "dec": []byte{1, 0x90, 0x88}, // 102536
		"whole": []byte{3, 0xe8}, // 10.00
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		amount string
		form   event.AmountShape
		want   string // the amount or the fault
	}{
		{"cents", event.AmountShape{Form: event.AmountMinor}, "10.50"},
		{"cents", event.AmountShape{Form: event.AmountScaled, Scale: 2}, "10.50"},
		{"cents", event.AmountShape{Form: event.AmountNumber}, "1050.00"},
		{"cents", event.AmountShape{Form: event.AmountMinor, Text: true}, "malformed_payload: cents: is not a text, as the mapping declares"},
		{"cents", event.AmountShape{}, "malformed_payload: cents: is a number instead of a decimal string"},
		{"float", event.AmountShape{Form: event.AmountNumber}, "malformed_payload: float: is a float, which holds no exact amount"},
		{"float", event.AmountShape{Form: event.AmountMinor}, "malformed_payload: float: is a float, which holds no exact amount"},
		{"dec", event.AmountShape{Form: event.AmountNumber}, "invalid_amount: dec: has more fraction digits than its currency"},
		{"dec", event.AmountShape{Form: event.AmountMinor}, "malformed_payload: dec: is not a number, as the mapping declares"},
		{"whole", event.AmountShape{}, "10.00"},
		{"whole", event.AmountShape{Form: event.AmountMinor, Text: true}, "malformed_payload: whole: is not a text, as the mapping declares"},
		{"whole", event.AmountShape{Form: event.AmountScaled, Scale: 1, Text: true}, "malformed_payload: whole: is not a text, as the mapping declares"},
	} {
		r, tree := records(t, event.Options{Mapping: movementMapping(tt.amount, tt.form)})
		s, err := avro.Compile(movementSchema, nil, &tree)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Format(s)
		d := decode(f, string(value))
		again := decode(f, string(value)) // this must not overwrite the digits of the first event
		checkMovement(t, tt.want, "-7", &d)
		checkMovement(t, tt.want, "-7", &again)
	}
}

func checkMovement(t *testing.T, want, id string, d *event.Decoded) {
	t.Helper()
	got := event.FormatAmount(d.Event.Amount, d.Event.Currency)
	if d.Fault != nil {
		got = string(d.Fault.Class) + ": " + d.Fault.Error()
	}
	ev := &d.Event
	if got != want || d.Identity != event.Identified || ev.ID != id || ev.AccountID != "12-77" || ev.Version != 3 ||
		ev.OccurredAt != 1767225600123000 || ev.TypeName != "FundsDebited" {
		t.Errorf("got %s, want %s: %+v", got, want, *ev)
	}
}

const movementProto = `syntax = "proto3";
message Movement { uint64 id = 1; int32 bank = 2; string account = 3; bool credit = 4; int64 seq = 5; int64 at = 6; Money price = 7; double float = 8; }
message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }`

func TestMappedProtobuf(t *testing.T) {
	number := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	message := func(b []byte, n protowire.Number, inner []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), inner)
	}
	units := event.AmountShape{Form: event.AmountUnits, Nanos: []string{"price", "nanos"}}
	for _, tt := range []struct {
		money []byte
		want  string
	}{
		{number(number(nil, 2, 10), 3, 500_000_000), "10.50"},
		{number(nil, 2, 10), "10.00"},
		{number(nil, 3, 10_000_000), "0.01"},
		{number(nil, 3, 1), "invalid_amount: price.units: has more fraction digits than its currency"},
		{number(number(nil, 2, 10), 3, 1_000_000_000), "invalid_amount: price.nanos: is not from -999999999 to 999999999"},
		{nil, "invalid_amount: price.units: is not greater than zero"}, // proto3 does not encode a zero
	} {
		r, tree := records(t, event.Options{Mapping: func() event.Mapping {
			m := movementMapping("", units)
			m.Fields[event.FieldAmount] = path("price", "units")
			return m
		}()})
		s, err := protobuf.Compile(movementProto, nil, &tree)
		if err != nil {
			t.Fatal(err)
		}
		b := number(number(number(number([]byte{0}, 1, 18446744073709551615), 2, 12), 5, 3), 6, 1767225600123)
		b = message(message(b, 3, []byte("77")), 7, tt.money)
		d := decode(r.Format(s), string(b))
		checkMovement(t, tt.want, "18446744073709551615", &d)
	}
}
