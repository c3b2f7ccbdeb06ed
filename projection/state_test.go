package projection_test

import (
	"testing"

	"projector/projection"
	"projector/projection/event"
)

// TestHeal: what becomes of a parked event of an account at version 5, balance 10 EUR.
func TestHeal(t *testing.T) {
	at5, _ := projection.NewState(5).Judge(ptr(credited("a", 5, 10)), false)
	inYen := with(credited("a", 6, 1), func(e *event.Event) { e.Currency = yen })
	cases := map[string]struct {
		parked  event.Decoded
		class   event.Class // it was parked with
		refusal string
		turn    projection.Turn
		fails   event.Class
		version int64
		balance int64
	}{
		"its turn":                   {credited("a", 6, 7), event.VersionGap, "", projection.TurnTaken, "", 6, 17},
		"passed":                     {credited("a", 5, 7), event.VersionGap, "", projection.TurnOver, "", 5, 10},
		"passed, whatever it was":    {credited("a", 4, 7), event.InvalidAmount, "", projection.TurnOver, "", 5, 10},
		"another gap before it":      {credited("a", 7, 7), event.VersionGap, "", projection.TurnWaits, "", 5, 10},
		"the gap itself":             {credited("a", 6, 7), event.InvalidAmount, "", projection.TurnWaits, "", 5, 10},
		"cannot be applied":          {inYen, event.VersionGap, "", projection.TurnFailed, event.CurrencyMismatch, 5, 10},
		"cannot be read any more":    {faulty(credited("a", 6, 7), event.MalformedPayload), event.VersionGap, "", projection.TurnFailed, event.MalformedPayload, 5, 10},
		"refused by PostgreSQL":      {credited("a", 6, 7), event.VersionGap, "23514", projection.TurnFailed, event.RejectedByDatabase, 5, 10},
		"refused, and wrong anyway":  {inYen, event.VersionGap, "23514", projection.TurnFailed, event.CurrencyMismatch, 5, 10},
		"refused before, and passed": {credited("a", 5, 7), event.VersionGap, "23514", projection.TurnOver, "", 5, 10},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			next, v, turn := at5.Heal(&projection.Parked{Decoded: c.parked, Class: c.class}, c.refusal)
			if turn != c.turn || v.Class != c.fails || next.Version != c.version || next.Balance != c.balance {
				t.Errorf("turn %d, class %q, version %d, balance %d; want %+v", turn, v.Class, next.Version, next.Balance, c)
			}
		})
	}
}
