package testbank

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The function decided returns an oracle that has processed a whole showcase.
func decided(s *Showcase, refused bool) *Oracle {
	o := New()
	if refused {
		o.RefuseCurrency = RefusedCurrency
	}
	records := slices.Clone(s.Records)
	for i := range records {
		records[i].Offset = int64(i)
	}
	o.Decide(records)
	return o
}

func TestSameSeedSameStream(t *testing.T) {
	t.Parallel()
	opts := ShowcaseOptions{Accounts: 30, Events: 900, Seed: 7, Prefix: "acc-", Refused: true}
	a := NewShowcase(opts)
	if b := NewShowcase(opts); !reflect.DeepEqual(a, b) {
		t.Error("two showcases of one seed differ")
	}
	opts.Seed++
	if b := NewShowcase(opts); reflect.DeepEqual(a.Records, b.Records) {
		t.Error("another seed makes the same showcase")
	}
	stream := Options{Seed: 7, Records: 3000, Partitions: 3, Accounts: 100, Rivals: true, Ranges: true, Transactions: true}
	if !reflect.DeepEqual(Generate(stream), Generate(stream)) {
		t.Error("two streams of one seed differ")
	}
}

// TestShowcaseHasEverything checks several sizes and seeds. Each outcome and each class appears,
// some accounts are stale, and a gap is filled.
func TestShowcaseHasEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		opts := ShowcaseOptions{
			Accounts: rapid.IntRange(MinAccounts, 40).Draw(t, "accounts"),
			Seed:     rapid.Uint64().Draw(t, "seed"),
			Refused:  rapid.Bool().Draw(t, "refused"),
			Prefix:   "acc-",
		}
		opts.Events = opts.Accounts * rapid.IntRange(MinEventsPerAccount, 15).Draw(t, "events an account")
		o := decided(NewShowcase(opts), opts.Refused)

		classes := map[string]bool{}
		for _, letter := range o.DeadLetters {
			classes[letter.Class] = true
		}
		want := []string{
			"malformed_payload", "unknown_event_type", "invalid_amount", "unsupported_currency", "currency_mismatch",
			"version_gap", "version_conflict", "balance_overflow",
		}
		gaps := 10
		if opts.Refused {
			want, gaps = append(want, "rejected_by_database"), gaps+1
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(classes)); !slices.Equal(got, want) {
			t.Errorf("classes: got %v, want %v", got, want)
		}
		for name, n := range o.Outcomes[0].ByName() {
			if n == 0 {
				t.Errorf("no record is %s", name)
			}
		}
		if o.Healed == 0 {
			t.Error("no gap heals")
		}
		rows, stale := o.Rows(), 0
		if len(rows) != opts.Accounts {
			t.Errorf("%d accounts, want %d", len(rows), opts.Accounts)
		}
		for _, row := range rows {
			if row.Stale {
				stale++
			}
		}
		if stale != gaps {
			t.Errorf("%d stale accounts, want %d: one for each gap that stays", stale, gaps)
		}
	})
}

func TestKeysAndRedeliveries(t *testing.T) {
	t.Parallel()
	s := NewShowcase(ShowcaseOptions{Accounts: 100, Events: 20_000, Seed: 1, Prefix: "acc-"})
	seen, twice := map[string]bool{}, 0
	for _, r := range s.Records {
		if len(r.Key) == 0 || len(r.Headers) > 0 {
			t.Fatal("a record has no key, or has headers")
		}
		if r.Value == nil {
			continue
		}
		if seen[string(r.Value)] {
			twice++
		}
		seen[string(r.Value)] = true
		if d := New().decode(&r); d.identified && d.account != string(r.Key) {
			t.Fatalf("key %s, account %s", r.Key, d.account)
		}
	}
	if twice > s.Redelivered || twice < s.Redelivered-1 { // a second delivery of the tombstone is not counted here
		t.Errorf("%d records come twice, want %d", twice, s.Redelivered)
	}
	if share := float64(s.Redelivered) / 20_000; share < 0.04 || share > 0.06 {
		t.Errorf("%.3f of the records come twice, want about 0.05", share)
	}
	if s.Currencies < 5 {
		t.Errorf("%d currencies, want several", s.Currencies)
	}
}

// TestProjections checks that copies of records, and copies of ranges of records, do not change the
// results.
func TestProjections(t *testing.T) {
	t.Parallel()
	records := Generate(Options{Seed: 3, Records: 4000, Partitions: 2, Accounts: 50, Clean: true, Ranges: true})
	once, seen := []Record{}, map[string]bool{}
	for _, r := range records {
		if !seen[string(r.Value)] {
			once = append(once, r)
		}
		seen[string(r.Value)] = true
	}
	if len(once) > len(records)*3/4 {
		t.Errorf("of %d records only %d are copies", len(records), len(records)-len(once))
	}
	for _, of := range []func([]Record) map[string]string{Statement, Turnover} {
		if a, b := of(records), of(once); len(a) == 0 || !maps.Equal(a, b) {
			t.Errorf("%d rows of all records, %d of those that came first", len(a), len(b))
		}
	}
	var byHand []Record
	for _, value := range []string{
		line(1, "e1", "AccountOpened", `{"currency":"EUR"}`), credited(2, "10"), debited(4, "2.5"), credited(2, "10"),
		strings.Replace(line(5, "e5", "AccountClosed", `{}`), "01-01", "01-02", 1),
	} {
		byHand = append(byHand, Record{Value: []byte(value)})
	}
	if got, want := Turnover(byHand), map[string]string{"2026-01-01 EUR": "10.00 2.50 2"}; !maps.Equal(got, want) {
		t.Errorf("turnover: got %v, want %v", got, want)
	}
	want := map[string]string{
		"a 1": "e1 AccountOpened - EUR 2026-01-01T00:00:00.000000 -", "a 2": "e2 FundsCredited 10.00 EUR 2026-01-01T00:00:00.000000 -",
		"a 4": "e4 FundsDebited -2.50 EUR 2026-01-01T00:00:00.000000 -", "a 5": "e5 AccountClosed - 2026-01-02T00:00:00.000000 -",
	}
	if got := Statement(byHand); !maps.Equal(got, want) {
		t.Errorf("statement: got %v, want %v", got, want)
	}
}
