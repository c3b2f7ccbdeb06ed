package event_test

import (
	"errors"
	"testing"

	"projector/projection/event"
)

// TestDataOfCustomProjections shows that an event for a custom projection may have any JSON object
// as data. The other fields are checked as usual. Events of all other types are ignored.
func TestDataOfCustomProjections(t *testing.T) {
	f := event.NewJSON(event.Options{FirstVersion: 1, CustomTypes: []string{"PointsEarned", "FundsCredited"}, Ignore: []string{"Quiet"}})
	earned := func(data string) string { return change("eventType", `"PointsEarned"`, "data", data) }
	for name, c := range map[string]struct {
		value string
		kind  event.Type
		data  string
		fault string
	}{
		"any object":             {earned(` { "points" : 5.0, "a":[{"b":null}], "c":"\u0041" } `), event.Custom, `{ "points" : 5.0, "a":[{"b":null}], "c":"\u0041" }`, ""},
		"no data":                {earned(""), event.Custom, "{}", ""},
		"null":                   {earned("null"), event.Custom, "{}", ""},
		"a number":               {earned("7"), event.Custom, "", "data: is not an object"},
		"a list":                 {earned("[{}]"), event.Custom, "", "data: is not an object"},
		"a text":                 {earned(`"{}"`), event.Custom, "", "data: is not an object"},
		"a key twice":            {earned(`{"a":1,"a":2}`), event.Unknown, "", "a key occurs twice in one JSON object, at byte 153"},
		"money is not looked at": {change("data", `{"amount":-1,"currency":7}`), event.Custom, `{"amount":-1,"currency":7}`, ""},
		"another type":           {change("eventType", `"FundsDebited"`, "data", "7"), event.Ignorable, "", ""},
		"one to ignore":          {change("eventType", `"Quiet"`), event.Ignorable, "", ""},
		"another case":           {change("eventType", `"pointsEarned"`), event.Ignorable, "", ""},
		"no time":                {change("eventType", `"PointsEarned"`, "occurredAt", ""), event.Custom, "", "occurredAt: is missing"},
		"no type":                {change("eventType", ""), event.Unknown, "", "eventType: is missing"},
	} {
		d := decode(f, c.value)
		fault := ""
		if d.Fault != nil {
			fault = d.Fault.Error()
		}
		if d.Event.Type != c.kind || d.Event.Data != c.data || fault != c.fault || d.Event.Amount != 0 || !d.Event.Currency.IsZero() {
			t.Errorf("%s: %+v, fault %q", name, d.Event, fault)
		}
		if c.kind == event.Ignorable && d.Event.TypeName == "" {
			t.Errorf("%s: the type has no name", name)
		}
	}
	if d := decode(f, change("eventType", `"Other"`, "version", `"x"`)); !d.Skip || d.Fault != nil {
		t.Errorf("a type that is not taken, without a version: %+v", d)
	}
}

// TestMappedTypesOfCustomProjections shows that a custom projection also receives events whose type
// name comes from a mapping.
func TestMappedTypesOfCustomProjections(t *testing.T) {
	f, err := event.New(event.FormatJSON, event.Options{
		CustomTypes: []string{"FundsCredited", "MoneyHeld"}, Mapping: event.Mapping{
			Types:  map[string]event.Type{"MoneyDeposited": event.TypeNamed("FundsCredited"), "MoneyWithdrawn": event.TypeNamed("FundsDebited"), "X": event.Ignorable},
			Fields: map[event.Field]event.FieldPath{event.FieldData: {Path: []string{"body", "what"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for arrives, want := range map[string]struct {
		kind event.Type
		name string
	}{
		"MoneyDeposited": {event.Custom, "FundsCredited"}, "FundsCredited": {event.Custom, "FundsCredited"}, "MoneyHeld": {event.Custom, "MoneyHeld"},
		"MoneyWithdrawn": {event.Ignorable, "MoneyWithdrawn"}, "X": {event.Ignorable, "X"},
	} {
		d := decode(f, `{"eventId":"e","eventType":"`+arrives+`","accountId":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z","body":{"what":{"x":1}}}`)
		if d.Fault != nil || d.Event.Type != want.kind || d.Event.TypeName != want.name || want.kind == event.Custom && d.Event.Data != `{"x":1}` {
			t.Errorf("%s: %+v", arrives, d)
		}
	}
}

// An event keeps the name that its producer gave to the type if the mapping has no type for the sign
// of the amount. A mapping that refuses every sign is read in the same way.
func TestTypeNameOfRefusedSign(t *testing.T) {
	debited := event.TypeNamed("FundsDebited")
	for name, signed := range map[string]event.SignedType{"negative only": {Negative: debited}, "none": {}} {
		f, err := event.New(event.FormatJSON, event.Options{
			Mapping: event.Mapping{Signed: map[string]event.SignedType{"movement": signed}, Amount: event.AmountShape{Form: event.AmountMinor}},
		})
		if err != nil {
			t.Fatal(err)
		}
		d := decode(f, change("eventType", `"movement"`, "data", `{"amount":15,"currency":"EUR"}`))
		if d.Fault == nil || d.Fault.Class != event.InvalidAmount || d.Event.TypeName != "movement" {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// The sign of an amount decides the type only if the projection reads the type for positive or for
// negative amounts. An event that the projection ignores is never dead-lettered because of its
// amount.
func TestSignedTypesOfCustomProjections(t *testing.T) {
	signed := event.SignedType{Positive: event.TypeNamed("FundsCredited"), Negative: event.TypeNamed("FundsDebited")}
	for custom, want := range map[string]string{"FundsCredited": "invalid_amount", "PointsEarned": "", "movement": ""} {
		f, err := event.New(event.FormatJSON, event.Options{
			CustomTypes: []string{custom}, Mapping: event.Mapping{Signed: map[string]event.SignedType{"movement": signed}, Amount: event.AmountShape{Form: event.AmountMinor}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for data, broken := range map[string]bool{`{"amount":1.5,"currency":"EUR"}`: true, `{"amount":-15,"currency":"EUR"}`: false} {
			d := decode(f, change("eventType", `"movement"`, "data", data))
			class := ""
			if d.Fault != nil {
				class = string(d.Fault.Class)
			}
			if (class != want && broken) || (!broken && d.Event.Type != event.Ignorable) {
				t.Errorf("taken %s, %s: %v, type %d", custom, data, d.Fault, d.Event.Type)
			}
		}
	}
}

func TestCustomProjectionsAcceptJSONOnly(t *testing.T) {
	if _, err := event.NewRecords(event.Options{CustomTypes: []string{"A"}}); !errors.Is(err, event.ErrNoJSON) {
		t.Errorf("error %v", err)
	}
}
