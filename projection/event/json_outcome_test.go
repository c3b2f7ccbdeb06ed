package event_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"projector/projection/event"
)

func TestJSONTombstone(t *testing.T) {
	var d event.Decoded
	event.NewJSON(options).Decode(event.Message{Key: []byte("acc-1")}, &d)
	if !d.Tombstone || d.Fault != nil || d.Skip {
		t.Errorf("a null value gives %+v", d)
	}
}

func TestJSONSkipsIgnorableWithoutIdentity(t *testing.T) {
	ignorable := []string{"eventType", `"AccountRenamed"`}
	f := event.NewJSON(options)
	for name, value := range map[string]string{
		"no event id":             change(append(ignorable, "eventId", "")...),
		"no account id":           change(append(ignorable, "accountId", "null")...),
		"no version":              change(append(ignorable, "version", `"17"`)...),
		"other faults beside it":  change(append(ignorable, "version", "", "occurredAt", "", "correlationId", "5", "data", "")...),
		"nothing but its type":    `{"eventType":"AccountRenamed"}`,
		"its type behind escapes": `{"eventType":"Account\u0052enamed"}`,
	} {
		if d := decode(f, value); !d.Skip || d.Fault != nil || d.Tombstone || d.Identity != event.Unidentified {
			t.Errorf("%s: %+v, fault %v; want it skipped", name, d, d.Fault)
		}
	}
	if d := decode(f, `{"eventType":"AccountRenamed"`); d.Skip || d.Fault == nil {
		t.Errorf("a broken document is skipped: %+v", d)
	}
}

func TestJSONIgnoreWinsOverKnown(t *testing.T) {
	f := event.NewJSON(event.Options{Ignore: []string{"FundsCredited"}})
	if d := decode(f, change("data", "7")); d.Fault != nil || d.Event.Type != event.Ignorable || d.Event.TypeName != "FundsCredited" {
		t.Errorf("%+v, fault %v; want it ignorable", d, d.Fault)
	}
}

func TestJSONFirstVersion(t *testing.T) {
	for _, tt := range []struct {
		first   int64
		version string
		ok      bool
	}{
		{0, "0", true}, {0, "-0", true}, {0, "-1", false}, {1, "1", true}, {1, "0", false}, {100, "100", true}, {100, "99", false},
	} {
		d := decode(event.NewJSON(event.Options{FirstVersion: tt.first}), change("version", tt.version))
		if (d.Fault == nil) != tt.ok {
			t.Errorf("version %s with first version %d: fault %v", tt.version, tt.first, d.Fault)
		}
	}
}

func TestJSONCurrencySet(t *testing.T) {
	set, err := event.ParseCurrencies("USD,JPY")
	if err != nil {
		t.Fatal(err)
	}
	f := event.NewJSON(event.Options{Currencies: set})
	if d := decode(f, change()); d.Fault == nil || d.Fault.Class != event.UnsupportedCurrency {
		t.Errorf("EUR: %+v", d.Fault)
	}
	if d := decode(f, change("data", `{"amount":"10","currency":"JPY"}`)); d.Fault != nil || d.Event.Amount != 10 {
		t.Errorf("JPY: %+v, fault %v", d, d.Fault)
	}
}

