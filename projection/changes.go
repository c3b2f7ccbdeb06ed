package projection

import (
	"cmp"
	"iter"
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
	Held    []Base       // of them, the accounts that get no row

	Rows      []Row     // new states, where they were not gathered by a fold; see RowChunks
	Parks     []*Parked // events to park, sorted by account id and version
	Reclassed []Reclassed
	Overflows []Overflow
	Passed    []Passed // parked events up to these versions are done with

	table   *table // of a fold
	changed []*account
}

// NumRows is how many new states of accounts there are.
func (c *Changes) NumRows() int { return len(c.Rows) + len(c.changed) }

// RowChunks gives the new states of accounts out, one an account and sorted by
// account id, as many at a time as size says then. A chunk is valid until the next one:
// a flush of half a million accounts would need 40 MB to have its rows all at once.
func (c *Changes) RowChunks(size func() int) iter.Seq[[]Row] {
	return func(yield func([]Row) bool) {
		var rows []Row
		for from, all := 0, c.NumRows(); from < all; from += len(rows) {
			n := min(max(1, size()), all-from)
			if c.table == nil {
				rows = c.Rows[from : from+n]
			} else {
				rows = slices.Grow(rows[:0], n)
				for _, a := range c.changed[from : from+n] {
					rows = append(rows, Row{AccountID: c.table.idOf(a), State: c.table.state(a), Base: a.base, Exists: a.exists})
				}
			}
			if !yield(rows) {
				return
			}
		}
	}
}

// Base is the version a verdict assumed the database to have. Exists is false
// when it assumed no row.
type Base struct {
	AccountID string
	Exists    bool
	Version   int64
}

// Row is an account's new state, and what it was made of: it may be written over
// nothing else.
type Row struct {
	AccountID string
	State     State
	Base      int64 // the version in the database; only when Exists
	Exists    bool  // the account has a balance row
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
	c.table, c.changed, c.Parks, c.Passed, c.Held = f.cache.hot, c.changed[:0], c.Parks[:0], c.Passed[:0], c.Held[:0]
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
			if a.lettered {
				c.Held = append(c.Held, f.baseOf(a))
			}
			continue
		}
		c.changed = append(c.changed, a)
		if a.held {
			c.Passed = append(c.Passed, Passed{AccountID: f.idOf(a), Version: a.version})
		}
	}
	slices.SortFunc(c.Parks, func(a, b *Parked) int {
		x, y := &a.Decoded.Event, &b.Decoded.Event
		return cmp.Or(strings.Compare(x.AccountID, y.AccountID), cmp.Compare(x.Version, y.Version))
	})
	return c
}

// baseOf is what the database has of the account.
func (f *Fold) baseOf(a *account) Base {
	return Base{AccountID: f.idOf(a), Exists: a.exists, Version: a.base}
}

// Pending tells how much waits to be flushed.
type Pending struct {
	Events int  // records judged and parked events applied or dead-lettered
	Bytes  int  // approximate memory held, without the accounts
	Full   bool // the accounts take the memory they may: a flush frees some
}

// Pending tells how much waits to be flushed.
func (f *Fold) Pending() Pending {
	return Pending{
		Events: f.changes.Records + f.changes.Healed + f.changes.Turned,
		Bytes:  f.changes.Bytes,
		Full:   f.cache.hot.bytes() > f.opts.CacheBytes/2,
	}
}

// Duplicates is how many of the pending records are duplicates.
func (f *Fold) Duplicates() int { return f.changes.Outcomes[Duplicate] }

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
	for _, p := range f.answered {
		delete(f.rejected, p)
	}
	f.answered = f.answered[:0]
	f.changes = Changes{
		changed: f.changes.changed[:0], Parks: f.changes.Parks[:0], Passed: f.changes.Passed[:0], Held: f.changes.Held[:0],
	}
	f.forgetUnread()
	if f.cache.hot.bytes() > f.opts.CacheBytes/4 && len(f.healing) == 0 {
		f.cache.turn() // so that the next flush can be as deep
		clear(f.holds) // of accounts that have healed: those on hold are forgotten above
	}
}

func (f *Fold) forget(a *account) {
	f.cache.hot.drop(a)
	delete(f.holds, a)
}
