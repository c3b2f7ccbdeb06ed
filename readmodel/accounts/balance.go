package accounts

import "projector/projection/event"

// Balance has the balance of an account before and after one record, in minor units.
type Balance struct {
	Before, After int64
	Currency      event.Currency
	Known         bool
}

// BalanceOf returns the balance of an account. The caller must have called Read for the account.
func (f *Fold) BalanceOf(id string) Balance {
	a := f.cache.hot.state(f.get(id))
	return Balance{Before: a.Balance, After: a.Balance, Currency: a.Currency, Known: a.Version >= f.opts.FirstVersion}
}

func (f *Fold) noteBalance(b Balance) {
	if f.opts.Balances {
		f.changes.Balances = append(f.changes.Balances, b)
	}
}