func TestJSONCorrelationID(t *testing.T) {
	header := func(key, value string) event.Header { return event.Header{Key: key, Value: []byte(value)} }
	camel, snake := header("correlationId", "camel"), header("correlation_id", "snake")
	absent := change("correlationId", "")
	tests := []struct {
		name, value string
		headers     []event.Header
		want        string
	}{
		{"payload before header", change(), []event.Header{camel}, "c-1"},
		{"no header", absent, nil, ""},
		{"header", absent, []event.Header{camel}, "camel"},
		{"null in the payload", change("correlationId", "null"), []event.Header{camel}, "camel"},
		{"empty in the payload", change("correlationId", `""`), []event.Header{camel}, "camel"},
		{"second name", absent, []event.Header{snake}, "snake"},
		{"order of names, not of headers", absent, []event.Header{snake, camel}, "camel"},
		{"first of a name", absent, []event.Header{camel, header("correlationId", "later")}, "camel"},
		{"name in other case", absent, []event.Header{header("CorrelationId", "x")}, ""},
		{"empty header", absent, []event.Header{header("correlationId", ""), snake}, "snake"},
		{"null header", absent, []event.Header{{Key: "correlationId"}, snake}, "snake"},
		{"NUL in the header", absent, []event.Header{header("correlationId", "a\x00")}, ""},
		{"invalid UTF-8 in the header", absent, []event.Header{header("correlationId", "\xff"), snake}, "snake"},
		{"first of a name is unusable", absent, []event.Header{header("correlationId", ""), camel}, ""},
		{"long", change("correlationId", `"`+strings.Repeat("c", 5000)+`"`), nil, strings.Repeat("c", 5000)},
	}
	f := event.NewJSON(options)
	for _, tt := range tests {
		if d := decode(f, tt.value, tt.headers...); d.Fault != nil || d.Event.CorrelationID != tt.want {
			t.Errorf("%s: %q, fault %v; want %q", tt.name, d.Event.CorrelationID, d.Fault, tt.want)
		}
	}
}

// A fault's text must not contain values, because people who may not see the payload can read it in
// a dead letter.
func TestJSONFaultsNeverEchoValues(t *testing.T) {
	const secret = "4711"
	f := event.NewJSON(options)
	for _, name := range memberOrder {
		for _, text := range []string{
			secret, "-" + secret + ".5e3", `"` + secret + `\u0000"`, `"` + secret, `"\ud800` + secret + `"`, "[" + secret + "]",
			`{"` + secret + `":1,"` + secret + `":2}`, `{"amount":"-` + secret + `","currency":"EUR"}`, `{"amount":` + secret + `}`,
			`{"amount":"1","currency":"` + secret + `"}`, `"` + strings.Repeat(secret, 60) + `"`, secret + secret + secret + secret + secret,
		} {
			if d := decode(f, change(name, text)); d.Fault != nil && strings.Contains(d.Fault.Error(), secret) {
				t.Errorf("%s %s: %v", name, text, d.Fault)
			}
		}
	}
}

// Decode must not change the message. The decoded fields, including texts with escapes, must not
// change when the next message is decoded.
func TestJSONDecodedOutlivesTheScanner(t *testing.T) {
	value := []byte(change("accountId", `"acc\u002d1"`, "correlationId", "", "data", `{"amount":"1\u0030.25","currency":"EUR"}`))
	header := []byte("h-1")
	original := bytes.Clone(value)
	var d event.Decoded
	f := event.NewJSON(options)
	f.Decode(event.Message{Value: value, Headers: []event.Header{{Key: "correlationId", Value: header}}}, &d)
	if !bytes.Equal(value, original) {
		t.Fatalf("the message was changed to %s", value)
	}
	decode(f, change("eventId", `"another\u0020one"`)) // uses the same scanner again
	if e := d.Event; e.ID != "e-1" || e.AccountID != "acc-1" || e.CorrelationID != "h-1" || e.TypeName != "FundsCredited" || e.Currency.Code() != "EUR" {
		t.Errorf("the event changed to %+v", e)
	}
}

func TestJSONDecodesConcurrently(t *testing.T) {
	f := event.NewJSON(options)
	var wg sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			for range 200 {
				if d := decode(f, change("eventId", `"`+id+`\u002d1"`)); d.Event.ID != id+"-1" || d.Fault != nil {
					t.Errorf("%s-1 is read as %q, fault %v", id, d.Event.ID, d.Fault)
				}
				if d := decode(f, `{"eventId":"`+id); d.Fault == nil {
					t.Error("a broken document is accepted")
				}
			}
		})
	}
	wg.Wait()
}
