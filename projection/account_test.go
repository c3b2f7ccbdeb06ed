package projection_test

import (
	"fmt"
	"testing"

	"projector/projection"
	"projector/projection/event"
)

// TestHeal checks the result of parked events for an account with version 5 and a balance of 10
// EUR.
func TestHeal(t *testing.T) {
	at5, _ := projection.NewAccount(5).Apply(ptr(credited("a", 5, 10)), false)
	inYen := with(credited("a", 6, 1), func(e *event.Event) { e.Currency = yen })
	cases := map[string]struct {
		parked  event.Decoded
		class   event.Class // class with which the event was parked
		refusal string
		result  projection.HealResult
		fails   event.Class
		version int64
		balance int64
	}{
		"its turn":                   {credited("a", 6, 7), event.VersionGap, "", projection.HealApplied, "", 6, 17},
		"passed":                     {credited("a", 5, 7), event.VersionGap, "", projection.HealPassed, "", 5, 10},
		"passed, whatever it was":    {credited("a", 4, 7), event.InvalidAmount, "", projection.HealPassed, "", 5, 10},
		"another gap before it":      {credited("a", 7, 7), event.VersionGap, "", projection.HealWaits, "", 5, 10},
		"the gap itself":             {credited("a", 6, 7), event.InvalidAmount, "", projection.HealWaits, "", 5, 10},
		"cannot be applied":          {inYen, event.VersionGap, "", projection.HealFailed, event.CurrencyMismatch, 5, 10},
		"cannot be read any more":    {faulty(credited("a", 6, 7), event.MalformedPayload), event.VersionGap, "", projection.HealFailed, event.MalformedPayload, 5, 10},
		"refused by PostgreSQL":      {credited("a", 6, 7), event.VersionGap, "23514", projection.HealFailed, event.RejectedByDatabase, 5, 10},
		"refused, and wrong anyway":  {inYen, event.VersionGap, "23514", projection.HealFailed, event.CurrencyMismatch, 5, 10},
		"refused before, and passed": {credited("a", 5, 7), event.VersionGap, "23514", projection.HealPassed, "", 5, 10},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			next, v, result := at5.Heal(&projection.Parked{Decoded: c.parked, Class: c.class}, c.refusal)
			if result != c.result || v.Class != c.fails || next.Version != c.version || next.Balance != c.balance {
				t.Errorf("result %d, class %q, version %d, balance %d; want %+v", result, v.Class, next.Version, next.Balance, c)
			}
		})
	}
}

func TestReprocessedIsNoConflict(t *testing.T) {
	s, _ := projection.NewAccount(1).Apply(ptr(credited("a", 1, 5)), false)
	other := with(credited("a", 1, 9), func(e *event.Event) { e.ID = "other" })
	if _, v := s.Apply(&other, true); v.Outcome != projection.Duplicate {
		t.Errorf("outcome %s, want duplicate", v.Outcome)
	}
}

func TestSkipOnlyTheNextVersion(t *testing.T) {
	s, _ := projection.NewAccount(1).Apply(ptr(credited("a", 1, 5)), false)
	for _, version := range []int64{0, 1, 3} {
		if _, done := s.Skip(version, ""); done {
			t.Errorf("version %d was passed over at version 1", version)
		}
	}
	skipped, done := s.Skip(2, "")
	if !done || skipped.Version != 2 || skipped.Balance != 5 || skipped.LastEventID != "" {
		t.Errorf("%t %+v", done, skipped)
	}
	late := credited("a", 2, 7)
	if _, v := skipped.Apply(&late, false); v.Outcome != projection.Duplicate {
		t.Errorf("the passed-over event delivered again is %s, want duplicate", v.Outcome)
	}
}

func ptr[T any](v T) *T { return &v }

var (
	euro, _ = event.CurrencyByCode("EUR")
	yen, _  = event.CurrencyByCode("JPY")
)

func credited(account string, version, amount int64) event.Decoded {
	return event.Decoded{Identity: event.Identified, Event: event.Event{
		ID: fmt.Sprintf("%s/%d", account, version), AccountID: account, Version: version,
		Type: event.TypeNamed("FundsCredited"), Amount: amount, Currency: euro, OccurredAt: version,
	}}
}

func faulty(d event.Decoded, class event.Class) event.Decoded {
	d.Fault = &event.Fault{Class: class, Reason: "broken on purpose"}
	return d
}

func with(d event.Decoded, change func(*event.Event)) event.Decoded {
	change(&d.Event)
	return d
}
