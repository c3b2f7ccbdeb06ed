package testbank

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// line returns the value of one record. The expected outcomes in this file were worked out by hand.
func line(version int, id, kind, data string) string {
	return fmt.Sprintf(`{"eventId":%q,"eventType":%q,"accountId":"a","version":%d,"occurredAt":"2026-01-01T00:00:00Z","data":%s}`,
		id, kind, version, data)
}

func TestByHand(t *testing.T) {
	script := []struct{ value, class string }{
		{line(1, "e1", "AccountOpened", `{"currency":"EUR"}`), ""},
		{line(3, "e3", "FundsCredited", `{"amount":"1.5","currency":"EUR"}`), "version_gap"},
		{line(4, "e4", "FundsCredited", `{"amount":"1","currency":"USD"}`), "version_gap"},
		{line(5, "e5", "FundsDebited", `{"amount":"0.05","currency":"EUR"}`), "version_gap"},
		{line(2, "e2", "FundsCredited", `{"amount":10,"currency":"EUR"}`), "malformed_payload"},
		{line(2, "f2", "FundsCredited", `{"amount":"10.00","currency":"EUR"}`), ""}, // fills the gap, so 3 is applied; 4 has the wrong currency
		{line(2, "e2", "FundsCredited", `{"amount":10,"currency":"EUR"}`), ""},      // its version is already applied: a duplicate
		{line(3, "g3", "FundsCredited", `{"amount":"1.5","currency":"EUR"}`), "version_conflict"},
		{line(6, "e6", "FundsCredited", `{"amount":"1.005","currency":"EUR"}`), "invalid_amount"},
		{line(7, "e7", "Renamed", `null`), "version_gap"},
		{line(8, "e8", "Renumbered", `{}`), "unknown_event_type"},
		{`{"eventId":"x","eventId":"x"}`, "malformed_payload"},
		{`{"eventType":"Renamed"}`, ""},
	}
	o := New("Renamed")
	records := make([]Record, len(script))
	want := []string{}
	for i, line := range script {
		records[i] = Record{Offset: int64(i), Value: []byte(line.value)}
		if line.class != "" {
			want = append(want, line.class)
		}
		if i == 5 {
			want = append(want, "currency_mismatch") // event 4 fails when the gap before it is filled
		}
	}
	o.Decide(records)
	var got []string
	for _, l := range o.DeadLetters {
		got = append(got, l.Class)
	}
	if !slices.Equal(got, want) {
		t.Errorf("dead letters:\n got %v\nwant %v", got, want)
	}
	row := o.Rows()["a"]
	if row.Balance != "11.50" || row.Version != 3 || row.LastEventID != "e3" || !row.Stale || row.WaitingFor != 4 {
		t.Errorf("row: %+v", row)
	}
	if got, want := *o.Outcomes[0], (Outcomes{Applied: 2, Duplicate: 1, Ignored: 1, DeadLettered: 9}); got != want {
		t.Errorf("outcomes: got %+v, want %+v", got, want)
	}
}

func TestStrictJSON(t *testing.T) {
	good := line(1, "e1", "AccountOpened", `{"currency":"EUR"}`)
	for name, value := range map[string]string{
		"byte order mark":   "\ufeff" + good,
		"trailing":          good + "{}",
		"lone surrogate":    line(1, "e1", "AccountOpened", `{"currency":"EUR","x":"\ud800"}`),
		"low surrogate":     line(1, "e1", "AccountOpened", `{"currency":"EUR","x":"\udc00"}`),
		"nested double key": line(1, "e1", "AccountOpened", `{"currency":"EUR","x":{"y":1,"y":2}}`),
		"invalid UTF-8":     line(1, "e1", "AccountOpened", `{"currency":"EUR","x":"`+"\xff"+`"}`),
		"array":             "[]",
		"empty":             "",
	} {
		o := New()
		o.Decide([]Record{{Value: []byte(value)}})
		if len(o.DeadLetters) != 1 || o.DeadLetters[0].Class != "malformed_payload" || o.DeadLetters[0].Identified {
			t.Errorf("%s: %+v", name, o.DeadLetters)
		}
	}
	o := New()
	o.Decide([]Record{{Value: []byte(line(1, "e1", "AccountOpened", `{"currency":"EUR","x":"\ud83d\ude00\\ud800"}`))}})
	if len(o.DeadLetters) != 0 {
		t.Errorf("a surrogate pair and an escaped backslash are fine: %+v", o.DeadLetters)
	}
}

