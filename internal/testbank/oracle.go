package testbank

import (
	"math/big"
	"slices"
	"time"
)

// DeadLetter is a dead letter that must be in the DLQ.
type DeadLetter struct {
	Record *Record
	Class  string
	// Account and what follows are known only when Identified.
	Identified                    bool
	Account, EventID, Correlation string
	Expected, Received            int64
}

// Outcomes counts records by outcome.
type Outcomes struct{ Applied, Duplicate, Ignored, DeadLettered int }

// ByName are the outcomes as metrics name them.
func (o Outcomes) ByName() map[string]int {
	return map[string]int{"applied": o.Applied, "duplicate": o.Duplicate, "ignored": o.Ignored, "dead_lettered": o.DeadLettered}
}

// Oracle holds what the records so far have come to. Its exported fields are the rules
// an operator can set, and what it has found.
type Oracle struct {
	FirstVersion int64
	Ignore       map[string]bool
	// Refuse says which event the database refuses; nil: none.
	Refuse func(account string, version int64) bool
	// RefuseCurrency is a currency in which the database refuses rows; "": in none.
	RefuseCurrency string

	DeadLetters []DeadLetter
	Outcomes    map[int32]*Outcomes // by partition
	Healed      int                 // events that waited for a gap and were applied

	accounts map[string]*entry
}

// New returns an oracle that has seen nothing; versions begin at 1.
func New(ignore ...string) *Oracle {
	o := &Oracle{FirstVersion: 1, Ignore: map[string]bool{}, Outcomes: map[int32]*Outcomes{}, accounts: map[string]*entry{}}
	for _, kind := range ignore {
		o.Ignore[kind] = true
	}
	return o
}

// Decide is called with records in the order of their partitions.
func (o *Oracle) Decide(records []Record) {
	ordered := make([]*Record, len(records))
	for i := range records {
		ordered[i] = &records[i]
	}
	slices.SortStableFunc(ordered, func(a, b *Record) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return int(a.Offset - b.Offset)
	})
	for _, r := range ordered {
		o.decide(r)
	}
}

func (o *Oracle) decide(r *Record) {
	count := o.Outcomes[r.Partition]
	if count == nil {
		count = &Outcomes{}
		o.Outcomes[r.Partition] = count
	}
	d := o.decode(r)
	switch {
	case d.tombstone, d.skip:
		count.Ignored++
	case !d.identified:
		count.DeadLettered++
		o.DeadLetters = append(o.DeadLetters, DeadLetter{Record: new(*r), Class: d.class})
	default:
		o.decideEvent(r, &d, count)
	}
}

func (o *Oracle) decideEvent(r *Record, d *decoded, count *Outcomes) {
	a := o.account(d.account)
	if d.version <= a.version {
		if d.version == a.version && a.lastID != d.id {
			count.DeadLettered++
			o.deadLetter(new(*r), d, a, "version_conflict")
			return
		}
		count.Duplicate++
		return
	}
	class := d.class
	switch {
	case class != "":
	case d.version > a.version+1:
		class = "version_gap"
	default:
		class = o.apply(a, d)
	}
	switch {
	case class != "":
		count.DeadLettered++
		kept := new(*r) // of the list it came in, the rest can go
		o.deadLetter(kept, d, a, class)
		a.park(kept, d, class)
	case o.Ignore[d.kind]:
		count.Ignored++
	default:
		count.Applied++
	}
	o.heal(a)
}

// heal applies what waits and fits.
func (o *Oracle) heal(a *entry) {
	for {
		next := a.waiting[a.version+1]
		if next == nil || next.class != "version_gap" {
			return
		}
		if class := o.apply(a, &next.event); class != "" {
			next.class = class
			o.deadLetter(next.record, &next.event, a, class)
			return
		}
		o.Healed++
	}
}

func (o *Oracle) deadLetter(r *Record, d *decoded, a *entry, class string) {
	o.DeadLetters = append(o.DeadLetters, DeadLetter{
		Record: r, Class: class, Identified: true,
		Account: d.account, EventID: d.id, Correlation: d.correlation,
		Expected: a.version + 1, Received: d.version,
	})
}

func (o *Oracle) account(id string) *entry {
	a := o.accounts[id]
	if a == nil {
		a = newEntry(o.FirstVersion)
		o.accounts[id] = a
	}
	return a
}

// entry is one account as the events so far have made it.
type entry struct {
	first    int64
	version  int64
	balance  *big.Int
	currency string
	closed   bool
	lastID   string
	lastAt   time.Time
	waiting  map[int64]*waiting // by version, all above version
}

// waiting is a dead-lettered event that waits for a gap, or is the gap itself.
type waiting struct {
	record *Record
	event  decoded
	class  string
}

func newEntry(first int64) *entry {
	return &entry{first: first, version: first - 1, balance: new(big.Int), waiting: map[int64]*waiting{}}
}

// park keeps the first event of a version. One that cannot be applied gives way to one that
// only waits.
func (a *entry) park(r *Record, d *decoded, class string) {
	if kept := a.waiting[d.version]; kept == nil || kept.class != "version_gap" && class == "version_gap" {
		a.waiting[d.version] = &waiting{record: r, event: *d, class: class}
	}
}

// apply applies the event that is next, or answers the class of why it cannot be.
func (o *Oracle) apply(a *entry, d *decoded) string {
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
	if o.Refuse != nil && o.Refuse(d.account, d.version) || currency != "" && currency == o.RefuseCurrency {
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
