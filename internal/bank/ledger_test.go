package bank

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// event writes an event of account a by hand.
func event(version int, id, kind, data string) string {
	return fmt.Sprintf(`{"eventId":%q,"eventType":%q,"accountId":"a","version":%d,"occurredAt":"2026-01-01T00:00:00Z","data":{%s}}`,
		id, kind, version, data)
}

func credit(version int, amount string) string {
	return event(version, fmt.Sprint("e", version), credited, fmt.Sprintf(`"amount":%q,"currency":"EUR"`, amount))
}

func debit(version int, amount string) string {
	return event(version, fmt.Sprint("e", version), debited, fmt.Sprintf(`"amount":%q,"currency":"EUR"`, amount))
}

func TestLedger(t *testing.T) {
	t.Parallel()
	const tombstone = "-"
	tests := map[string]struct {
		records  []string
		balance  string // "" when no event is applied
		version  int64
		waitsFor int64
		letters  string // record:class, in order
		outcomes map[string]int
		healed   int
	}{
		"credits less debits, below zero": {
			records: []string{event(1, "e1", opened, `"currency":"EUR"`), credit(2, "10.25"), debit(3, "12")},
			balance: "-1.75", version: 3, outcomes: map[string]int{applied: 3},
		},
		"delivered twice": {
			records: []string{credit(1, "1"), credit(1, "1"), credit(2, "1"), credit(1, "1"), tombstone},
			balance: "2.00", version: 2, outcomes: map[string]int{applied: 2, duplicate: 2, ignored: 1},
		},
		"late": {
			records: []string{credit(1, "1"), credit(4, "1"), credit(3, "1"), credit(2, "1")},
			balance: "4.00", version: 4, letters: "1:version_gap 2:version_gap", healed: 2,
			outcomes: map[string]int{applied: 2, deadLettered: 2},
		},
		"gap delivered twice is dead-lettered twice and waits once": {
			records: []string{credit(1, "1"), credit(3, "1"), credit(3, "1"), credit(2, "1")},
			balance: "3.00", version: 3, letters: "1:version_gap 2:version_gap", healed: 1,
			outcomes: map[string]int{applied: 2, deadLettered: 2},
		},
		"missing": {
			records: []string{credit(1, "1"), credit(3, "1")},
			balance: "1.00", version: 1, waitsFor: 2, letters: "1:version_gap",
			outcomes: map[string]int{applied: 1, deadLettered: 1},
		},
		"first is missing": {
			records: []string{credit(2, "1")}, waitsFor: 1, letters: "0:version_gap", outcomes: map[string]int{deadLettered: 1},
		},
		"poison is the hole": {
			records: []string{credit(1, "1"), credit(2, "1.005"), credit(3, "1")},
			balance: "1.00", version: 1, waitsFor: 2, letters: "1:invalid_amount 2:version_gap",
			outcomes: map[string]int{applied: 1, deadLettered: 2},
		},
		"corrected under a new id, then the poison again": {
			records: []string{
				credit(1, "1"), credit(2, "0"), credit(3, "1"), strings.Replace(credit(2, "2"), "e2", "right", 1), credit(2, "0"),
			},
			balance: "4.00", version: 3, letters: "1:invalid_amount 2:version_gap", healed: 1,
			outcomes: map[string]int{applied: 2, deadLettered: 2, duplicate: 1},
		},
		"waits in vain: the hole moves": {
			records: []string{
				credit(1, "1"), event(3, "e3", credited, `"amount":"1","currency":"USD"`), credit(4, "1"), credit(2, "1"),
			},
			balance: "2.00", version: 2, waitsFor: 3, letters: "1:currency_mismatch 1:version_gap 2:version_gap",
			outcomes: map[string]int{applied: 2, deadLettered: 2},
		},
		"poison ahead keeps its class": {
			records: []string{credit(1, "1"), credit(3, "-1"), credit(2, "1")},
			balance: "2.00", version: 2, waitsFor: 3, letters: "1:invalid_amount",
			outcomes: map[string]int{applied: 2, deadLettered: 1},
		},
		"another event under the version makes nothing stale": {
			records: []string{credit(1, "1"), strings.Replace(credit(1, "5"), "e1", "x", 1), credit(2, "1")},
			balance: "2.00", version: 2, letters: "1:version_conflict", outcomes: map[string]int{applied: 2, deadLettered: 1},
		},
		"unreadable makes nothing stale": {
			records: []string{credit(1, "1"), credit(2, "1")[:40], credit(2, "1")},
			balance: "2.00", version: 2, letters: "1:malformed_payload", outcomes: map[string]int{applied: 2, deadLettered: 1},
		},
		"beyond 64 bits": {
			records: []string{credit(1, "92233720368547758.07"), credit(2, "0.01")},
			balance: "92233720368547758.07", version: 1, waitsFor: 2, letters: "1:balance_overflow",
			outcomes: map[string]int{applied: 1, deadLettered: 1},
		},
		"refused by the database": {
			records:  []string{event(1, "e1", opened, `"currency":"BTN"`), credit(2, "1")},
			waitsFor: 1, letters: "0:rejected_by_database 1:version_gap", outcomes: map[string]int{deadLettered: 2},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := NewLedger()
			for i, r := range test.records {
				if r == tombstone {
					l.Deliver(i, nil)
				} else {
					l.Deliver(i, []byte(r))
				}
			}
			accounts := l.Accounts()
			if len(accounts) != 1 {
				t.Fatalf("%d accounts, want 1", len(accounts))
			}
			a := accounts[0]
			balance := a.Balance
			if !a.HasBalance {
				balance = ""
			}
			if balance != test.balance || a.Version != test.version || a.WaitsFor != test.waitsFor {
				t.Errorf("got balance %q, version %d, waits for %d; want %q, %d, %d",
					balance, a.Version, a.WaitsFor, test.balance, test.version, test.waitsFor)
			}
			if got := spell(l.Letters()); got != test.letters {
				t.Errorf("dead letters: got %q, want %q", got, test.letters)
			}
			if !reflect.DeepEqual(l.Outcomes, test.outcomes) || l.Healed != test.healed {
				t.Errorf("got %v, %d healed; want %v, %d", l.Outcomes, l.Healed, test.outcomes, test.healed)
			}
		})
	}
}

