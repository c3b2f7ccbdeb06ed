package operators_test

import (
	"maps"
	"slices"
)

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
		if a.beyond > a.version { // count the events that are left
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
		if part, was := a.history[version]; was && live.beyond > live.version && version > live.version {
			a.state, a.beyond = part, a.version // a rebuild with a park limit may come so far only, and wait
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
	// behind: the position was set back, and some records are not read again yet.
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
