package avro_test

import (
	"bytes"
	"math/big"
	"testing"
	"time"

	lib "github.com/twmb/avro"

	"projector/projection/event"
)

// FuzzAvro compares the decoding of any value with the Avro library's decoding of all fields.
// Decimals and times are not compared.
func FuzzAvro(f *testing.F) {
	f.Add(encode(f, benchSchema, map[string]any{"correlationId": "c-1", "data": map[string]any{"amount": []byte{4, 1}, "currency": "EUR"}}))
	f.Add(encode(f, benchSchema, map[string]any{"correlationId": nil, "eventType": "AccountClosed", "data": nil}))
	f.Add(encode(f, benchSchema, map[string]any{"correlationId": nil, "version": int64(-1), "data": map[string]any{"amount": []byte{0xff}, "currency": ""}}))
	library := lib.MustParse(benchSchema)
	subject := format(f, options, benchSchema)
	f.Fuzz(func(t *testing.T, value []byte) {
		before := bytes.Clone(value)
		d := decode(subject, append([]byte{}, value...))
		if d.Skip || d.Tombstone || !bytes.Equal(value, before) {
			t.Fatalf("%+v", d)
		}
		if d.Fault == nil && d.Identity != event.Identified {
			t.Fatalf("an event without identity: %+v", d)
		}
		var all map[string]any
		rest, err := library.Decode(value, &all)
		if d.Identity == event.Unidentified {
			return
		}
		if err != nil || len(rest) > 0 {
			t.Fatalf("read although the library does not: %v, %d bytes left", err, len(rest))
		}
		e := d.Event
		if e.ID != all["eventId"] || e.AccountID != all["accountId"] || e.Version != all["version"] || e.Version < 1 || e.ID == "" || len(e.ID) > 200 {
			t.Fatalf("%+v of %v", e, all)
		}
		if d.Fault == nil {
			checkWhole(t, e, all)
		}
	})
}

func checkWhole(t *testing.T, e event.Event, all map[string]any) {
	t.Helper()
	if at, _ := all["occurredAt"].(time.Time); e.TypeName != all["eventType"] || e.OccurredAt != at.UnixMicro() {
		t.Fatalf("%+v of %v", e, all)
	}
	if e.Type != event.TypeNamed("FundsCredited") && e.Type != event.TypeNamed("FundsDebited") {
		return
	}
	data, _ := all["data"].(map[string]any)
	unit := big.NewRat(1, 1)
	for range e.Currency.Digits() {
		unit.Mul(unit, big.NewRat(1, 10))
	}
	amount := new(big.Rat).Mul(big.NewRat(e.Amount, 1), unit)
	if want, _ := data["amount"].(*big.Rat); want == nil || want.Cmp(amount) != 0 || e.Amount <= 0 || e.Currency.Code() != data["currency"] {
		t.Fatalf("%s %s of %v", amount, e.Currency, data)
	}
}