func credited(version int, amount string) string {
	return line(version, fmt.Sprint("e", version), "FundsCredited", fmt.Sprintf(`{"amount":%q,"currency":"EUR"}`, amount))
}

func debited(version int, amount string) string {
	return line(version, fmt.Sprint("e", version), "FundsDebited", fmt.Sprintf(`{"amount":%q,"currency":"EUR"}`, amount))
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	const tombstone = "-"
	tests := map[string]struct {
		records  []string
		balance  string // "" if no event is applied
		version  int64
		waitsFor int64
		letters  string // record:class, in order
		outcomes Outcomes
		healed   int
	}{
		"credits less debits, below zero": {
			records: []string{line(1, "e1", "AccountOpened", `{"currency":"EUR"}`), credited(2, "10.25"), debited(3, "12")},
			balance: "-1.75", version: 3, outcomes: Outcomes{Applied: 3},
		},
		"delivered twice": {
			records: []string{credited(1, "1"), credited(1, "1"), credited(2, "1"), credited(1, "1"), tombstone},
			balance: "2.00", version: 2, outcomes: Outcomes{Applied: 2, Duplicate: 2, Ignored: 1},
		},
		"late": {
			records: []string{credited(1, "1"), credited(4, "1"), credited(3, "1"), credited(2, "1")},
			balance: "4.00", version: 4, letters: "1:version_gap 2:version_gap", healed: 2,
			outcomes: Outcomes{Applied: 2, DeadLettered: 2},
		},
		"gap delivered twice is dead-lettered twice and waits once": {
			records: []string{credited(1, "1"), credited(3, "1"), credited(3, "1"), credited(2, "1")},
			balance: "3.00", version: 3, letters: "1:version_gap 2:version_gap", healed: 1,
			outcomes: Outcomes{Applied: 2, DeadLettered: 2},
		},
		"missing": {
			records: []string{credited(1, "1"), credited(3, "1")},
			balance: "1.00", version: 1, waitsFor: 2, letters: "1:version_gap",
			outcomes: Outcomes{Applied: 1, DeadLettered: 1},
		},
		"first is missing": {
			records: []string{credited(2, "1")}, waitsFor: 1, letters: "0:version_gap", outcomes: Outcomes{DeadLettered: 1},
		},
		"poison is the hole": {
			records: []string{credited(1, "1"), credited(2, "1.005"), credited(3, "1")},
			balance: "1.00", version: 1, waitsFor: 2, letters: "1:invalid_amount 2:version_gap",
			outcomes: Outcomes{Applied: 1, DeadLettered: 2},
		},
		"corrected under a new id, then the poison again": {
			records: []string{
				credited(1, "1"), credited(2, "0"), credited(3, "1"), strings.Replace(credited(2, "2"), "e2", "right", 1), credited(2, "0"),
			},
			balance: "4.00", version: 3, letters: "1:invalid_amount 2:version_gap", healed: 1,
			outcomes: Outcomes{Applied: 2, DeadLettered: 2, Duplicate: 1},
		},
		"waits in vain: the hole moves": {
			records: []string{
				credited(1, "1"), line(3, "e3", "FundsCredited", `{"amount":"1","currency":"USD"}`), credited(4, "1"), credited(2, "1"),
			},
			balance: "2.00", version: 2, waitsFor: 3, letters: "1:currency_mismatch 1:version_gap 2:version_gap",
			outcomes: Outcomes{Applied: 2, DeadLettered: 2},
		},
		"poison ahead keeps its class": {
			records: []string{credited(1, "1"), credited(3, "-1"), credited(2, "1")},
			balance: "2.00", version: 2, waitsFor: 3, letters: "1:invalid_amount",
			outcomes: Outcomes{Applied: 2, DeadLettered: 1},
		},
		"another event under the version makes nothing stale": {
			records: []string{credited(1, "1"), strings.Replace(credited(1, "5"), "e1", "x", 1), credited(2, "1")},
			balance: "2.00", version: 2, letters: "1:version_conflict", outcomes: Outcomes{Applied: 2, DeadLettered: 1},
		},
		"unreadable makes nothing stale": {
			records: []string{credited(1, "1"), credited(2, "1")[:40], credited(2, "1")},
			balance: "2.00", version: 2, letters: "1:malformed_payload", outcomes: Outcomes{Applied: 2, DeadLettered: 1},
		},
		"beyond 64 bits": {
			records: []string{credited(1, "92233720368547758.07"), credited(2, "0.01")},
			balance: "92233720368547758.07", version: 1, waitsFor: 2, letters: "1:balance_overflow",
			outcomes: Outcomes{Applied: 1, DeadLettered: 1},
		},
		"refused by the database": {
			records:  []string{line(1, "e1", "AccountOpened", `{"currency":"BTN"}`), credited(2, "1")},
			waitsFor: 1, letters: "0:rejected_by_database 1:version_gap", outcomes: Outcomes{DeadLettered: 2},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := New()
			o.RefuseCurrency = RefusedCurrency
			for i, r := range test.records {
				record := Record{Offset: int64(i), Value: []byte(r)}
				if r == tombstone {
					record.Value = nil
				}
				o.Decide([]Record{record})
			}
			row := o.Rows()["a"]
			if row.Balance != test.balance || row.Version != test.version || row.WaitingFor != test.waitsFor {
				t.Errorf("got balance %q, version %d, waits for %d; want %q, %d, %d",
					row.Balance, row.Version, row.WaitingFor, test.balance, test.version, test.waitsFor)
			}
			if got := spell(o.DeadLetters); got != test.letters {
				t.Errorf("dead letters: got %q, want %q", got, test.letters)
			}
			if *o.Outcomes[0] != test.outcomes || o.Healed != test.healed {
				t.Errorf("got %+v, %d healed; want %+v, %d", *o.Outcomes[0], o.Healed, test.outcomes, test.healed)
			}
		})
	}
}

