package oracle

import (
	"math/big"
	"time"
)

// account is one account as the events so far have made it.
type account struct {
	first    int64
	version  int64
	balance  *big.Int
	currency string
	closed   bool
	lastID   string
	lastAt   time.Time
	waiting  map[int64]*waiting // by version, all above version
}

// waiting is an event that was dead-lettered and waits for its turn, or is the hole.
type waiting struct {
	record *Record
	event  decoded
	class  string
}

func newAccount(first int64) *account {
	return &account{first: first, version: first - 1, balance: new(big.Int), waiting: map[int64]*waiting{}}
}

func (a *account) park(r *Record, d *decoded, class string) {
	if a.waiting[d.version] == nil {
		a.waiting[d.version] = &waiting{record: r, event: *d, class: class}
	}
}

// apply applies the event that is next, or answers the class of why it cannot be.
func (o *Oracle) apply(a *account, d *decoded) string {
	balance := new(big.Int).Set(a.balance)
	closed, currency := a.closed, a.currency
	if !o.Ignore[d.kind] {
		if d.currency != "" && currency != "" && d.currency != currency {
			return "currency_mismatch"
		}
		if d.currency != "" {
			currency = d.currency
		}
		switch d.kind {
		case "FundsCredited":
			balance.Add(balance, d.amount)
		case "FundsDebited":
			balance.Sub(balance, d.amount)
		case "AccountOpened":
			closed = false
		case "AccountClosed":
			closed = true
		}
		if !balance.IsInt64() {
			return "balance_overflow"
		}
	}
	if o.Refuse != nil && o.Refuse(d.account, d.version) {
		return "rejected_by_database"
	}
	a.version, a.balance, a.currency, a.closed, a.lastID, a.lastAt = d.version, balance, currency, closed, d.id, d.at
	delete(a.waiting, d.version)
	return ""
}

// Row is what account_balance_current must show of an account. Exists is false
// without a balance row: only Stale and WaitingFor count then.
type Row struct {
	Exists                                 bool
	Currency, Balance, Status, LastEventID string
	Version                                int64
	LastEventAt                            time.Time
	Stale                                  bool
	WaitingFor                             int64 // 0: for none
}

// Rows is the read model: every account that has a row or that waits.
func (o *Oracle) Rows() map[string]Row {
	rows := map[string]Row{}
	for id, a := range o.accounts {
		r := Row{Stale: len(a.waiting) > 0}
		if r.Stale {
			r.WaitingFor = a.version + 1
		}
		if a.version >= a.first {
			r.Exists, r.Version, r.Currency, r.LastEventID, r.LastEventAt = true, a.version, a.currency, a.lastID, a.lastAt
			r.Balance, r.Status = decimalText(a.balance, digits[a.currency]), "open"
			if a.closed {
				r.Status = "closed"
			}
		}
		if r.Exists || r.Stale {
			rows[id] = r
		}
	}
	return rows
}
