package mapping_test

import (
	"strings"
	"testing"

	"projector/internal/mapping"
	"projector/projection/event"
)

func parsed(t *testing.T, text string) *mapping.Mapping {
	t.Helper()
	m, err := mapping.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReadsLike(t *testing.T) {
	const before = "eventTypes: {a: FundsCredited, m: {positive: FundsCredited, negative: FundsDebited}}\n" +
		"fields: {version: meta.seq, amount: {path: cents, unit: minor}, accountId: {join: [x, y], with: '-'}}\n"
	for _, tt := range []struct {
		name, text string
		alike      bool
	}{
		{"the same", before, true},
		{"a comment and another order", "# new\n" + strings.Replace(before, "a: FundsCredited, m", "m", 1) + "", false},
		{
			"another order", "fields: {amount: {unit: minor, path: [cents]}, version: [meta, seq], accountId: {with: '-', join: [x, [y]]}} # c\n" +
				"eventTypes: {m: {negative: FundsDebited, positive: FundsCredited, zero: refused}, a: FundsCredited}\n", true,
		},
		{"an added type", strings.Replace(before, "{a:", "{b: FundsCredited, c: ignored, a:", 1), true},
		{"an added type that renames one of ours", strings.Replace(before, "{a:", "{b: AccountClosed, a:", 1), false},
		{"a type less", strings.Replace(before, "a: FundsCredited, ", "", 1), false},
		{"a type that means something else", strings.Replace(before, "a: FundsCredited", "a: ignored", 1), false},
		{"the other sign", strings.Replace(before, "positive: FundsCredited, negative: FundsDebited", "positive: FundsDebited, negative: FundsCredited", 1), false},
		{"zero ignored", strings.Replace(before, "negative: FundsDebited", "negative: FundsDebited, zero: ignored", 1), false},
		{"another path", strings.Replace(before, "meta.seq", "meta.no", 1), false},
		{"another unit", strings.Replace(before, "unit: minor", "scale: 2", 1), false},
		{"another type of the amount", strings.Replace(before, "unit: minor", "unit: minor, type: text", 1), false},
		{"another separator", strings.Replace(before, "with: '-'", "with: '+'", 1), false},
		{"an envelope", before + "envelope: {path: a}\n", false},
		{"entries", before + "envelope: {entries: ''}\n", false},
		{"a time's unit", before + "", true},
		{"none", "fields: {}\n", false},
	} {
		now := parsed(t, tt.text)
		if got := now.ReadsLike(parsed(t, before).Meaning()); got != tt.alike {
			t.Errorf("%s: %v", tt.name, got)
		}
		if same := now.SHA256() == parsed(t, before).SHA256(); same && !tt.alike {
			t.Errorf("%s: the same hash", tt.name)
		}
	}
	custom := parsed(t, before)
	custom.Custom = true
	if !custom.ReadsLike(parsed(t, "# the same\n"+before).Meaning()) {
		t.Error("a custom projection: the same")
	}
	for _, types := range []string{"{b: FundsCredited, a:", "{PointsEarned: FundsCredited, a:"} {
		custom := parsed(t, strings.Replace(before, "{a:", types, 1))
		custom.Custom = true
		if custom.ReadsLike(parsed(t, before).Meaning()) {
			t.Errorf("a custom projection ignored the events of the added type: %s", types)
		}
	}
	if (&mapping.Mapping{Custom: true}).ReadsLike(parsed(t, before).Meaning()) || !(&mapping.Mapping{Custom: true}).ReadsLike("{}") {
		t.Error("a custom projection without a mapping")
	}
	none := &mapping.Mapping{}
	if none.Meaning() != "{}" || !none.ReadsLike("{}") || none.ReadsLike(parsed(t, before).Meaning()) || none.ReadsLike("") {
		t.Errorf("no mapping: %s", none.Meaning())
	}
	if parsed(t, "eventTypes: {b: FundsCredited}").ReadsLike("{}") || !parsed(t, "eventTypes: {b: ignored}").ReadsLike("{}") {
		t.Error("a first mapping")
	}
}

func TestSuggest(t *testing.T) {
	var s mapping.Samples
	for _, value := range []string{
		`{"meta":{"id":"m-1","type":"movement","seq":0,"ts":1767225600123},"payload":{"acct":"K9","amount":1050,"ccy":"eur"}}`,
		`{"meta":{"id":"m-2","type":"movement","seq":1,"ts":1767225600456},"payload":{"acct":"K9","amount":-250,"ccy":"eur"}}`,
	} {
		s.Add(event.Message{Value: []byte(value)})
	}
	text, decide := s.Suggest(false)
	f := formatOf(t, event.FormatJSON, text)
	var d event.Decoded
	f.Decode(event.Message{Value: []byte(`{"meta":{"id":"m-3","type":"movement","seq":2,"ts":1767225600789},"payload":{"acct":"K9","amount":-10,"ccy":"eur"}}`)}, &d)
	if got := decoded(&d); got != "FundsDebited 0.10 EUR" || d.Event.AccountID != "K9" || d.Event.Version != 2 || d.Event.ID != "m-3" {
		t.Errorf("%s, %+v, of\n%s", got, d.Event, text)
	}
	for _, want := range []string{"DECIDE amount: it is an integer", "DECIDE version", "DECIDE occurredAt"} {
		if !strings.Contains(text, want) {
			t.Errorf("does not say %q:\n%s", want, text)
		}
	}
	if len(decide) < 4 {
		t.Errorf("to decide: %q", decide)
	}

	// What only may be the name of a type is not printed unless all of the payload may be.
	var private mapping.Samples
	for _, kind := range []string{"DEPOSIT", "John Smith", "DE89370400440532013000", "a@b.example", "4711"} {
		private.Add(event.Message{Value: []byte(`{"type":"` + kind + `"}`)})
	}
	text, _ = private.Suggest(false)
	all, _ := private.Suggest(true)
	if !strings.Contains(text, "DEPOSIT: DECIDE") || !strings.Contains(text, "DECIDE 4 values") || !strings.Contains(all, "John Smith") {
		t.Errorf("%s\n%s", text, all)
	}
	for _, value := range []string{"Smith", "DE89", "b.example", "4711"} {
		if strings.Contains(text, value) {
			t.Errorf("prints %s:\n%s", value, text)
		}
	}

	var none mapping.Samples
	none.Add(event.Message{Value: []byte("\x00avro")})
	if text, decide := none.Suggest(false); len(decide) < 5 || !strings.Contains(text, "# version: PATH") {
		t.Errorf("of nothing: %q\n%s", decide, text)
	}
}

// A posting has the account and the amount in its entries, and a part of the account's id and of the
// type beside them.
func TestSuggestEntriesAndJoins(t *testing.T) {
	var s mapping.Samples
	const value = `{"id":"P1","bookedAt":"2026-01-01T00:00:00Z","lines":[{"id":5,"bank":"017","account":"A","seq":1,"type":"fee","side":"D","amount":"1.50","ccy":"EUR"}]}`
	s.Add(event.Message{Value: []byte(value)})
	text, decide := s.Suggest(false)
	for _, want := range []string{
		"lines: is each entry", "{join: [bank, account], with: \"/\"}", "{join: [type, side], with: \"/\"}", "of different bank?", "depend on side?",
	} {
		if !strings.Contains(strings.Join(decide, "\n"), want) {
			t.Errorf("to decide: %q, without %q", decide, want)
		}
	}
	f := formatOf(t, event.FormatJSON, strings.ReplaceAll(text, "fee: DECIDE", "fee: FundsDebited"))
	if got := decodedEach(f, message(value)); len(got) != 1 || got[0] != "1 FundsDebited 1.50 EUR P1/0 A@1" {
		t.Errorf("%q by\n%s", got, text)
	}
}

// A proposal in which nobody has decided what a type means, or the currency, is refused.
func TestAnUndecidedSuggestionIsRefused(t *testing.T) {
	var s mapping.Samples
	s.Add(event.Message{Value: []byte(`{"id":"a","type":"TXN","legs":[{"account":"A"}]}`)})
	text, decide := s.Suggest(false)
	for _, want := range []string{"legs is an array", "amount: none was found, and each credit and debit needs one"} {
		if !strings.Contains(strings.Join(decide, "\n"), want) {
			t.Errorf("to decide: %q, without %q", decide, want)
		}
	}
	if _, err := mapping.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "DECIDE") {
		t.Errorf("%v of\n%s", err, text)
	}
	text = strings.NewReplacer("TXN: DECIDE", "TXN: FundsCredited", "{constant: DECIDE}", "{constant: EUR}").Replace(text)
	if _, err := mapping.Parse([]byte(text)); err != nil {
		t.Errorf("once decided: %v", err)
	}
}

// Whatever records hold, the proposal is a file that can be read once it is decided.
func FuzzSuggest(f *testing.F) {
	f.Add([]byte(`{"id":1,"type":"a\nb: c","amount":"1","ts":"2026-01-01","currency":"EUR","version":"1","account":"x"}`))
	f.Add([]byte(`{"a b":{"ID":"x"},"type":true}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		var s mapping.Samples
		s.Add(event.Message{Value: value, Headers: []event.Header{{Key: string(value), Value: value}}})
		text, _ := s.Suggest(false)
		text = strings.NewReplacer(": DECIDE", ": ignored", "{constant: DECIDE}", "{constant: EUR}").Replace(text)
		if _, err := mapping.Parse([]byte(text)); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	})
}
