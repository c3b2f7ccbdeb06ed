package operators_test

import (
	"maps"
	"time"
)

const gap = "version_gap"

// place is the partition and offset of a record.
type place struct {
	partition int32
	offset    int64
}

func (e *event) place() place { return place{e.partition, e.offset} }

// state is the part of an account that its applied events determine.
type state struct {
	version       int64
	balance       int64
	currency      string
	closed        bool
	lastID        string
	lastAt        time.Time
	points, count int64
}

// parked is an event that waits, or an event that the program cannot apply.
type parked struct {
	*event
	class string
}

// account is an account of an ordered projection.
type account struct {
	state
	waiting map[int64]*parked
	beyond  int64 // highest version that exceeded the park limit, or 0
	overran bool  // an event has exceeded the park limit
	history map[int64]state
	floor   int64 // lowest version that the account can have in the database

	// The next fields are the operators' decisions.
	opening *state
	skipped map[int64]string // event id by version
	forced  map[int64]*event // corrected, fetched or replayed, by version
	before  *account         // the state before the last skip; nil if the skip cannot be reversed
}

func (a *account) waits() bool { return len(a.waiting) > 0 || a.beyond > a.version }

// ordered is the oracle of a projection that applies versions in order.
type ordered struct {
	limit int
	// The function fault returns the error class of the event itself. The function apply applies
	// the event as the account's next version and returns the error class, or "".
	fault func(*event) string
	apply func(*state, *event) string

	accounts  map[string]*account
	discarded map[place]bool
	letters   []parked
}

func newOrdered(limit int, fault func(*event) string, apply func(*state, *event) string) *ordered {
	return &ordered{limit: limit, fault: fault, apply: apply, accounts: map[string]*account{}, discarded: map[place]bool{}}
}

func newAccount() *account {
	return &account{waiting: map[int64]*parked{}, skipped: map[int64]string{}, forced: map[int64]*event{}, history: map[int64]state{}}
}

func (o *ordered) account(id string) *account {
	if o.accounts[id] == nil {
		o.accounts[id] = newAccount()
	}
	return o.accounts[id]
}

// deliver processes one record. The parameter redelivered is true if the record was processed
// before.
func (o *ordered) deliver(e *event, redelivered bool) {
	if e.garbage || o.discarded[e.place()] {
		return
	}
	o.decide(o.account(e.account), e, redelivered, o.limit)
}

func (o *ordered) decide(a *account, e *event, redelivered bool, limit int) {
	if e.version <= a.version {
		if e.version == a.version && a.lastID != "" && a.lastID != e.id && !redelivered {
			o.letters = append(o.letters, parked{e, "version_conflict"})
		}
		return
	}
	class := o.fault(e)
	switch {
	case class != "":
	case e.version > a.version+1:
		class = gap
	default:
		class = o.advance(a, e)
	}
	if class != "" {
		o.letters = append(o.letters, parked{e, class})
		a.park(e, class, limit)
	}
	o.heal(a)
}

// advance applies the next event, or returns the reason why it cannot be applied.
func (o *ordered) advance(a *account, e *event) string {
	next := a.state
	if class := o.apply(&next, e); class != "" {
		return class
	}
	next.version, next.lastID, next.lastAt = e.version, e.id, e.at
	a.history[a.version] = a.state
	a.state, a.before = next, nil
	a.passed()
	return ""
}

// The method passed removes the waiting events whose versions the account has reached.
func (a *account) passed() {
	maps.DeleteFunc(a.waiting, func(v int64, _ *parked) bool { return v <= a.version })
	if a.beyond <= a.version {
		a.beyond = 0
	}
}

// park stores an event that waits. If two events have the same version, park stores the first one,
// unless only the second one is valid. park does not store an event beyond the limit, unless it has
// the account's next version. The field beyond holds the highest version that was not stored for
// this reason.
func (a *account) park(e *event, class string, limit int) {
	if first := a.waiting[e.version]; first != nil {
		if first.class != gap && class == gap {
			a.waiting[e.version] = &parked{e, class}
		}
		return
	}
	if limit >= 0 && len(a.waiting) >= limit && e.version != a.version+1 {
		a.beyond, a.overran = max(a.beyond, e.version), true
		return
	}
	a.waiting[e.version] = &parked{e, class}
}

// heal applies waiting events as long as a waiting event has the account's next version.
func (o *ordered) heal(a *account) {
	for {
		next := a.waiting[a.version+1]
		if next == nil || next.class != gap {
			return
		}
		if class := o.advance(a, next.event); class != "" {
			next.class = class
			o.letters = append(o.letters, *next)
			return
		}
	}
}
