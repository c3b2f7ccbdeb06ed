package bank

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// book delivers a whole stream to a ledger.
func book(s *Stream) *Ledger {
	l := NewLedger()
	for i, r := range s.Records {
		l.Deliver(i, r.Value)
	}
	return l
}

func TestSameSeedSameStream(t *testing.T) {
	t.Parallel()
	opts := Options{Accounts: 30, Events: 900, Seed: 7, Prefix: "acc-", Refused: true}
	if a, b := NewStream(opts), NewStream(opts); !reflect.DeepEqual(a, b) {
		t.Error("two streams of one seed differ")
	}
	a := NewStream(opts)
	opts.Seed++
	if b := NewStream(opts); reflect.DeepEqual(a.Records, b.Records) {
		t.Error("another seed makes the same stream")
	}
}

// TestStreamHasEverything: whatever the size and the seed, each outcome and each
// class appears, some accounts are stale, and a hole heals.
func TestStreamHasEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		opts := Options{
			Accounts: rapid.IntRange(MinAccounts, 40).Draw(t, "accounts"),
			Seed:     rapid.Uint64().Draw(t, "seed"),
			Refused:  rapid.Bool().Draw(t, "refused"),
			Prefix:   "acc-",
		}
		opts.Events = opts.Accounts * rapid.IntRange(MinEventsPerAccount, 15).Draw(t, "events an account")
		s := NewStream(opts)
		l := book(s)

		classes := map[string]bool{}
		for _, letter := range l.Letters() {
			classes[letter.Class] = true
		}
		want := []string{
			malformed, unknownEventType, invalidAmount, unsupportedCurrency, currencyMismatch,
			versionGap, versionConflict, balanceOverflow,
		}
		if opts.Refused {
			want = append(want, rejectedByDatabase)
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(classes)); !slices.Equal(got, want) {
			t.Errorf("classes: got %v, want %v", got, want)
		}
		for _, outcome := range []string{applied, duplicate, ignored, deadLettered} {
			if l.Outcomes[outcome] == 0 {
				t.Errorf("no record is %s", outcome)
			}
		}
		if l.Healed == 0 {
			t.Error("no hole heals")
		}
		accounts := l.Accounts()
		if len(accounts) != opts.Accounts {
			t.Errorf("%d accounts, want %d", len(accounts), opts.Accounts)
		}
		stale := 0
		for _, a := range accounts {
			if a.WaitsFor > 0 {
				stale++
			}
		}
		holes := 10
		if opts.Refused {
			holes++
		}
		if stale != holes {
			t.Errorf("%d stale accounts, want %d: one for each hole that stays", stale, holes)
		}
	})
}

func TestKeysAndRedeliveries(t *testing.T) {
	t.Parallel()
	s := NewStream(Options{Accounts: 100, Events: 20_000, Seed: 1, Prefix: "acc-"})
	seen, twice := map[string]bool{}, 0
	for _, r := range s.Records {
		if len(r.Key) == 0 {
			t.Fatal("a record has no key")
		}
		if r.Value == nil {
			continue
		}
		if seen[string(r.Value)] {
			twice++
		}
		seen[string(r.Value)] = true
		if e := read(r.Value); e.known && e.account != string(bytes.TrimSpace(r.Key)) {
			t.Fatalf("key %s, account %s", r.Key, e.account)
		}
	}
	if twice > s.Redelivered || twice < s.Redelivered-1 { // the tombstone may be one of them
		t.Errorf("%d records come twice, want %d", twice, s.Redelivered)
	}
	if share := float64(s.Redelivered) / 20_000; share < 0.04 || share > 0.06 {
		t.Errorf("%.3f of the records come twice, want about 0.05", share)
	}
	if s.Currencies < 5 {
		t.Errorf("%d currencies, want several", s.Currencies)
	}
}
