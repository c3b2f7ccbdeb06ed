package projection

import "projector/projection/event"

// Opening is the state from which an account starts if its first events are missing in the topic.
// It is the state of the account in a ledger after the event with this Version.
type Opening struct {
	Version     int64
	Balance     int64          // minor units of Currency
	Currency    event.Currency // zero if no event had a currency yet
	Closed      bool
	LastEventID string // id of the event with this Version; empty if not known
	// Imprecise means that the ledger's balance has more fraction digits than Currency allows.
	// Balance is then 0.
	Imprecise bool
}

// Open sets an account to the state of the opening if the account's version is lower than the
// opening's version. The opening's balance includes all events up to its version. If the account's
// version is not lower, the opening is a duplicate. If the currencies differ, the opening is
// dead-lettered as currency_mismatch. An imprecise opening is dead-lettered as invalid_amount.
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
