package accounts

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"projector/projection"
	"projector/projection/event"
)

// Changes is what a fold has gathered since it was last flushed.
type Changes struct {
	Records    int // consumed records decided about
	Outcomes   projection.OutcomeCounts
	Taken      []projection.TakenEvent // events applied, in order; see Options.Take
	Healed     int                     // parked events applied
	HealFailed int                     // parked events dead-lettered when they were the next
	Bytes      int                     // approximate memory held
	Decisions  []projection.Decision   // about each record, in a replay
	Balances   []Balance               // around each record, see Options.Balances

	DeadLetters []projection.DeadLetter // to be published before anything is written
	DecidedOn   []StoredVersion         // what the decisions about them rest on
	Unwritten   []StoredVersion         // of them, the accounts that get no row
	Assumed     []string                // accounts of which the database is assumed to know nothing

	Rows  []Row                // new accounts, where they were not gathered by a fold; see RowChunks
	Parks []*projection.Parked // events to park, sorted by account id and version
	// Replacing are events that replace a parked event of the same version, if that one cannot
	// be applied.
	Replacing []*projection.Parked
	Reclassed []Reclassed
	Overflows []Overflow
	Pruned    []PrunedThrough

	table   *table // of a fold
	changed []*account
}

// StoredVersion is the version that a decision takes the database to have. Exists is
// false when it takes it to have no row.
type StoredVersion struct {
	AccountID string
	Exists    bool
	Version   int64
}

// Row is what an account's row is to be, and the version it was made of: it may be
// written over nothing else.
type Row struct {
	AccountID string
	Account   projection.Account
	Stored    int64 // the version in the database; only when Exists
	Exists    bool  // the account has a balance row
}

// Reclassed is a parked event that could not be applied when it was the next one.
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

// PrunedThrough says up to which version an account's parked events are done with.
type PrunedThrough struct {
	AccountID string
	Version   int64
}

// NumRows is how many rows are to be written.
func (c *Changes) NumRows() int { return len(c.Rows) + len(c.changed) }

// AnyExists reports whether an account that is to be written has a row.
func (c *Changes) AnyExists() bool {
	return slices.ContainsFunc(c.changed, func(a *account) bool { return a.exists })
}

// RowChunks gives the rows out, one an account and sorted by account id, as many at a
// time as size says then. A chunk is valid until the next one: a flush of half a million
// accounts would need 40 MB to have its rows all at once.
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
					rows = append(rows, Row{AccountID: c.table.idOf(a), Account: c.table.state(a), Stored: a.stored, Exists: a.exists})
				}
			}
			if !yield(rows) {
				return
			}
		}
	}
}

// emptied is no changes, with the memory of these to gather the next in.
func (c *Changes) emptied() Changes {
	return Changes{
		Taken: emptied(c.Taken), changed: emptied(c.changed), Parks: emptied(c.Parks),
		Replacing: emptied(c.Replacing), Pruned: emptied(c.Pruned), Unwritten: emptied(c.Unwritten), Assumed: emptied(c.Assumed),
	}
}

// emptied forgets what is in a list: one account that it named would keep the memory of many.
func emptied[T any](list []T) []T {
	clear(list)
	return list[:0]
}

// Gather sorts what is pending and gathers what has to be written. The result is valid until
// the fold is used again. With half a million accounts it takes half a second: call it once
// for each flush.
func (f *Fold) Gather() *Changes {
	c := &f.changes
	c.table, c.changed, c.Parks, c.Pruned, c.Unwritten, c.Assumed = f.cache.hot, c.changed[:0], c.Parks[:0], c.Pruned[:0], c.Unwritten[:0], c.Assumed[:0]
	c.Replacing = c.Replacing[:0]
	slices.SortFunc(f.dirty, func(a, b *account) int { return strings.Compare(f.idOf(a), f.idOf(b)) })
	for _, a := range f.dirty {
		if a.assumed {
			c.Assumed = append(c.Assumed, f.idOf(a))
		}
		if q := f.queues[a]; q != nil {
			c.addParked(a, q)
		}
		if a.version == a.stored {
			if a.decidedOn {
				c.Unwritten = append(c.Unwritten, f.storedVersion(a))
			}
			continue
		}
		c.changed = append(c.changed, a)
		if a.hasParked {
			c.Pruned = append(c.Pruned, PrunedThrough{AccountID: f.idOf(a), Version: a.version})
		}
	}
	sortParked(c.Parks)
	sortParked(c.Replacing)
	return c
}

// DeadLetters are those of the events decided about since the last flush.
func (f *Fold) DeadLetters() []projection.DeadLetter { return f.changes.DeadLetters }

// addParked adds the parked events of an account after its version.
func (c *Changes) addParked(a *account, q *queue) {
	for version, p := range q.pending {
		if version <= a.version {
			continue
		}
		c.Parks = append(c.Parks, p)
		if a.hasParked && p.Class == event.VersionGap {
			c.Replacing = append(c.Replacing, p)
		}
	}
	for version, p := range q.instead {
		if version > a.version {
			c.Replacing = append(c.Replacing, p)
		}
	}
}

// sortParked sorts by account and version.
func sortParked(parked []*projection.Parked) {
	slices.SortStableFunc(parked, func(a, b *projection.Parked) int {
		x, y := &a.Decoded.Event, &b.Decoded.Event
		return cmp.Or(strings.Compare(x.AccountID, y.AccountID), cmp.Compare(x.Version, y.Version))
	})
}

// storedVersion is what the database has of the account.
func (f *Fold) storedVersion(a *account) StoredVersion {
	return StoredVersion{AccountID: f.idOf(a), Exists: a.exists, Version: a.stored}
}

// Pending is how much waits to be flushed.
func (f *Fold) Pending() projection.Pending {
	return projection.Pending{
		Events: f.changes.Records + f.changes.Healed + f.changes.HealFailed,
		Bytes:  f.changes.Bytes,
		Full:   f.full(),

		Healing: len(f.healing) > 0,
		Open:    f.breaker.Open(),
	}
}

// full reports that no more accounts may be touched before a turn.
func (f *Fold) full() bool { return f.cache.hot.bytes() > f.opts.CacheBytes/3*2 }

// Flushed is what is durable when the changes are written.
func (c *Changes) Flushed() projection.Flushed {
	return projection.Flushed{
		Records: c.Records, Outcomes: c.Outcomes, Healed: c.Healed, Overflows: len(c.Overflows), DeadLetters: c.DeadLetters,
	}
}
