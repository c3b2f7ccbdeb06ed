package testbank

import (
	"math/big"
	"slices"
	"time"
)

// DeadLetter is a dead letter that the DLQ topic must contain.
type DeadLetter struct {
	Record *Record
	Class  string
	// The following fields are known only if Identified is true.
	Identified                    bool
	Account, EventID, Correlation string
	Expected, Received            int64
}

// Outcomes counts records by outcome.
type Outcomes struct{ Applied, Duplicate, Ignored, DeadLettered int }

// ByName returns the counts by the names that the metrics use.
func (o Outcomes) ByName() map[string]int {
	return map[string]int{"applied": o.Applied, "duplicate": o.Duplicate, "ignored": o.Ignored, "dead_lettered": o.DeadLettered}
}

// Oracle computes the expected results of the records that it has processed. The exported fields
// are settings and results.
type Oracle struct {
	FirstVersion int64
	Ignore       map[string]bool
	// Refuse reports which events the database refuses. If Refuse is nil, the database refuses no
	// event.
	Refuse func(account string, version int64) bool
	// RefuseCurrency is a currency whose rows the database refuses. If it is empty, no currency is
	// refused.
	RefuseCurrency string

	DeadLetters []DeadLetter
	Outcomes    map[int32]*Outcomes // by partition
	Healed      int                 // events that waited for a gap and were applied

	accounts map[string]*entry
}

// New returns an oracle without records. Versions begin at 1.
func New(ignore ...string) *Oracle {
	o := &Oracle{FirstVersion: 1, Ignore: map[string]bool{}, Outcomes: map[int32]*Outcomes{}, accounts: map[string]*entry{}}
	for _, kind := range ignore {
		o.Ignore[kind] = true
	}
	return o
}

// Decide processes records in the order of their partitions and offsets.
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
		kept := new(*r) // a copy, so that the list of records can be freed
		o.deadLetter(kept, d, a, class)
		a.park(kept, d, class)
	case o.Ignore[d.kind]:
		count.Ignored++
	default:
		count.Applied++
	}
	o.heal(a)
}

// heal applies waiting events for as long as the event of the next version is among them.
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

// entry is the state of one account after the events that were processed so far.
type entry struct {
	first    int64
	version  int64
	balance  *big.Int
	currency string
	closed   bool
	lastID   string
	lastAt   time.Time
	waiting  map[int64]*waiting // by version; every key is above the field version
}

// waiting is a dead-lettered event that waits until a gap is filled, or that makes the gap.
type waiting struct {
	record *Record
	event  decoded
	class  string
}

func newEntry(first int64) *entry {
	return &entry{first: first, version: first - 1, balance: new(big.Int), waiting: map[int64]*waiting{}}
}

// park stores the first event of a version. A later event of this version replaces an invalid event
// if the later event only waits until a gap is filled.
func (a *entry) park(r *Record, d *decoded, class string) {
	if kept := a.waiting[d.version]; kept == nil || kept.class != "version_gap" && class == "version_gap" {
		a.waiting[d.version] = &waiting{record: r, event: *d, class: class}
	}
}

// apply applies the next event, or returns the error class if that is impossible.
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

// Row is the expected row of an account in account_balance_current. If Exists is false, the account
// has no balance row, and only Stale and WaitingFor are set.
type Row struct {
	Exists                                 bool
	Currency, Balance, Status, LastEventID string
	Version                                int64
	LastEventAt                            time.Time
	Stale                                  bool
	WaitingFor                             int64 // 0 for none
}

// Rows returns the expected read model: every account that has a row or waiting events.
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
