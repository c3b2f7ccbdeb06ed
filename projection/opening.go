package projection

import "projector/projection/event"

// Opening is the state from which an account starts if its topic lacks the first events. It is
// the account in a ledger, after the event of Version.
type Opening struct {
	Version     int64
	Balance     int64          // minor units of Currency
	Currency    event.Currency // none: no event had a currency yet
	Closed      bool
	LastEventID string // of the event of Version; empty: not known
	// Imprecise is true if the ledger's balance has more fraction digits than Currency. Balance is
	// then 0.
	Imprecise bool
}

// Open sets an account that is before the opening's version to the opening. The opening's
// balance includes all events up to that version. If the account is at or past the version,
// the opening is a duplicate. If the currencies differ, the opening is
// dead-lettered as currency_mismatch. An imprecise one is dead-lettered as invalid_amount.
func (a Account) Open(o *Opening) (Account, Decision) {
	switch {
	case o.Version <= a.Version:
		return a, Decision{Outcome: Duplicate}
	case !a.Currency.IsZero() && a.Currency != o.Currency:
		return a, deadLettered(event.CurrencyMismatch, "the opening is in another currency than the account")
	case o.Imprecise:
		return a, deadLettered(event.InvalidAmount, "the balance has more fraction digits than its currency")
	}
	return Account{
		Version: o.Version, Balance: o.Balance, Currency: o.Currency, Closed: o.Closed,
		LastEventID: o.LastEventID, LastEventAt: NoTime,
	}, Decision{Outcome: Applied}
}
