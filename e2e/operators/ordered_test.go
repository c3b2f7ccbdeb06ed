package operators_test

import (
	"maps"
	"slices"
	"time"
)

const gap = "version_gap"

// place is where a record is in the topic.
type place struct {
	partition int32
	offset    int64
}

func (e *event) place() place { return place{e.partition, e.offset} }

// state is an account as its events have made it.
type state struct {
	version       int64
	balance       int64
	currency      string
	lastID        string
	lastAt        time.Time
	points, count int64
}

// parked is an event that waits, or is the gap itself.
type parked struct {
	*event
	class string
}

// account is an account of an ordered projection.
type account struct {
	state
	waiting map[int64]*parked
	beyond  int64 // the highest version that came beyond the park limit, 0: none
	history map[int64]state
	floor   int64 // the version that was certainly reached

	// What people decided.
	opening *state
	skipped map[int64]string // version to event id
	forced  map[int64]*event // corrected, fetched or replayed, by version
	before  *account         // the last skip, if it can be reversed
}

func (a *account) waits() bool { return len(a.waiting) > 0 || a.beyond > a.version }

// ordered is the oracle of a projection that applies versions in order.
type ordered struct {
	limit int
	// fault is what is wrong in the event itself, apply what is wrong when its turn comes.
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

// deliver is one record consumed. again: it was consumed before.
func (o *ordered) deliver(e *event, again bool) {
	if e.garbage || o.discarded[e.place()] {
		return
	}
	o.decide(o.account(e.account), e, again, o.limit)
}

func (o *ordered) decide(a *account, e *event, again bool, limit int) {
	if e.version <= a.version {
		if e.version == a.version && a.lastID != "" && a.lastID != e.id && !again {
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

// advance applies the next event, or returns why it cannot be applied.
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

// passed removes what the account no longer waits for.
func (a *account) passed() {
	maps.DeleteFunc(a.waiting, func(v int64, _ *parked) bool { return v <= a.version })
	if a.beyond <= a.version {
		a.beyond = 0
	}
}

// park keeps an event until its turn. Of two for one version the first stays, unless only
// the other one can be read.
func (a *account) park(e *event, class string, limit int) {
	if first := a.waiting[e.version]; first != nil {
		if first.class != gap && class == gap {
			a.waiting[e.version] = &parked{e, class}
		}
		return
	}
	if limit >= 0 && len(a.waiting) >= limit && e.version != a.version+1 {
		a.beyond = max(a.beyond, e.version)
		return
	}
	a.waiting[e.version] = &parked{e, class}
}

// heal applies what waits and fits.
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

// skip passes over the next version.
func (o *ordered) skip(id string) {
	a := o.account(id)
	before := *a
	before.waiting, before.skipped = maps.Clone(a.waiting), maps.Clone(a.skipped)
	a.version++
	a.lastID = ""
	if hole := a.waiting[a.version]; hole != nil {
		a.lastID = hole.id
	}
	a.skipped[a.version] = a.lastID
	a.passed()
	a.floor = a.version
	at := a.version
	o.heal(a)
	if a.version == at {
		a.before = &before
	}
}

// unskip reverses the last skip. What was skipped is the gap again.
func (o *ordered) unskip(id string) {
	a := o.account(id)
	delete(a.skipped, a.version)
	for v, p := range a.before.waiting {
		if a.waiting[v] == nil {
			kept := *p
			if kept.class == gap {
				kept.class = "malformed_payload" // its payload is in the DLQ topic only
			}
			a.waiting[v] = &kept
		}
	}
	a.state = a.before.state
	a.beyond = max(a.beyond, a.before.beyond)
	a.before = nil
	a.floor = a.version
}

// force applies an event by a decision of a person, when it is the next one.
func (o *ordered) force(e *event) bool {
	done := o.forced(e)
	o.heal(o.account(e.account))
	return done
}

func (o *ordered) forced(e *event) bool {
	a := o.account(e.account)
	if e.version != a.version+1 || o.fault(e) != "" || o.advance(a, e) != "" {
		return false
	}
	a.forced[e.version] = e
	a.floor = a.version
	return true
}

// replay applies dead letters, in order, as far as they fit. They come before what is parked
// for the same version.
func (o *ordered) replay(only string) {
	for again := true; again; {
		again = false
		for _, l := range o.letters {
			if (only == "" || l.account == only) && l.class != "version_conflict" && !o.discarded[l.place()] && o.forced(l.event) {
				again = true
			}
		}
		for id, a := range o.accounts {
			if before := a.version; !again && (only == "" || id == only) {
				o.heal(a)
				again = a.version > before
			}
		}
	}
}

// open has an account start from a state.
func (o *ordered) open(id string, from state) {
	a := o.account(id)
	if from.version <= a.version || a.currency != "" && a.currency != from.currency {
		return
	}
	a.state, a.opening, a.before = from, &from, nil
	a.floor = a.version
	a.passed()
	o.heal(a)
}

// discard drops a dead letter for good.
func (o *ordered) discard(p place) {
	o.discarded[p] = true
	for _, a := range o.accounts {
		for v, w := range a.waiting {
			if w.place() == p {
				delete(a.waiting, v)
			}
		}
		if a.beyond > a.version { // it counts what is left
			a.beyond = o.beyondNow(a)
		}
	}
}

// beyondNow is the highest version of a dead letter that is neither parked nor discarded.
func (o *ordered) beyondNow(a *account) (highest int64) {
	for _, l := range o.letters {
		if o.accounts[l.account] == a && l.version > a.version && a.waiting[l.version] == nil && !o.discarded[l.place()] {
			highest = max(highest, l.version)
		}
	}
	return highest
}

// rebuilt is what the whole log comes to, with what people decided and without a park limit.
// An account that waits because events came beyond the limit may also stay as it was until
// they are replayed, and so may all accounts while the position is behind where it was.
func (o *ordered) rebuilt(log [][]*event, found rebuiltRows) {
	known := o.letters
	for _, records := range log {
		for _, e := range records {
			if !e.garbage && !o.discarded[e.place()] {
				o.account(e.account) // also those of records that were left unread
			}
		}
	}
	for id, live := range o.accounts {
		a := newAccount()
		a.opening, a.skipped, a.forced = live.opening, live.skipped, live.forced
		if a.opening != nil {
			a.state = *a.opening
		}
		version, there := found.account(id)
		live.floor = live.version
		o.readAgain(a, id, log)
		for before := int64(-1); before < a.version && a.version != version; { // of two for one version, the other may fit
			before = a.version
			o.readAgain(a, id, log)
		}
		if version == live.version && (found.behind || live.beyond > live.version) {
			continue
		}
		if a.version == live.version {
			a.before = live.before
		}
		if len(a.waiting) > o.limit {
			maps.DeleteFunc(a.waiting, func(v int64, _ *parked) bool {
				beyond := v != a.version+1 && !slices.Contains(there, v)
				if beyond {
					a.beyond = max(a.beyond, v)
				}
				return beyond
			})
		}
		a.floor = a.version
		o.accounts[id] = a
	}
	o.letters = known
}

// rebuiltRows is what the oracle has to look up after a rebuild.
type rebuiltRows struct {
	// behind: the position was set back, and not everything has been read again.
	behind bool
	// account is the version of an account, and what of it is parked.
	account func(id string) (version int64, parked []int64)
	// rows are those of the projection.
	rows func() map[string]string
}

// readAgain has the account go through the whole log.
func (o *ordered) readAgain(a *account, id string, log [][]*event) {
	o.decided(a)
	for _, records := range log {
		for _, e := range records {
			_, skipped := a.skipped[e.version]
			if !e.garbage && e.account == id && !o.discarded[e.place()] && !skipped && a.forced[e.version] == nil {
				o.decide(a, e, true, -1)
				o.decided(a)
			}
		}
	}
}

// decided applies what people decided about the next versions.
func (o *ordered) decided(a *account) {
	for {
		before := a.version
		if id, skipped := a.skipped[a.version+1]; skipped {
			a.version, a.lastID = a.version+1, id
			a.passed()
			o.heal(a)
		} else if e := a.forced[a.version+1]; e != nil && o.fault(e) == "" {
			o.advance(a, e)
			o.heal(a)
		}
		if a.version == before {
			return
		}
	}
}
