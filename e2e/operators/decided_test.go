package operators_test

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"strings"
)

// skip makes the account skip its next version, as an operator has decided.
func (o *ordered) skip(id string) {
	a := o.account(id)
	before := *a
	before.waiting, before.skipped = maps.Clone(a.waiting), maps.Clone(a.skipped)
	a.version++
	a.lastID = ""
	if next := a.waiting[a.version]; next != nil {
		a.lastID = next.id
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

// unskip reverses the last skip, so the skipped version is missing again.
func (o *ordered) unskip(id string) {
	a := o.account(id)
	delete(a.skipped, a.version)
	for v, p := range a.before.waiting {
		if a.waiting[v] == nil {
			kept := *p
			if kept.class == gap {
				// unskip parks the event without its payload, because the payload is only in the
				// DLQ topic. heal does not apply an event of the class malformed_payload.
				kept.class = "malformed_payload"
			}
			a.waiting[v] = &kept
		}
	}
	a.state = a.before.state
	a.beyond = max(a.beyond, a.before.beyond)
	a.before = nil
	a.floor = a.version
}

// force applies an event that an operator corrected or fetched, if the event has the account's next
// version and is valid.
func (o *ordered) force(e *event) bool {
	done := o.forced(e)
	o.heal(o.account(e.account))
	return done
}

// fetchAll applies the missing events that are in the outbox, as the consumer does.
func (o *ordered) fetchAll(outbox []*event) {
	for again := true; again; {
		again = false
		for _, e := range outbox {
			if a := o.account(e.account); a.waits() && e.version == a.version+1 && o.force(e) {
				again = true
			}
		}
	}
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

// For each account, replay applies dead letters in the order of their versions, up to the first
// missing version. Dead letters have precedence over parked events of the same version.
func (o *ordered) replay(only string) {
	for again := true; again; {
		again = false
		for _, l := range o.letters {
			if (only == "" || l.account == only) && l.class != "version_conflict" && !o.discarded[l.place()] && o.forced(l.event) {
				again = true
				break // the first dead letter of the next version may be before this one
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

// open sets the state at which an account begins. It returns false if the account has reached that
// version or has another currency.
func (o *ordered) open(id string, from state) bool {
	a := o.account(id)
	if from.version <= a.version || a.currency != "" && a.currency != from.currency {
		return false
	}
	a.state, a.opening, a.before = from, &from, nil
	a.floor = a.version
	a.passed()
	o.heal(a)
	return true
}

// discard removes dead letters permanently. If the event of one of them waits, another event of its
// version waits instead.
func (o *ordered) discard(places ...place) {
	for _, p := range places {
		o.discarded[p] = true
	}
	for _, p := range places {
		o.leaveOut(p)
	}
}

func (o *ordered) leaveOut(p place) {
	for _, a := range o.accounts {
		for v, w := range a.waiting {
			if w.place() != p {
				continue
			}
			delete(a.waiting, v)
			if other := o.otherThan(w); other != nil {
				a.waiting[v] = other
				o.heal(a)
			}
		}
		if a.beyond > a.version { // computed again from the remaining dead letters
			a.beyond = o.beyondNow(a)
		}
	}
}

// otherThan returns another event of the version of a discarded event: the first one that can be read,
// else the first one.
func (o *ordered) otherThan(w *parked) (other *parked) {
	for _, l := range o.letters {
		if l.account != w.account || l.version != w.version || l.id == w.id || l.class == "version_conflict" || o.discarded[l.place()] {
			continue
		}
		if l.class = o.fault(l.event); l.class == "" {
			l.class = gap
		}
		if other == nil || other.class != gap && l.class == gap {
			other = &l
		}
	}
	return other
}

// takeBack applies a discarded event. It returns false if the event cannot be applied.
func (o *ordered) takeBack(e *event) bool {
	if e.garbage || !o.force(e) {
		return false
	}
	delete(o.discarded, e.place())
	return true
}

// beyondNow returns the highest version of a dead letter that is neither parked nor discarded.
func (o *ordered) beyondNow(a *account) (highest int64) {
	for _, l := range o.letters {
		if o.accounts[l.account] == a && l.version > a.version && a.waiting[l.version] == nil && !o.discarded[l.place()] {
			highest = max(highest, l.version)
		}
	}
	return highest
}

// The method rebuilt computes the accounts from the whole log and the operators' decisions, without
// a park limit. A rebuild may leave an account unchanged in four cases. In the first case, the
// account waits for a replay because too many events were waiting. In the second case, the position
// was set back. In the third case, the topic does not have an event that was applied to the account.
// In the fourth case, the topic alone gives a lower version.
func (o *ordered) rebuilt(log [][]*event, found rebuiltRows) {
	known := o.letters
	for _, records := range log {
		for _, e := range records {
			if !e.garbage && !o.discarded[e.place()] {
				o.account(e.account) // an unread record can have a new account
			}
		}
	}
	for id, live := range o.accounts {
		version, there := found.account(id)
		live.floor = live.version
		a := live.again()
		o.readAgain(a, id, log)
		for before := int64(-1); before < a.version && a.version != version; { // repeated, because of two events with one version the second may be the valid one
			before = a.version
			o.readAgain(a, id, log)
		}
		if a.version != version { // a version whose event never came may also be skipped after all others are read
			late := live.again()
			o.readBeforeDeciding(late, id, log)
			if late.version == version {
				a = late
			}
		}
		if version == live.version && (found.rereading || found.moved && found.remapped || live.beyond > live.version || live.corrected(log) || o.ahead(live, id, log)) {
			if (live.beyond > live.version || found.remapped) && a.version == version {
				found.choose(id, live, a)
			}
			continue
		}
		if a.version == live.version {
			a.before = live.before
		}
		if part, was := a.history[version]; was && live.beyond > live.version && version > live.version {
			a.state, a.beyond = part, a.version // a real rebuild has a park limit, so it may stop here and wait
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

// ahead reports whether the account has a higher version than the topic alone gives. This is so if
// an operator has replayed an event of a version that has another event before it.
func (o *ordered) ahead(live *account, id string, log [][]*event) bool {
	a := live.again()
	a.forced = map[int64]*event{}
	o.readAgain(a, id, log)
	return a.version < live.version
}

// corrected reports whether an event was applied to the account that the topic does not have. The
// topic has another value of this event, or the event was fetched from the outbox.
func (a *account) corrected(log [][]*event) bool {
	for _, e := range a.forced {
		if !slices.ContainsFunc(log[e.partition], func(original *event) bool {
			return original.id == e.id && bytes.Equal(original.value(), e.value())
		}) {
			return true
		}
	}
	return false
}

// rebuiltRows gives the oracle access to the state of the database after a rebuild.
type rebuiltRows struct {
	// rereading is true if the position was set back and some records have not been read again yet.
	rereading bool
	// moved is true if accounts have events in two partitions. A rebuild may read one of them first, and
	// have more events than the park limit.
	moved bool
	// remapped is true if the mapping was changed. Some events may then have been applied as an earlier
	// mapping has read them.
	remapped bool
	// account returns the version of an account and its parked versions.
	account func(id string) (version int64, parked []int64)
	// rows returns the rows of the projection, and want those of the oracle.
	rows, want func() map[string]string
}

// choose gives an account the rebuilt state if the database has it. If the first of two events of one
// version is beyond the park limit, a consumer may apply the second one. A rebuild applies the first.
func (f *rebuiltRows) choose(id string, live, rebuilt *account) {
	before := live.state
	live.state = rebuilt.state
	got, _, _ := strings.Cut(f.rows()[id], " waits")
	if want, _, _ := strings.Cut(f.want()[id], " waits"); got != want {
		live.state = before
	}
}

// The method again returns the account before its first event, with the operators' decisions.
func (a *account) again() *account {
	first := newAccount()
	first.opening, first.skipped, first.forced = a.opening, a.skipped, a.forced
	if a.opening != nil {
		first.state = *a.opening
	}
	return first
}

// readAgain processes the whole log again for one account.
func (o *ordered) readAgain(a *account, id string, log [][]*event) {
	o.decided(a)
	for e := range o.undecided(a, id, log) {
		o.decide(a, e, true, -1)
		o.decided(a)
	}
}

// readBeforeDeciding processes the whole log again for one account, and the operators' decisions
// after it.
func (o *ordered) readBeforeDeciding(a *account, id string, log [][]*event) {
	for e := range o.undecided(a, id, log) {
		o.decide(a, e, true, -1)
	}
	o.decided(a)
}

// The method undecided returns the events of an account for which there is no decision.
func (o *ordered) undecided(a *account, id string, log [][]*event) iter.Seq[*event] {
	return func(yield func(*event) bool) {
		for _, records := range log {
			for _, e := range records {
				_, skipped := a.skipped[e.version]
				if !e.garbage && e.account == id && !o.discarded[e.place()] && !skipped && a.forced[e.version] == nil && !yield(e) {
					return
				}
			}
		}
	}
}

// The method decided applies the operators' decisions about the account's next version, until there
// is no decision about the next version.
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
