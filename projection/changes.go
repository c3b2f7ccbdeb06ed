package projection

import (
	"cmp"
	"slices"
	"strings"

	"projector/projection/event"
)

// Changes is what a fold has gathered since it was last flushed.
type Changes struct {
	Records  int           // consumed records judged
	Outcomes [outcomes]int // records by Outcome
	Healed   int           // parked events applied
	Turned   int           // parked events dead-lettered when their turn came
	Bytes    int           // approximate memory held

	Letters []DeadLetter // to be published before anything is written
	Bases   []Base       // what the letters' verdicts rest on

	Rows      []Row     // new states, one an account, sorted by account id
	Parks     []*Parked // events to park, sorted by account id and version
	Reclassed []Reclassed
	Overflows []Overflow
	Passed    []Passed // parked events up to these versions are done with
}

// Base is the version a verdict assumed the database to have. Exists is false
// when it assumed no row.
type Base struct {
	AccountID string
	Exists    bool
	Version   int64
}

// Row is an account's new state.
type Row struct {
	AccountID string
	State     State
}

// Reclassed is a parked event that could not be applied when its turn came.
type Reclassed struct {
	AccountID string
	Version   int64
	Class     event.Class
}

// Overflow is a gap event beyond the park limit: it is in the DLQ only.
type Overflow struct {
	AccountID string
	Version   int64
	Expected  int64
}

// Passed says up to which version an account's parked events are done with.
type Passed struct {
	AccountID string
	Version   int64
}

// Changes gathers what is pending. The answer is valid until the fold is used again.
func (f *Fold) Changes() *Changes {
	c := &f.changes
	c.Rows, c.Parks, c.Passed = c.Rows[:0], c.Parks[:0], c.Passed[:0]
	slices.SortFunc(f.dirty, func(a, b *account) int { return strings.Compare(f.idOf(a), f.idOf(b)) })
	for _, a := range f.dirty {
		if h := f.holds[a]; h != nil {
			for version, p := range h.pending {
				if version > a.version {
					c.Parks = append(c.Parks, p)
				}
			}
		}
		if a.version == a.base {
			continue
		}
		id := f.idOf(a)
		c.Rows = append(c.Rows, Row{AccountID: id, State: f.cache.hot.state(a)})
		if a.held {
			c.Passed = append(c.Passed, Passed{AccountID: id, Version: a.version})
		}
	}
	slices.SortFunc(c.Parks, func(a, b *Parked) int {
		x, y := &a.Decoded.Event, &b.Decoded.Event
		return cmp.Or(strings.Compare(x.AccountID, y.AccountID), cmp.Compare(x.Version, y.Version))
	})
	return c
}

// Pending tells how much waits to be flushed.
type Pending struct {
	Events int // records judged and parked events applied or dead-lettered
	Bytes  int // approximate memory held
}

// Pending tells how much waits to be flushed.
func (f *Fold) Pending() Pending {
	return Pending{
		Events: f.changes.Records + f.changes.Healed + f.changes.Turned,
		Bytes:  f.changes.Bytes,
	}
}

// Sole is the event that was folded last: when Pending says one event, that one.
func (f *Fold) Sole() Place { return f.sole }

// Flushed takes note that the changes are durable. Accounts with parked events
// are forgotten, so that what the database holds of them is learnt afresh.
func (f *Fold) Flushed() {
	for _, a := range f.dirty {
		a.exists = a.exists || a.version != a.base
		a.base, a.dirty, a.lettered = a.version, false, false
		if h := f.holds[a]; h != nil {
			a.held = a.held || len(h.pending) > 0 || h.overflowed
			h.pending = nil
		}
		if a.held && !a.healing {
			f.forget(a)
		}
	}
	clear(f.dirty)
	f.dirty = f.dirty[:0]
	f.changes = Changes{Rows: f.changes.Rows[:0], Parks: f.changes.Parks[:0], Passed: f.changes.Passed[:0]}
	f.forgetUnread()
	if f.cache.hot.bytes() > f.opts.CacheBytes/2 && len(f.healing) == 0 {
		f.cache.turn()
		clear(f.holds) // of accounts that have healed: those on hold are forgotten above
	}
}

func (f *Fold) forget(a *account) {
	f.cache.hot.drop(a)
	delete(f.holds, a)
}
