package mapping_test

import (
	"strings"
	"testing"

	"projector/internal/mapping"
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
