package projection_test

import (
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
)

// TestAnOpeningReplacesTheHistory shows that an account has the same balance, version and status
// after an opening from the ledger and the later events as after its whole history. Earlier and
// repeated events do not change this. An event at or below the opening's version is a duplicate,
// even with another id. The exception is an event at exactly this version if the opening contains
// the id of another event.
func TestAnOpeningReplacesTheHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		first := rapid.Int64Range(0, 2).Draw(rt, "first version")
		history := []projection.Account{projection.NewAccount(first)} // the account after each event
		var events []event.Decoded
		for i := range rapid.IntRange(1, 12).Draw(rt, "events") {
			d := drawEvent(rt, first+int64(i))
			next, decision := history[i].Apply(&d, false)
			if decision.Outcome == projection.DeadLettered {
				rt.Fatalf("the history cannot be applied: %+v", decision)
			}
			events, history = append(events, d), append(history, next)
		}
		seen := rapid.IntRange(0, len(events)).Draw(rt, "seen")
		at := rapid.IntRange(1, len(events)).Draw(rt, "opened behind")
		o := openingOf(history[at])
		if rapid.Bool().Draw(rt, "the ledger knows no ids") {
			o.LastEventID = ""
		}

		opened, decision := history[seen].Open(&o)
		if at <= seen {
			if opened != history[seen] || decision.Outcome != projection.Duplicate {
				rt.Fatalf("an opening at or below the account has made it %+v, %+v", opened, decision)
			}
			return
		}
		if decision.Outcome != projection.Applied || openingOf(opened) != o || opened.LastEventAt != projection.NoTime {
			rt.Fatalf("%+v, %+v, want %+v", opened, decision, o)
		}
		again, decision := opened.Open(&o)
		if again != opened || decision.Outcome != projection.Duplicate {
			rt.Fatalf("opened again it is %+v, %+v", again, decision)
		}
		passed := drawEvent(rt, rapid.Int64Range(first, o.Version).Draw(rt, "passed"))
		conflict := o.LastEventID != "" && passed.Event.Version == o.Version && passed.Event.ID != o.LastEventID
		again, decision = opened.Apply(&passed, false)
		if again != opened || conflict != (decision.Class == event.VersionConflict) || !conflict && decision.Outcome != projection.Duplicate {
			rt.Fatalf("event %s of version %d is %+v", passed.Event.ID, passed.Event.Version, decision)
		}
		for i := range events[at:] {
			opened, _ = opened.Apply(&events[at+i], false)
		}
		if openingOf(opened) != openingOf(history[len(events)]) && at < len(events) {
			rt.Fatalf("%+v, want %+v", opened, history[len(events)])
		}
	})
}

// TestAnAccountKeepsItsCurrency shows that an opening in another currency, or without a currency,
// does not change an account that has a currency.
func TestAnAccountKeepsItsCurrency(t *testing.T) {
	fresh := projection.NewAccount(1)
	inEuro, _ := fresh.Apply(ptr(credited("a", 1, 5)), false)
	for name, c := range map[string]struct {
		account  projection.Account
		currency event.Currency
		refused  bool
	}{
		"the same":             {inEuro, euro, false},
		"another":              {inEuro, yen, true},
		"none":                 {inEuro, event.Currency{}, true},
		"the account has none": {fresh, yen, false},
		"neither has one":      {fresh, event.Currency{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			next, d := c.account.Open(&projection.Opening{Version: 7, Currency: c.currency})
			if refused := d.Class == event.CurrencyMismatch; refused != c.refused || refused != (next == c.account) {
				t.Errorf("%+v, %+v", next, d)
			}
		})
	}
}

// TestAnImpreciseOpeningIsRefused shows that an imprecise opening never changes the account. It is
// dead-lettered only if its version is higher than the account's version.
func TestAnImpreciseOpeningIsRefused(t *testing.T) {
	inEuro, _ := projection.NewAccount(1).Apply(ptr(credited("a", 1, 5)), false)
	for version, want := range map[int64]event.Class{1: "", 2: event.InvalidAmount} {
		next, d := inEuro.Open(&projection.Opening{Version: version, Currency: euro, Imprecise: true})
		if next != inEuro || d.Class != want {
			t.Errorf("version %d: %+v, %+v", version, next, d)
		}
	}
}

func openingOf(a projection.Account) projection.Opening {
	return projection.Opening{Version: a.Version, Balance: a.Balance, Currency: a.Currency, Closed: a.Closed, LastEventID: a.LastEventID}
}

// drawEvent returns a random event that can be applied, with the given version and one of two ids.
func drawEvent(rt *rapid.T, version int64) event.Decoded {
	return with(credited("a", version, rapid.Int64Range(1, 100).Draw(rt, "amount")), func(ev *event.Event) {
		if rapid.IntRange(0, 3).Draw(rt, "id") == 0 {
			ev.ID += "-another"
		}
		ev.Type = event.TypeNamed(rapid.SampledFrom([]string{"FundsCredited", "FundsDebited", "AccountOpened", "AccountClosed"}).Draw(rt, "type"))
		if ev.Type.Status() != event.Unchanged {
			ev.Amount = 0
		}
	})
}
