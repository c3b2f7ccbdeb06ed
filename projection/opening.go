package projection

import "projector/projection/event"

// Opening is what an account starts from when its topic does not hold its first events: how
// a ledger says it was after the event of a version.
type Opening struct {
	Version     int64
	Balance     int64          // minor units of Currency
	Currency    event.Currency // none: no event has had one
	Closed      bool
	LastEventID string // of the event of Version; empty: not known
}

// Open has the account start from an opening beyond it. Whatever the account was made of up
// to that version is in the opening's balance. At or beyond the version it is a duplicate,
// and an account never changes its currency; only an applied opening changes it.
func (a Account) Open(o *Opening) (Account, Decision) {
	switch {
	case o.Version <= a.Version:
		return a, Decision{Outcome: Duplicate}
	case !a.Currency.IsZero() && a.Currency != o.Currency:
		return a, deadLettered(event.CurrencyMismatch, "the opening is in another currency than the account")
	}
	return Account{
		Version: o.Version, Balance: o.Balance, Currency: o.Currency, Closed: o.Closed,
		LastEventID: o.LastEventID, LastEventAt: NoTime,
	}, Decision{Outcome: Applied}
}
