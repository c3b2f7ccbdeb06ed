package event_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"projector/projection/event"
)

// FuzzJSON compares the result of Decode with that of an independent decoder that uses
// encoding/json.
func FuzzJSON(f *testing.F) {
	for _, value := range readExamples(f) {
		f.Add(value)
	}
	f.Add([]byte("\x00\x00\x00\x00\x07" + change()))
	format := event.NewJSON(options)
	f.Fuzz(func(t *testing.T, value []byte) {
		if value == nil {
			value = []byte{} // tombstones have their own test
		}
		original := bytes.Clone(value)
		var d event.Decoded
		format.Decode(event.Message{Value: value}, &d)
		if !bytes.Equal(value, original) {
			t.Fatal("the message was changed")
		}
		value = unframed(value)
		if checkOutcome(t, &d) {
			checkWhole(t, value, d.Event)
		}
		if d.Skip || d.Identity == event.Identified {
			checkDocument(t, value)
		}
		if d.Identity == event.Identified {
			checkIdentity(t, value, d.Event)
		}
	})
}

// unframed returns an accepted value without the id of a schema.
func unframed(value []byte) []byte {
	if len(value) > 5 && value[0] == 0 {
		return value[5:]
	}
	return value
}

func count(conditions ...bool) (n int) {
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

func checkFault(t *testing.T, d *event.Decoded) {
	t.Helper()
	decodingClasses := []event.Class{event.MalformedPayload, event.UnknownEventType, event.InvalidAmount, event.UnsupportedCurrency}
	if !slices.Contains(decodingClasses, d.Fault.Class) || d.Fault.Reason == "" || !utf8.ValidString(d.Fault.Error()) {
		t.Fatalf("fault %+v", d.Fault)
	}
	if d.Identity == event.Unidentified && d.Fault.Class != event.MalformedPayload {
		t.Fatalf("an unidentified event is %s", d.Fault.Class)
	}
}

// checkDocument checks that a value which was decoded without a syntax fault is a valid JSON
// object.
func checkDocument(t *testing.T, value []byte) {
	t.Helper()
	if !utf8.Valid(value) || !json.Valid(value) || bytes.TrimLeft(value, " \t\r\n")[0] != '{' {
		t.Fatal("no JSON object is accepted")
	}
	checkUniqueKeys(t, json.NewDecoder(bytes.NewReader(value)))
}

// checkUniqueKeys reads one JSON value and checks that no object has a key twice.
func checkUniqueKeys(t *testing.T, dec *json.Decoder) {
	t.Helper()
	token, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	opening, _ := token.(json.Delim)
	if opening != '{' && opening != '[' {
		return
	}
	keys := make(map[string]bool)
	for dec.More() {
		if opening == '{' {
			token, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			key, isText := token.(string)
			if !isText || keys[key] {
				t.Fatal("a duplicate key, or none, is accepted")
			}
			keys[key] = true
		}
		checkUniqueKeys(t, dec)
	}
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
}

func checkIdentity(t *testing.T, value []byte, e event.Event) {
	t.Helper()
	raw := object(t, value)
	for name, got := range map[string]string{"eventId": e.ID, "accountId": e.AccountID} {
		if want := text(t, raw[name]); got != want || got == "" || len(got) > 200 || strings.Contains(got, "\x00") {
			t.Fatalf("%s is %q, by encoding/json %q", name, got, want)
		}
	}
	version, ok := new(big.Int).SetString(string(raw["version"]), 10)
	if !ok || !version.IsInt64() || version.Int64() != e.Version || e.Version < options.FirstVersion {
		t.Fatalf("version %d from %s", e.Version, raw["version"])
	}
}

func checkWhole(t *testing.T, value []byte, e event.Event) {
	t.Helper()
	raw := object(t, value)
	if want := text(t, raw["eventType"]); e.TypeName != want {
		t.Fatalf("type %q, by encoding/json %q", e.TypeName, want)
	}
	checkTime(t, strings.ToUpper(text(t, raw["occurredAt"])), e.OccurredAt)
	if c, ok := raw["correlationId"]; ok && string(c) != "null" {
		if want := text(t, c); e.CorrelationID != want || strings.Contains(want, "\x00") {
			t.Fatalf("correlation id %q, by encoding/json %q", e.CorrelationID, want)
		}
	} else if e.CorrelationID != "" {
		t.Fatalf("correlation id %q from nowhere", e.CorrelationID)
	}
	checkMoney(t, raw["data"], e)
}

func checkTime(t *testing.T, text string, got int64) {
	t.Helper()
	if strings.Contains(text, ":60") {
		return // a leap second, which time.Parse refuses
	}
	want, err := time.Parse(time.RFC3339, text)
	if err != nil || want.Truncate(time.Microsecond).UnixMicro() != got {
		t.Fatalf("%s is %d, by time.Parse %v, %v", text, got, want, err)
	}
}

func checkMoney(t *testing.T, raw json.RawMessage, e event.Event) {
	t.Helper()
	switch name := e.Type.Name(); name {
	case "", "AccountClosed", "AccountOpened":
		if e.Amount != 0 || (e.Type == event.Ignorable && !e.Currency.IsZero()) || (name == "AccountOpened" && e.Currency.IsZero()) {
			t.Fatalf("%s with %+v", e.TypeName, e)
		}
	case "FundsCredited", "FundsDebited":
		want := minorUnits(text(t, object(t, raw)["amount"]), e.Currency.Digits())
		if e.Amount <= 0 || e.Currency.IsZero() || want == nil || !want.IsInt64() || want.Int64() != e.Amount {
			t.Fatalf("amount %d %s, by math/big %v", e.Amount, e.Currency, want)
		}
	default:
		t.Fatalf("a whole event of type %d", e.Type)
	}
	if !e.Currency.IsZero() {
		if want := text(t, object(t, raw)["currency"]); e.Currency.Code() != want {
			t.Fatalf("currency %s, by encoding/json %q", e.Currency, want)
		}
	}
}

func object(t *testing.T, raw []byte) map[string]json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	return members
}

// The function text decodes a JSON string. It fails for all other values, including null.
func text(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		t.Fatalf("%q is not a string: %v", raw, err)
	}
	return *s
}
