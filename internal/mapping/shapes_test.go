package mapping_test

import (
	"strings"
	"testing"

	"projector/internal/mapping"
	"projector/projection/event"
)

// formatOf returns a format with a mapping.
func formatOf(t testing.TB, format, text string) event.Format {
	t.Helper()
	m, err := mapping.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f, err := event.New(format, event.Options{Mapping: m.Mapping})
	if err != nil {
		t.Fatal(m.Locate(err))
	}
	return f
}

// The function decoded formats the result of decoding as "TYPE AMOUNT CURRENCY", as the class and
// the field of a fault, or as "ignored".
func decoded(d *event.Decoded) string {
	switch {
	case d.Fault != nil:
		return string(d.Fault.Class) + " " + d.Fault.Field
	case d.Skip || d.Event.Type == event.Ignorable:
		return "ignored"
	}
	return strings.TrimSpace(d.Event.TypeName + " " + event.FormatAmount(d.Event.Amount, d.Event.Currency) + " " + d.Event.Currency.Code())
}

// eventOf returns an event of the contract with the given type and data.
func eventOf(kind, data string) string {
	return `{"eventId":"e","eventType":"` + kind + `","accountId":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z","data":` + data + `}`
}

const signed = "eventTypes: {movement: {positive: FundsCredited, negative: FundsDebited, zero: ignored}, fee: {negative: FundsDebited}}\n"

