package bank

import (
	"maps"
	"math/big"
	"slices"
	"time"
)

// The classes of the contract, by the names they have in the DLQ.
const (
	malformed           = "malformed_payload"
	unknownEventType    = "unknown_event_type"
	invalidAmount       = "invalid_amount"
	unsupportedCurrency = "unsupported_currency"
	currencyMismatch    = "currency_mismatch"
	versionGap          = "version_gap"
	versionConflict     = "version_conflict"
	balanceOverflow     = "balance_overflow"
	rejectedByDatabase  = "rejected_by_database"
)

// The outcomes of the contract.
const (
	applied      = "applied"
	duplicate    = "duplicate"
	ignored      = "ignored"
	deadLettered = "dead_lettered"
)

// Ledger judges records one at a time, in the order of their delivery.
type Ledger struct {
	// Outcomes counts the records by outcome.
	Outcomes map[string]int
	// Healed counts the events that waited behind a hole and were applied.
	Healed int

	accounts map[string]*entry
	letters  map[Letter]bool
}

// Letter is a dead letter: the record by its place in the order of delivery, and
// the class. A record that waited in vain has two.
type Letter struct {
	Record int
	Class  string
}

// Account is what the read model must show of an account. Currency is "" and
// LastEventAt zero when it has none.
type Account struct {
	ID          string
	HasBalance  bool // an event of it was applied
	Currency    string
	Balance     string // with the currency's number of decimals
	Version     int64
	Closed      bool
	LastEventID string
	LastEventAt time.Time
	WaitsFor    int64 // the version that is missing; 0: none is
}

// entry is an account in the books.
type entry struct {
	currency string
	minor    *big.Int
	version  int64
	closed   bool
	lastID   string
	lastAt   time.Time
	waiting  map[int64]*waiting
}

// waiting is an event that could not be applied when it came.
type waiting struct {
	reading
	record int
	class  string
}

// NewLedger returns empty books.
func NewLedger() *Ledger {
	return &Ledger{Outcomes: map[string]int{}, accounts: map[string]*entry{}, letters: map[Letter]bool{}}
}

// Deliver judges a record; record is its number, by which Letters name it.
func (l *Ledger) Deliver(record int, value []byte) {
	if value == nil {
		l.Outcomes[ignored]++
		return
	}
	r := read(value)
	class, again := l.judge(&r)
	switch {
	case again:
		l.Outcomes[duplicate]++
		return
	case class == "":
		l.Outcomes[applied]++
		l.heal(l.accounts[r.account])
		return
	}
	l.Outcomes[deadLettered]++
	l.letters[Letter{record, class}] = true
	if !r.known || class == versionConflict {
		return
	}
	a := l.accounts[r.account]
	if a.waiting[r.version] == nil { // of two for one version the first stays
		a.waiting[r.version] = &waiting{r, record, class}
	}
}

// judge applies the event, or answers why it cannot be, or that it was before.
func (l *Ledger) judge(r *reading) (class string, again bool) {
	if !r.known {
		return malformed, false
	}
	a := l.accounts[r.account]
	if a == nil {
		a = &entry{minor: new(big.Int), waiting: map[int64]*waiting{}}
		l.accounts[r.account] = a
	}
	switch {
	case r.version == a.version && r.id != a.lastID:
		return versionConflict, false
	case r.version <= a.version:
		return "", true
	case r.flaw != "":
		return r.flaw, false
	case r.version > a.version+1:
		return versionGap, false
	}
	return a.apply(r), false
}

// heal applies what waits and now fits. What cannot be applied is dead-lettered
// once more, with its own class, and is the hole from then on.
func (l *Ledger) heal(a *entry) {
	for {
		delete(a.waiting, a.version)
		next := a.waiting[a.version+1]
		if next == nil || next.class != versionGap {
			return
		}
		if class := a.apply(&next.reading); class != "" {
			next.class = class
			l.letters[Letter{next.record, class}] = true
			return
		}
		l.Healed++
	}
}

// apply applies the event whose turn it is, or answers the class of what forbids it.
func (a *entry) apply(r *reading) (class string) {
	if r.currency != "" && a.currency != "" && r.currency != a.currency {
		return currencyMismatch
	}
	sum := new(big.Int).Set(a.minor)
	switch r.kind {
	case credited:
		sum.Add(sum, r.minor)
	case debited:
		sum.Sub(sum, r.minor)
	}
	if !sum.IsInt64() {
		return balanceOverflow
	}
	if r.currency == RefusedCurrency {
		return rejectedByDatabase
	}
	if r.currency != "" {
		a.currency = r.currency
	}
	if r.kind == opened || r.kind == closed {
		a.closed = r.kind == closed
	}
	a.minor, a.version, a.lastID, a.lastAt = sum, r.version, r.id, r.at
	return ""
}

// Accounts lists what the read model must show, sorted by id.
func (l *Ledger) Accounts() []Account {
	list := make([]Account, 0, len(l.accounts))
	for _, id := range slices.Sorted(maps.Keys(l.accounts)) {
		e := l.accounts[id]
		a := Account{
			ID: id, HasBalance: e.version > 0, Currency: e.currency, Version: e.version, Closed: e.closed,
			LastEventID: e.lastID, LastEventAt: e.lastAt,
			Balance: new(big.Rat).SetFrac(e.minor, power(digits[e.currency])).FloatString(digits[e.currency]),
		}
		if len(e.waiting) > 0 {
			a.WaitsFor = e.version + 1
		}
		list = append(list, a)
	}
	return list
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// Letters lists the dead letters there must be, each once.
func (l *Ledger) Letters() []Letter { return slices.Collect(maps.Keys(l.letters)) }
