package event_test

import (
	"testing"

	"projector/projection/event"
)

// TestMeanings checks the effect of each type on an account.
func TestMeanings(t *testing.T) {
	want := map[string]struct {
		signed int64 // for an amount of 5
		status event.Status
	}{
		"AccountOpened": {0, event.Opened},
		"FundsCredited": {5, event.Unchanged},
		"FundsDebited":  {-5, event.Unchanged},
		"AccountClosed": {0, event.Closed},
	}
	named := event.NamedTypes()
	if len(named) != len(want) {
		t.Errorf("%d named types, want %d", len(named), len(want))
	}
	for _, kind := range named {
		ev, w := event.Event{Type: kind, Amount: 5}, want[kind.Name()]
		if ev.Signed() != w.signed || kind.Status() != w.status || kind.MovesMoney() != (w.signed != 0) {
			t.Errorf("%s: adds %d, status %d; want %+v", kind.Name(), ev.Signed(), kind.Status(), w)
		}
	}
	for _, kind := range []event.Type{event.Unknown, event.Ignorable, event.Custom} {
		if ev := (event.Event{Type: kind, Amount: 5}); ev.Signed() != 0 || kind.Status() != event.Unchanged {
			t.Errorf("type %d changes the account", kind)
		}
	}
}