func TestAmounts(t *testing.T) {
	const (
		minor  = "fields: {amount: {unit: minor}}\n"
		number = "fields: {amount: {type: number}}\n"
		scaled = "fields: {amount: {scale: 4}}\n"
		padded = "fields: {amount: {zeros: dropped}}\n"
		units  = "fields: {amount: {units: amount.units, nanos: amount.nanos}}\n"
		credit = "FundsCredited"
		amount = "invalid_amount data.amount"
		wrong  = "malformed_payload data.amount"
	)
	for _, tt := range []struct{ mapping, kind, amount, currency, want string }{
		{minor, credit, `1050`, "EUR", "FundsCredited 10.50 EUR"},
		{minor, credit, `1050`, "JPY", "FundsCredited 1050 JPY"},
		{minor, credit, `1050`, "BHD", "FundsCredited 1.050 BHD"},
		{minor, credit, `9223372036854775807`, "EUR", "FundsCredited 92233720368547758.07 EUR"},
		{minor, credit, `9223372036854775808`, "EUR", amount}, // 2^63
		{minor, credit, `1` + strings.Repeat("0", 5000), "EUR", amount},
		{minor, credit, `10.5`, "EUR", amount},
		{minor, credit, `10.0`, "EUR", amount},
		{minor, credit, `1e3`, "EUR", amount},
		{minor, credit, `1E+3`, "EUR", amount},
		{minor, credit, `0`, "EUR", amount},
		{minor, credit, `-0`, "EUR", amount},
		{minor, credit, `-5`, "EUR", amount},
		{minor, credit, `"1050"`, "EUR", wrong},
		{minor, credit, `null`, "EUR", wrong},
		{minor, credit, `true`, "EUR", wrong},
		{minor, credit, `[1]`, "EUR", wrong},
		{minor, credit, `{"value":1}`, "EUR", wrong},
		{minor, credit, `1050`, "XXX", "unsupported_currency data.currency"},
		{"fields: {amount: {unit: minor, type: text}}\n", credit, `"1050"`, "EUR", "FundsCredited 10.50 EUR"},
		{"fields: {amount: {unit: minor, type: text}}\n", credit, `1050`, "EUR", wrong},
		{"fields: {amount: {unit: minor, type: text}}\n", credit, `"10.50"`, "EUR", amount},
		{"fields: {amount: {unit: minor, type: text}}\n", credit, `"0105"`, "EUR", amount},
		{"fields: {amount: {unit: minor, type: text}}\n", credit, `""`, "EUR", amount},
		{"fields: {amount: {unit: minor, type: text}}\n", credit, `" 1"`, "EUR", amount},
		{"fields: {amount: {unit: minor, type: text}}\n", credit, `"+1"`, "EUR", amount},
		{number, credit, `10.25`, "EUR", "FundsCredited 10.25 EUR"},
		{number, credit, `0.1`, "EUR", "FundsCredited 0.10 EUR"},
		{number, credit, `90071992547409.93`, "EUR", "FundsCredited 90071992547409.93 EUR"}, // cannot be represented as a float64
		{number, credit, `7`, "JPY", "FundsCredited 7 JPY"},
		{number, credit, `10.250`, "EUR", amount},
		{number, credit, `1.025e1`, "EUR", amount},
		{number, credit, `1e-7`, "EUR", amount},
		{number, credit, `-1.5`, "EUR", amount},
		{number, credit, `-0.0`, "EUR", amount},
		{number, credit, `92233720368547758.08`, "EUR", amount},
		{number, credit, `"10.25"`, "EUR", wrong},
		{scaled, credit, `102500`, "EUR", "FundsCredited 10.25 EUR"},
		{scaled, credit, `102510`, "EUR", amount},
		{scaled, credit, `5`, "EUR", amount},
		{scaled, credit, `0`, "EUR", amount},
		{scaled, credit, `100000`, "JPY", "FundsCredited 10 JPY"},
		{scaled, credit, `10.2500`, "EUR", amount},
		{padded, credit, `"10.2500"`, "EUR", "FundsCredited 10.25 EUR"},
		{padded, credit, `"10.2510"`, "EUR", amount},
		{padded, credit, `"10.0000"`, "JPY", "FundsCredited 10 JPY"},
		{padded, credit, `"10"`, "EUR", "FundsCredited 10.00 EUR"},
		{padded, credit, `"0.0000"`, "EUR", amount},
		{padded, credit, `"-10.2500"`, "EUR", amount},
		{padded, credit, `"010.2500"`, "EUR", amount},
		{padded, credit, `"1e1"`, "EUR", amount},
		{padded, credit, `"10."`, "EUR", amount},
		{padded, credit, `10.2500`, "EUR", wrong},
		{padded, credit, `null`, "EUR", wrong},
		{padded, credit, `"92233720368547758.070000"`, "EUR", "FundsCredited 92233720368547758.07 EUR"},
		{padded, credit, `"92233720368547758.080000"`, "EUR", amount},
		{signed + padded, "movement", `"-10.2500"`, "EUR", "FundsDebited 10.25 EUR"},
		{"fields: {amount: {zeros: refused}}\n", credit, `"10.2500"`, "EUR", amount},
		{"fields: {amount: {type: number, zeros: dropped}}\n", credit, `10.2500`, "EUR", "FundsCredited 10.25 EUR"},
		{"fields: {amount: {type: number, zeros: dropped}}\n", credit, `"10.2500"`, "EUR", wrong},
		{"fields: {amount: {scale: 0}}\n", credit, `10`, "EUR", "FundsCredited 10.00 EUR"},
		{"fields: {amount: {scale: 0}}\n", credit, `92233720368547758`, "EUR", "FundsCredited 92233720368547758.00 EUR"},
		{"fields: {amount: {scale: 0}}\n", credit, `92233720368547759`, "EUR", amount},
		{"fields: {amount: {scale: 18}}\n", credit, `9223372036854775807`, "EUR", amount},
		{"fields: {amount: {scale: 18}}\n", credit, `1230000000000000000000`, "EUR", "FundsCredited 1230.00 EUR"},
		{units, credit, `{"units":10,"nanos":250000000}`, "EUR", "FundsCredited 10.25 EUR"},
		{units, credit, `{"units":"10","nanos":250000000}`, "EUR", "FundsCredited 10.25 EUR"}, // the form of Protobuf's JSON
		{units, credit, `{"units":"10"}`, "EUR", "FundsCredited 10.00 EUR"},
		{units, credit, `{"nanos":10000000}`, "EUR", "FundsCredited 0.01 EUR"},
		{units, credit, `{"nanos":1000000}`, "EUR", "invalid_amount data.amount.units"},
		{units, credit, `{"units":1,"nanos":1000000000}`, "EUR", "invalid_amount data.amount.nanos"},
		{units, credit, `{"units":1,"nanos":-1}`, "EUR", "invalid_amount data.amount.nanos"},
		{units, credit, `{"units":1.0,"nanos":0}`, "EUR", "invalid_amount data.amount.units"},
		{units, credit, `{"units":1,"nanos":"0"}`, "EUR", "malformed_payload data.amount.nanos"},
		{units, credit, `{"units":0,"nanos":0}`, "EUR", "invalid_amount data.amount.units"},
		{units, credit, `{"units":9223372036854775807}`, "EUR", "invalid_amount data.amount.units"},
		{units, credit, `{}`, "EUR", "malformed_payload data.amount.units"},
		{units, credit, `{"units":null,"nanos":1}`, "EUR", "malformed_payload data.amount.units"},
		{units, credit, `"10"`, "EUR", "malformed_payload data.amount.units"},

		{signed + minor, "movement", `1050`, "EUR", "FundsCredited 10.50 EUR"},
		{signed + minor, "movement", `-250`, "EUR", "FundsDebited 2.50 EUR"},
		{signed + minor, "movement", `0`, "EUR", "ignored"},
		{signed + minor, "movement", `-0`, "EUR", amount},
		{signed + minor, "movement", `-9223372036854775807`, "EUR", "FundsDebited 92233720368547758.07 EUR"},
		{signed + minor, "movement", `-9223372036854775808`, "EUR", amount},
		{signed + minor, "movement", `1e2`, "EUR", amount},
		{signed + minor, "movement", `"1"`, "EUR", wrong},
		{signed + minor, "movement", `null`, "EUR", wrong},
		{signed + minor, "movement", `1.5`, "XXX", "unsupported_currency data.currency"}, // the first error in the order of the contract
		{signed + minor, "fee", `-5`, "EUR", "FundsDebited 0.05 EUR"},
		{signed + minor, "fee", `5`, "EUR", amount},
		{signed + minor, "fee", `0`, "EUR", amount},
		{signed + minor, "FundsCredited", `5`, "EUR", "unknown_event_type eventType"}, // the mapping renames this type
		{signed, "movement", `"-2.50"`, "EUR", "FundsDebited 2.50 EUR"},
		{signed, "movement", `"0.00"`, "EUR", "ignored"},
		{signed, "movement", `"-0.00"`, "EUR", amount},
		{signed, "movement", `"-2.505"`, "EUR", amount},
		{signed, "movement", `-2.5`, "EUR", wrong},
		{signed + number, "movement", `-2.5`, "EUR", "FundsDebited 2.50 EUR"},
		{signed + units, "movement", `{"units":-1,"nanos":-750000000}`, "EUR", "FundsDebited 1.75 EUR"},
		{signed + units, "movement", `{"nanos":-750000000}`, "EUR", "FundsDebited 0.75 EUR"},
		{signed + units, "movement", `{"units":-1,"nanos":750000000}`, "EUR", "invalid_amount data.amount.nanos"},
	} {
		f := formatOf(t, event.FormatJSON, tt.mapping)
		value := eventOf(tt.kind, `{"amount":`+tt.amount+`,"currency":"`+tt.currency+`"}`)
		var d event.Decoded
		f.Decode(event.Message{Value: []byte(value)}, &d)
		if got := decoded(&d); got != tt.want {
			t.Errorf("%s with %s %s %s:\n got %s (%v)\nwant %s", strings.TrimSpace(tt.mapping), tt.kind, tt.amount, tt.currency, got, d.Fault, tt.want)
		}
		if d.Fault != nil && d.Identity != event.Identified {
			t.Errorf("%s %s: not identified", tt.mapping, tt.amount)
		}
	}
}

