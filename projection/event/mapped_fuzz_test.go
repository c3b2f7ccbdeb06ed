package event_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"projector/projection/event"
)

// FuzzMappedAmount compares amounts of all forms with those that math/big computes from the digits. An
// amount is accepted exactly if this oracle accepts it.
func FuzzMappedAmount(f *testing.F) {
	for _, seed := range []string{
		"1050", "-250", "0", "-0", "-0.0", "10.5", "10.50", "1e3", "1E+3", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		`"1050"`, `"10.25"`, `"-1"`, `"0105"`, "null", "true", "[1]", `{"units":1,"nanos":-1}`, `{"units":"7"}`, `"10.2500"`, `"\u0031"`,
		`{"nanos":250000000}`, `{"units":10,"nanos":250000000}`, `{"units":-0}`, `{"units":1,"nanos":1000000000}`, `{"units":1,"units":2}`, "922337203685477580700",
	} {
		for form := range event.AmountUnits + 1 {
			f.Add(seed, uint8(form), uint8(4), true, true, uint8(0))
			f.Add(seed, uint8(form), uint8(2), false, false, uint8(1))
		}
	}
	credit := event.TypeNamed("FundsCredited")
	signed := map[string]event.SignedType{"m": {Positive: credit, Negative: event.TypeNamed("FundsDebited"), Zero: event.Ignorable}}
	f.Fuzz(func(t *testing.T, text string, form, scale uint8, asText, dropZeros bool, code uint8) {
		shape := event.AmountShape{Form: event.AmountForm(form) % (event.AmountUnits + 1), Scale: int(scale) % (event.MostScale + 1)}
		isInteger := shape.Form == event.AmountMinor || shape.Form == event.AmountScaled
		shape.Text, shape.DropZeros = asText && isInteger, dropZeros && (shape.Form == event.AmountText || shape.Form == event.AmountNumber)
		m := event.Mapping{Signed: signed, Types: map[string]event.Type{"c": credit}, Amount: shape}
		if shape.Form == event.AmountUnits {
			m.Amount.Nanos = []string{"amount", "nanos"}
			m.Fields = map[event.Field]event.FieldPath{event.FieldAmount: path("amount", "units")}
		}
		format, err := event.New(event.FormatJSON, event.Options{Mapping: m})
		if err != nil {
			t.Fatal(err)
		}
		c := currency(t, []string{"EUR", "JPY", "KWD", "CLF"}[code%4])
		of := func(kind string) event.Decoded {
			return decode(format, `{"eventId":"e","eventType":"`+kind+`","accountId":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z","data":{"currency":"`+c.Code()+`","amount":`+text+`}}`)
		}
		d := of("m")
		want := minorOf(text, shape, c.Digits())
		switch {
		case d.Fault != nil && d.Fault.Class != event.MalformedPayload && d.Fault.Class != event.InvalidAmount:
			t.Fatalf("%s: %v", text, d.Fault)
		case (d.Fault == nil) != (want != nil):
			t.Fatalf("%s as %s in %s: %v, want %v", text, shape, c, d.Fault, want)
		case want == nil:
		case want.Sign() == 0:
			if d.Event.Type != event.Ignorable {
				t.Fatalf("%s is %+v", text, d.Event)
			}
		case big.NewInt(d.Event.Signed()).Cmp(want) != 0 || d.Event.Currency != c:
			t.Fatalf("%s as %s is %d %s, want %v", text, shape, d.Event.Signed(), d.Event.Currency, want)
		}
		// A credit may not be negative or zero. Otherwise it has the same amount.
		switch d := of("c"); {
		case (d.Fault == nil) != (want != nil && want.Sign() > 0):
			t.Fatalf("a credit of %s as %s: %v, want %v", text, shape, d.Fault, want)
		case d.Fault == nil && d.Event.Amount != want.Int64():
			t.Fatalf("a credit of %s as %s is %d, want %v", text, shape, d.Event.Amount, want)
		}
	})
}

// minorOf returns the amount in minor units of a currency with that many decimals, or nil if the JSON
// text is no amount of the given shape.
func minorOf(text string, shape event.AmountShape, decimals int) *big.Int {
	document := []byte(`{"amount":` + text + `}`)
	if !jsontext.Value(bytes.Clone(document)).IsValid() { // encoding/json accepts duplicate keys
		return nil
	}
	var data map[string]json.RawMessage
	if json.Unmarshal(document, &data) != nil || len(data) != 1 {
		return nil
	}
	var value *big.Rat
	point := shape.Form == event.AmountText || shape.Form == event.AmountNumber
	switch shape.Form {
	case event.AmountUnits:
		value = unitsOf(data["amount"])
	default:
		value = numberOf(data["amount"], point, shape.Form == event.AmountText || shape.Text)
	}
	switch {
	case value == nil:
		return nil
	case value.Sign() == 0: // such an event is ignored, whatever the number of its zeros
		return new(big.Int)
	case shape.Form == event.AmountScaled:
		value.Mul(value, tenTo(-shape.Scale))
	case shape.Form == event.AmountMinor:
		value.Mul(value, tenTo(-decimals))
	case point && !shape.DropZeros && len(fraction.FindString(digitsIn(data["amount"])))-1 > decimals:
		return nil
	}
	value.Mul(value, tenTo(decimals))
	if !value.IsInt() || !new(big.Int).Abs(value.Num()).IsInt64() {
		return nil
	}
	return value.Num()
}

var (
	decimalForm = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?$`)
	fraction    = regexp.MustCompile(`\.\d+$`)
)

func tenTo(n int) *big.Rat {
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil))
	if n < 0 {
		power.Inv(power)
	}
	return power
}

// digitsIn returns the text of a JSON string, or the bytes of any other value.
func digitsIn(raw json.RawMessage) string {
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// numberOf returns the value of a JSON text or number with plain digits, or nil. A negative zero is
// refused.
func numberOf(raw json.RawMessage, point, isText bool) *big.Rat {
	digits := digitsIn(raw)
	if (raw[0] == '"') != isText || !decimalForm.MatchString(digits) || !point && fraction.MatchString(digits) {
		return nil
	}
	value, ok := new(big.Rat).SetString(digits)
	if !ok || value.Sign() == 0 && digits[0] == '-' {
		return nil
	}
	return value
}

// unitsOf returns the sum of units and billionths, or nil.
func unitsOf(raw json.RawMessage) *big.Rat {
	var parts map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	units, hasUnits := parts["units"]
	nanos, hasNanos := parts["nanos"]
	whole, billionths := new(big.Rat), new(big.Rat)
	if hasUnits {
		whole = numberOf(units, false, units[0] == '"')
	}
	if hasNanos {
		billionths = numberOf(nanos, false, false)
	}
	switch {
	case !hasUnits && !hasNanos, whole == nil, billionths == nil:
		return nil
	case new(big.Rat).Abs(billionths).Cmp(tenTo(9)) >= 0, whole.Sign()*billionths.Sign() < 0:
		return nil
	}
	return whole.Add(whole, billionths.Mul(billionths, tenTo(-9)))
}
