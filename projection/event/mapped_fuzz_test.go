package event_test

import (
	"strings"
	"testing"

	"projector/projection/event"
)

// FuzzMappedAmount shows that an accepted amount always has the value of its digits.
func FuzzMappedAmount(f *testing.F) {
	for _, seed := range []string{
		"1050", "-250", "0", "-0", "-0.0", "10.5", "10.50", "1e3", "1E+3", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		`"1050"`, `"10.25"`, `"-1"`, `"0105"`, "null", "true", "[1]", `{"units":1,"nanos":-1}`, `{"units":"7"}`,
	} {
		for form := range event.AmountUnits + 1 {
			f.Add(seed, uint8(form), uint8(4), true)
		}
	}
	signed := map[string]event.SignedType{"m": {Positive: event.TypeNamed("FundsCredited"), Negative: event.TypeNamed("FundsDebited"), Zero: event.Ignorable}}
	f.Fuzz(func(t *testing.T, text string, form, scale uint8, asText bool) {
		shape := event.AmountShape{Form: event.AmountForm(form) % (event.AmountUnits + 1), Scale: int(scale) % (event.MostScale + 1), Text: asText}
		m := event.Mapping{Signed: signed, Amount: shape}
		if shape.Form == event.AmountUnits {
			m.Amount.Nanos = []string{"amount", "nanos"}
			m.Fields = map[event.Field]event.FieldPath{event.FieldAmount: path("amount", "units")}
		}
		format, err := event.New(event.FormatJSON, event.Options{Mapping: m})
		if err != nil {
			t.Fatal(err)
		}
		d := decode(format, `{"eventId":"e","eventType":"m","accountId":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":`+text+`,"currency":"EUR"}}`)
		switch {
		case d.Fault != nil:
			if d.Fault.Class != event.MalformedPayload && d.Fault.Class != event.InvalidAmount {
				t.Fatalf("%s: %v", text, d.Fault)
			}
		case d.Event.Type == event.Ignorable:
			if strings.ContainsAny(text, "123456789eE") && shape.Form != event.AmountUnits && !strings.ContainsAny(text, `,:\`) {
				t.Fatalf("%s is taken for zero", text)
			}
		case d.Event.Amount <= 0, (d.Event.TypeName == "FundsDebited") != strings.Contains(text, "-") && !strings.ContainsAny(text, `,:\`):
			t.Fatalf("%s is %s %d", text, d.Event.TypeName, d.Event.Amount)
		}
	})
}