func TestCurrencies(t *testing.T) {
	for _, tt := range []struct{ mapping, kind, data, want string }{
		{"fields: {currency: {constant: EUR}}", "FundsCredited", `{"amount":"1"}`, "FundsCredited 1.00 EUR"},
		{"fields: {currency: {constant: EUR}}", "FundsCredited", `{"amount":"1","currency":"JPY"}`, "FundsCredited 1.00 EUR"},
		{"fields: {currency: {constant: EUR}}", "AccountOpened", `{}`, "AccountOpened 0.00 EUR"},
		{"fields: {currency: {constant: EUR}}", "AccountClosed", `{}`, "AccountClosed 0.00 EUR"},
		{"fields: {currency: {case: lower}}", "FundsCredited", `{"amount":"1","currency":"usd"}`, "FundsCredited 1.00 USD"},
		{"fields: {currency: {case: lower}}", "FundsCredited", `{"amount":"1","currency":"USD"}`, "unsupported_currency data.currency"},
		{"fields: {currency: {case: lower}}", "FundsCredited", `{"amount":"1","currency":"Usd"}`, "unsupported_currency data.currency"},
		{"fields: {currency: {code: numeric}}", "FundsCredited", `{"amount":"1","currency":"978"}`, "FundsCredited 1.00 EUR"},
		{"fields: {currency: {code: numeric}}", "FundsCredited", `{"amount":"1","currency":"036"}`, "FundsCredited 1.00 AUD"},
		{"fields: {currency: {code: numeric}}", "FundsCredited", `{"amount":"1","currency":"36"}`, "unsupported_currency data.currency"},
		{"fields: {currency: {code: numeric}}", "FundsCredited", `{"amount":"1","currency":"0978"}`, "unsupported_currency data.currency"},
		{"fields: {currency: {code: numeric}}", "FundsCredited", `{"amount":"1","currency":"+78"}`, "unsupported_currency data.currency"},
		{"fields: {currency: {code: numeric}}", "FundsCredited", `{"amount":"1","currency":"000"}`, "unsupported_currency data.currency"},
		{"fields: {currency: {code: numeric}}", "FundsCredited", `{"amount":"1","currency":"EUR"}`, "unsupported_currency data.currency"},
		{"fields: {currency: {code: numeric}}", "FundsCredited", `{"amount":"1","currency":978}`, "malformed_payload data.currency"},
		{"fields: {currency: {code: numeric}}", "AccountClosed", `{}`, "AccountClosed 0"},
		{"fields: {currency: {header: number, code: numeric}}", "FundsCredited", `{"amount":"1"}`, "FundsCredited 1 JPY"},
		{"fields: {currency: {header: money, path: iso, code: numeric, type: integer}}", "FundsCredited", `{"amount":"1"}`, "FundsCredited 1.00 AUD"},
		{"fields: {currency: {code: numeric, type: integer}}", "FundsCredited", `{"amount":"1","currency":36}`, "FundsCredited 1.00 AUD"},
		{"fields: {currency: {code: numeric, type: integer}}", "FundsCredited", `{"amount":"1","currency":978}`, "FundsCredited 1.00 EUR"},
		{"fields: {currency: {code: numeric, type: integer}}", "FundsCredited", `{"amount":"1","currency":"978"}`, "malformed_payload data.currency"},
		{"fields: {currency: {code: numeric, type: integer}}", "FundsCredited", `{"amount":"1","currency":978.0}`, "malformed_payload data.currency"},
		{"fields: {currency: {code: numeric, type: integer}}", "FundsCredited", `{"amount":"1","currency":-978}`, "unsupported_currency data.currency"},
		{"fields: {currency: {code: numeric, type: integer}}", "FundsCredited", `{"amount":"1","currency":70000978}`, "unsupported_currency data.currency"},
		{"fields: {data: money, currency: {path: iso, code: numeric, type: integer}}", "FundsCredited", `{}`, "malformed_payload money"},
		{"fields: {}", "FundsCredited", `{"amount":"1","currency":"978"}`, "unsupported_currency data.currency"},
		{"fields: {}", "FundsCredited", `{"amount":"1","currency":"usd"}`, "unsupported_currency data.currency"},
		{"fields: {currency: {header: ccy}}", "FundsCredited", `{"amount":"1"}`, "FundsCredited 1.00 CHF"},
		{"fields: {currency: {header: none}}", "FundsCredited", `{"amount":"1"}`, "malformed_payload header none"},
		{"fields: {currency: {header: none}}", "AccountClosed", `{}`, "AccountClosed 0"},
		{"fields: {currency: {header: nothing}}", "AccountClosed", `{}`, "AccountClosed 0"},
		{"fields: {currency: {header: nothing}}", "FundsCredited", `{"amount":"1"}`, "malformed_payload header nothing"},
		{"fields: {currency: {header: money, path: none}}", "AccountClosed", `{}`, "AccountClosed 0"},
		{"fields: {currency: {header: money, path: nil}}", "AccountClosed", `{}`, "AccountClosed 0"},
		{"fields: {currency: {header: money, path: major}}", "AccountClosed", `{}`, "malformed_payload header money: major"},
		{"fields: {currency: {header: ccy, path: iso}}", "AccountClosed", `{}`, "malformed_payload header ccy: iso"},
		{"fields: {currency: {header: ccy}}", "AccountClosed", `{}`, "AccountClosed 0.00 CHF"},
		{"fields: {amount: {header: amount}}", "FundsCredited", `{"currency":"EUR"}`, "FundsCredited 7.25 EUR"},
		{"fields: {amount: {header: cents, unit: minor}}", "FundsCredited", `{"currency":"EUR"}`, "FundsCredited 7.25 EUR"},
		{"fields: {amount: {header: money, path: cents, unit: minor}}", "FundsCredited", `{"currency":"EUR"}`, "FundsCredited 7.25 EUR"},
		{"fields: {amount: {header: money, path: major, type: number}}", "FundsCredited", `{"currency":"EUR"}`, "FundsCredited 7.25 EUR"},
		{"fields: {amount: {header: money, path: text, zeros: dropped}}", "FundsCredited", `{"currency":"EUR"}`, "FundsCredited 7.25 EUR"},
		{"fields: {amount: {header: money, path: text, type: number}}", "FundsCredited", `{"currency":"EUR"}`, "malformed_payload header money: text"},
		{"fields: {amount: {header: money, path: exponent, type: number}}", "FundsCredited", `{"currency":"EUR"}`, "invalid_amount header money: exponent"},
		{"fields: {amount: {header: money, path: major, unit: minor}}", "FundsCredited", `{"currency":"EUR"}`, "invalid_amount header money: major"},
		{"fields: {amount: {header: none}}", "FundsCredited", `{"currency":"EUR"}`, "malformed_payload header none"},
	} {
		f := formatOf(t, event.FormatJSON, tt.mapping)
		var d event.Decoded
		f.Decode(event.Message{Value: []byte(eventOf(tt.kind, tt.data)), Headers: []event.Header{
			{Key: "ccy", Value: []byte("CHF")},
			{Key: "number", Value: []byte("392")},
			{Key: "nothing", Value: []byte("null")},
			{Key: "amount", Value: []byte("7.25")},
			{Key: "cents", Value: []byte("725")},
			{Key: "money", Value: []byte(`{"iso":36,"cents":725,"major":7.25,"text":"7.25","exponent":725e-2,"nil":null}`)},
		}}, &d)
		if got := decoded(&d); got != tt.want {
			t.Errorf("%s with %s %s:\n got %s (%v)\nwant %s", tt.mapping, tt.kind, tt.data, got, d.Fault, tt.want)
		}
	}
}

