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

func alike(m *mapping.Mapping, stored string) bool {
	was, _ := m.Differs(stored)
	return was == ""
}

func TestDiffers(t *testing.T) {
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
		{"dropped zeros", strings.Replace(before, "unit: minor", "zeros: dropped", 1), false},
		{"another separator", strings.Replace(before, "with: '-'", "with: '+'", 1), false},
		{"an envelope", before + "envelope: {path: a}\n", false},
		{"entries", before + "envelope: {entries: ''}\n", false},
		{"a time's unit", before + "", true},
		{"none", "fields: {}\n", false},
	} {
		now := parsed(t, tt.text)
		if got := alike(now, parsed(t, before).Meaning()); got != tt.alike {
			t.Errorf("%s: %v", tt.name, got)
		}
		if same := now.SHA256() == parsed(t, before).SHA256(); same && !tt.alike {
			t.Errorf("%s: the same hash", tt.name)
		}
	}
	if text := "fields: {amount: {zeros: dropped}}"; alike(parsed(t, text), parsed(t, "fields: {amount: amount}").Meaning()) {
		t.Error("zeros that are dropped are no change")
	}
	custom := parsed(t, before)
	custom.Custom = true
	if !alike(custom, parsed(t, "# the same\n"+before).Meaning()) {
		t.Error("a custom projection: the same")
	}
	for _, types := range []string{"{b: FundsCredited, a:", "{PointsEarned: FundsCredited, a:"} {
		custom := parsed(t, strings.Replace(before, "{a:", types, 1))
		custom.Custom = true
		if alike(custom, parsed(t, before).Meaning()) {
			t.Errorf("a custom projection ignored the events of the added type: %s", types)
		}
	}
	if alike(&mapping.Mapping{Custom: true}, parsed(t, before).Meaning()) || !alike(&mapping.Mapping{Custom: true}, "{}") {
		t.Error("a custom projection without a mapping")
	}
	none := &mapping.Mapping{}
	if none.Meaning() != "{}" || !alike(none, "{}") || alike(none, parsed(t, before).Meaning()) || alike(none, "") {
		t.Errorf("no mapping: %s", none.Meaning())
	}
	if alike(parsed(t, "eventTypes: {b: FundsCredited}"), "{}") || !alike(parsed(t, "eventTypes: {b: ignored}"), "{}") {
		t.Error("a first mapping")
	}
}

func TestDiffersByTheFirstVersion(t *testing.T) {
	from := func(first int64, text string) *mapping.Mapping {
		m := parsed(t, text)
		m.FirstVersion = &first
		return m
	}
	const text, other = "fields: {version: seq}", "fields: {version: no}"
	for _, tt := range []struct {
		name, stored, was, is string
		now                   *mapping.Mapping
	}{
		{"the same", from(0, text).Meaning(), "", "", from(0, text)},
		{"another", from(0, text).Meaning(), "--first-version=0 (FIRST_VERSION)", "--first-version=1", from(1, text)},
		{"not stored", parsed(t, text).Meaning(), "", "", from(0, text)},
		{"not known", from(7, text).Meaning(), "", "", parsed(t, text)},
		{
			"both", from(2, text).Meaning(), "another --mapping (EVENT_MAPPING) and --first-version=2 (FIRST_VERSION)",
			"--mapping=FILE --first-version=1", from(1, other),
		},
	} {
		if was, is := tt.now.Differs(tt.stored); was != tt.was || is != tt.is {
			t.Errorf("%s: %q, %q", tt.name, was, is)
		}
	}
	if stored := (&mapping.Mapping{FirstVersion: new(int64(0))}).Meaning(); stored != `{"first_version":0}` {
		t.Errorf("stored as %s", stored) // the name in the database
	}
}