func spell(letters []DeadLetter) string {
	letters = slices.Clone(letters)
	slices.SortFunc(letters, func(a, b DeadLetter) int {
		return cmp.Or(cmp.Compare(a.Record.Offset, b.Record.Offset), strings.Compare(a.Class, b.Class))
	})
	words := make([]string, len(letters))
	for i, l := range letters {
		words[i] = fmt.Sprintf("%d:%s", l.Record.Offset, l.Class)
	}
	return strings.Join(words, " ")
}

func TestFlaws(t *testing.T) {
	t.Parallel()
	const good = `{"eventId":"e","eventType":"FundsCredited","accountId":"a","version":1,` +
		`"occurredAt":"2026-01-01T00:00:00.123Z","data":{"amount":"10.25","currency":"EUR"}}`
	tests := []struct {
		old, with string
		known     bool
		flaw      string
	}{
		{"", "", true, ""},
		{`"eventId":"e",`, ``, false, malformed},
		{`"version":1`, `"version":"1"`, false, malformed},
		{`"version":1`, `"version":0`, false, malformed},
		{`"version":1`, `"version":1.5`, false, malformed},
		{`"version":1`, `"version":null`, false, malformed},
		{`2026-01-01T00:00:00.123Z`, `yesterday`, true, malformed},
		{`FundsCredited`, `AccountFrozen`, true, "unknown_event_type"},
		{`"currency":"EUR"`, `"currency":"ZZZ"`, true, "unsupported_currency"},
		{`,"currency":"EUR"`, ``, true, malformed},
		{`"amount":"10.25",`, ``, true, malformed},
		{`"10.25"`, `10.25`, true, malformed},
		{`"10.25"`, `"10.250"`, true, "invalid_amount"},
		{`"10.25"`, `"010.25"`, true, "invalid_amount"},
		{`"10.25"`, `"1e1"`, true, "invalid_amount"},
		{`"10.25"`, `"0.00"`, true, "invalid_amount"},
		{`"10.25"`, `"-1"`, true, "invalid_amount"},
		{`"10.25"`, `"92233720368547758.08"`, true, "invalid_amount"},
	}
	for _, test := range tests {
		r := Record{Value: []byte(strings.Replace(good, test.old, test.with, 1))}
		if known, _, flaw := New().Classify(&r); known != test.known || flaw != test.flaw {
			t.Errorf("%s for %s: got known %t, flaw %q; want %t, %q", test.with, test.old, known, flaw, test.known, test.flaw)
		}
	}
	d := New().decode(&Record{Value: []byte(good)})
	if d.amount.Int64() != 1025 || !d.at.Equal(time.Date(2026, 1, 1, 0, 0, 0, 123e6, time.UTC)) {
		t.Errorf("got %+v", d)
	}
}