func TestDerivedTypes(t *testing.T) {
	const table = `
eventTypes:
  posting/C: FundsCredited
  posting/D: FundsDebited
  reversal/D: FundsCredited
  note/C: ignored
fields:
  eventType: {join: [kind, data.direction], with: /}
`
	optional := strings.NewReplacer("note/C: ignored", "opening//: AccountOpened\n  posting/C/: FundsCredited", "posting/C: FundsCredited\n  ", "",
		"data.direction]", "{path: data.direction, optional: true}, {path: data.none, optional: true}]").Replace(table)
	for _, tt := range []struct{ mapping, kind, direction, want string }{
		{table, `"posting"`, `"C"`, "FundsCredited 1.00 EUR"},
		{table, `"posting"`, `"D"`, "FundsDebited 1.00 EUR"},
		{table, `"reversal"`, `"D"`, "FundsCredited 1.00 EUR"},
		{table, `"note"`, `"C"`, "ignored"},
		{table, `"note"`, `"D"`, "unknown_event_type kind and data.direction"},
		{table, `"FundsCredited"`, `"C"`, "unknown_event_type kind and data.direction"},
		{table, `"posting"`, `null`, "malformed_payload data.direction"},
		{optional, `"opening"`, `null`, "AccountOpened 0.00 EUR"},
		{optional, `"opening"`, `1`, "malformed_payload data.direction"},
		{optional, `"posting"`, `"C"`, "FundsCredited 1.00 EUR"},
		{optional, `"posting"`, `null`, "unknown_event_type kind and data.direction and data.none"},
		{table, `"posting"`, `1`, "malformed_payload data.direction"},
		{table, `"posting"`, `""`, "malformed_payload data.direction"},
		{table, `"posting"`, `["C"]`, "malformed_payload data.direction"},
		{table, `null`, `"C"`, "malformed_payload kind"},
		{table, `"posting/C"`, `""`, "malformed_payload kind"}, // the value contains the separator
		{"eventTypes: {true: FundsCredited, false: FundsDebited}\nfields: {eventType: {path: data.direction, type: boolean}}", `0`, `true`, "FundsCredited 1.00 EUR"},
		{"eventTypes: {true: FundsCredited, false: FundsDebited}\nfields: {eventType: {path: data.direction, type: boolean}}", `0`, `false`, "FundsDebited 1.00 EUR"},
		{"eventTypes: {true: FundsCredited}\nfields: {eventType: {path: data.direction, type: boolean}}", `0`, `"true"`, "malformed_payload data.direction"},
		{"eventTypes: {1: FundsCredited, 2: FundsDebited}\nfields: {eventType: {path: kind, type: integer}}", `2`, `0`, "FundsDebited 1.00 EUR"},
		{"eventTypes: {1: FundsCredited, 2: FundsDebited}\nfields: {eventType: {path: kind, type: integer}}", `2.0`, `0`, "malformed_payload kind"},
		{"eventTypes: {1: FundsCredited, 2: FundsDebited}\nfields: {eventType: {path: kind, type: integer}}", `"2"`, `0`, "malformed_payload kind"},
		{"eventTypes: {1: FundsCredited, 2: FundsDebited}\nfields: {eventType: {path: kind, type: integer}}", `3`, `0`, "unknown_event_type kind"},
		{"eventTypes: {all: FundsCredited}\nfields: {eventType: {constant: all}}", `0`, `0`, "FundsCredited 1.00 EUR"},
	} {
		f := formatOf(t, event.FormatJSON, tt.mapping)
		value := `{"eventId":"e","kind":` + tt.kind + `,"accountId":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z",` +
			`"data":{"amount":"1","currency":"EUR","direction":` + tt.direction + `}}`
		var d event.Decoded
		f.Decode(event.Message{Value: []byte(value)}, &d)
		if got := decoded(&d); got != tt.want {
			t.Errorf("%s with %s %s:\n got %s (%v)\nwant %s", tt.mapping, tt.kind, tt.direction, got, d.Fault, tt.want)
		}
	}
}