func spell(letters []Letter) string {
	slices.SortFunc(letters, func(a, b Letter) int {
		return cmp.Or(cmp.Compare(a.Record, b.Record), strings.Compare(a.Class, b.Class))
	})
	words := make([]string, len(letters))
	for i, l := range letters {
		words[i] = fmt.Sprintf("%d:%s", l.Record, l.Class)
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
		{`FundsCredited`, `AccountFrozen`, true, unknownEventType},
		{`"currency":"EUR"`, `"currency":"ZZZ"`, true, unsupportedCurrency},
		{`,"currency":"EUR"`, ``, true, malformed},
		{`"amount":"10.25",`, ``, true, malformed},
		{`"10.25"`, `10.25`, true, malformed},
		{`"10.25"`, `"10.250"`, true, invalidAmount},
		{`"10.25"`, `"010.25"`, true, invalidAmount},
		{`"10.25"`, `"1e1"`, true, invalidAmount},
		{`"10.25"`, `"0.00"`, true, invalidAmount},
		{`"10.25"`, `"-1"`, true, invalidAmount},
		{`"10.25"`, `"92233720368547758.08"`, true, invalidAmount},
	}
	for _, test := range tests {
		r := read([]byte(strings.Replace(good, test.old, test.with, 1)))
		if r.known != test.known || r.flaw != test.flaw {
			t.Errorf("%s for %s: got known %t, flaw %q; want %t, %q", test.with, test.old, r.known, r.flaw, test.known, test.flaw)
		}
	}
	if r := read([]byte(good)); r.minor.Int64() != 1025 || !r.at.Equal(time.Date(2026, 1, 1, 0, 0, 0, 123e6, time.UTC)) {
		t.Errorf("got %+v", r)
	}
}