func TestIdentities(t *testing.T) {
	const value = `{"id":7,"bank":{"code":"B-1","branch":12},"account":"77","seq":"5","nums":["x"],"big":9223372036854775808,` +
		`"frac":1.5,"empty":"","long":"` + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" +
		`","eventId":"e","eventType":"AccountClosed","accountId":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z"}`
	for _, tt := range []struct{ fields, want string }{
		{"eventId: {path: id, type: integer}", "7 a 1 -"},
		{"eventId: {path: big, type: integer}", "9223372036854775808 a 1 -"},
		{"eventId: {path: frac, type: integer}", "malformed_payload frac"},
		{"eventId: {path: account, type: integer}", "malformed_payload account"},
		{"eventId: id", "malformed_payload id"},
		{"eventId: {type: integer}", "malformed_payload eventId"},
		{"accountId: {join: [{path: bank.branch, type: integer}, account], with: ':'}", "e 12:77 1 -"},
		{"accountId: {join: [bank.code, account], with: ':'}", "e B-1:77 1 -"},
		{"accountId: {join: [account, bank.code], with: '-'}", "e 77-B-1 1 -"}, // the last part may contain the separator
		{"accountId: {join: [bank.code, account], with: '-'}", "malformed_payload bank.code"},
		{"accountId: {join: [empty, account], with: '-'}", "malformed_payload empty"},
		{"accountId: {join: [{constant: DE}, account, {header: region}], with: '-'}", "e DE-77-north 1 -"},
		{"accountId: {join: [long, long], with: '-'}", "malformed_payload long and long"},
		{"eventId: {join: [account, {path: version, type: integer}], with: '/'}", "77/1 a 1 -"}, // another field uses the same path
		{"accountId: {key: true, path: acct.no}", "e K-1 1 -"},
		{"accountId: {key: true, path: acct.none}", "malformed_payload key: acct.none"},
		{"accountId: {key: true, path: acct}", "malformed_payload key: acct"},
		{"version: {key: true, path: seq}", "e a 9 -"},
		{"version: {path: seq, type: text}", "e a 5 -"},
		{"version: seq", "malformed_payload seq"},
		{"version: {path: id, type: text}", "malformed_payload id"},
		{"version: {path: big}", "malformed_payload big"},
		{"version: {header: region}", "malformed_payload header region"},
		{"version: nums.0", "malformed_payload nums.0"}, // the path leads into an array
		{"correlationId: {key: true, path: trace}", "e a 1 t-1"},
		{"correlationId: {header: nothing}", "e a 1 -"},
		{"occurredAt: {key: true, path: at, unit: ms}", "e a 1 -"},
		{"occurredAt: {key: true, path: acct.no, unit: ms}", "malformed_payload key: acct.no"},
	} {
		f := formatOf(t, event.FormatJSON, "fields:\n  "+tt.fields+"\n")
		var d event.Decoded
		f.Decode(event.Message{
			Key:     []byte(`{"acct":{"no":"K-1"},"seq":9,"trace":"t-1","at":1767225600123}`),
			Value:   []byte(value),
			Headers: []event.Header{{Key: "region", Value: []byte("north")}},
		}, &d)
		var got string
		if ev := &d.Event; d.Fault != nil {
			got = string(d.Fault.Class) + " " + d.Fault.Field
		} else {
			got = strings.TrimSuffix(strings.Join([]string{ev.ID, ev.AccountID, event.FormatAmount(ev.Version, event.Currency{}), ev.CorrelationID}, " "), " ")
			if ev.CorrelationID == "" {
				got += " -"
			}
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s (%v)\nwant %s", tt.fields, got, d.Fault, tt.want)
		}
	}
}

// The sign of the amount is read before the other texts, because it decides the type. Reading the
// other texts must not overwrite the digits of the amount.
func TestSignedAmountsWithEscapes(t *testing.T) {
	f := formatOf(t, event.FormatJSON, signed)
	for range 2 { // in the second round the buffer for texts is large enough
		var d event.Decoded
		f.Decode(event.Message{Value: []byte(`{"eventId":"\u0065","eventType":"movement","accountId":"\u0061","version":1,` +
			`"occurredAt":"2026-01-01T00:00:00\u002B00:00","data":{"amount":"-1\u0030.25","currency":"EU\u0052"}}`)}, &d)
		if got := decoded(&d); d.Fault != nil || got != "FundsDebited 10.25 EUR" {
			t.Errorf("%s (%v)", got, d.Fault)
		}
	}
}
