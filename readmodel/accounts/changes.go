package accounts

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"projector/projection"
	"projector/projection/event"
)

// Changes holds what a fold has gathered since the last flush.
type Changes struct {
	Records      int // number of decided records
	Outcomes     projection.OutcomeCounts
	CustomEvents []projection.CustomEvent // applied events in order; see Options.Custom
	Healed       int                      // parked events applied
	HealFailed   int                      // parked events with the account's next version that could not be applied
	Bytes        int                      // approximate memory held
	Decisions    []projection.Decision    // in a replay: the decision about each record
	Balances     []Balance                // the balances before and after each record; see Options.Balances

	DeadLetters []projection.DeadLetter // must be published before anything is written
	DecidedOn   []StoredVersion         // the stored versions that led to the dead letters
	Unwritten   []StoredVersion         // the versions in DecidedOn whose accounts are not written
	Assumed     []string                // accounts that are assumed to be new

	Rows []Row // rows of changes that do not come from a fold; see RowChunks
	// Parks holds the events to park, sorted by account id and version. If an event that cannot be
	// applied is parked for the same version, an event that waits for a missing version replaces it.
	Parks []*projection.Parked
	// Replacing holds events that replace a parked event of the same version which cannot be
	// applied. If there is no such parked event, they are not parked.
	Replacing []*projection.Parked
	Reclassed []Reclassed
	Overflows []Overflow
	Pruned    []PrunedThrough

	table   *table // the fold's table
	changed []*account
}

// StoredVersion is the version of an account on which a decision is based. Exists is false if the
// account has no row.
type StoredVersion struct {
	AccountID string
	Exists    bool
	Version   int64
}

// Row is the new row of an account, with the stored version from which it was computed. The new row
// may only replace a row with that stored version.
type Row struct {
	AccountID string
	Account   projection.Account
	Stored    int64 // the version in the database, if Exists
	Exists    bool  // the account has a balance row
}

// Reclassed is a parked event that could not be applied when its version was the account's next
// one. Class is its new class.
type Reclassed struct {
	AccountID string
	Version   int64
	Class     event.Class
}

// Overflow is an event beyond the park limit. It is only in the DLQ, not in the database.
type Overflow struct {
	AccountID string
	Version   int64
	Expected  int64
	Place     projection.RecordRef // the event's record; its Partition is projection.NoPartition if unknown
}

// PrunedThrough is the version up to which an account's parked events can be deleted.
type PrunedThrough struct {
	AccountID string
	Version   int64
}

// NumRows returns the number of rows to write.
func (c *Changes) NumRows() int { return len(c.Rows) + len(c.changed) }

// AnyExists reports whether one of the accounts to write has a row.
func (c *Changes) AnyExists() bool {
	return slices.ContainsFunc(c.changed, func(a *account) bool { return a.exists })
}

// RowChunks returns the rows in chunks, one row per account, sorted by account id. Before each
// chunk, it calls size for the length of the chunk. A chunk is valid until the next one, because
// its memory is reused. All rows of a flush with half a million accounts together would need 40 MB.
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

// emptied returns empty changes that reuse the memory of c.
func (c *Changes) emptied() Changes {
	return Changes{
		CustomEvents: emptied(c.CustomEvents), changed: emptied(c.changed), Parks: emptied(c.Parks),
		Replacing: emptied(c.Replacing), Pruned: emptied(c.Pruned), Unwritten: emptied(c.Unwritten), Assumed: emptied(c.Assumed),
	}
}

// emptied clears a list for reuse. A pointer that stays in the list would keep the memory of many
// accounts in use.
func emptied[T any](list []T) []T {
	clear(list)
	return list[:0]
}

// Gather collects and sorts what has to be written. The result is valid until the fold is used
// again. Call Gather only once per flush, because it takes half a second with half a million
// accounts.
func (f *Fold) Gather() *Changes {
	c := &f.changes
	c.table, c.changed, c.Parks, c.Pruned, c.Unwritten, c.Assumed = f.cache.hot, c.changed[:0], c.Parks[:0], c.Pruned[:0], c.Unwritten[:0], c.Assumed[:0]
	c.Replacing = c.Replacing[:0]
	// An event beyond the limit does not wait any more if its version was applied from another record.
	c.Overflows = slices.DeleteFunc(c.Overflows, func(o Overflow) bool { return o.Version <= f.get(o.AccountID).version })
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

// DeadLetters returns the dead letters since the last flush.
func (f *Fold) DeadLetters() []projection.DeadLetter { return f.changes.DeadLetters }

// addParked adds the events that the fold has parked for the account to Parks. It adds those that may
// only replace an event in the database to Replacing. Versions that the account already has are left
// out.
func (c *Changes) addParked(a *account, q *queue) {
	for version, p := range q.pending {
		if version > a.version {
			c.Parks = append(c.Parks, p)
		}
	}
	for version, p := range q.instead {
		if version > a.version {
			c.Replacing = append(c.Replacing, p)
		}
	}
}

func sortParked(parked []*projection.Parked) {
	slices.SortStableFunc(parked, func(a, b *projection.Parked) int {
		x, y := &a.Decoded.Event, &b.Decoded.Event
		return cmp.Or(strings.Compare(x.AccountID, y.AccountID), cmp.Compare(x.Version, y.Version))
	})
}

func (f *Fold) storedVersion(a *account) StoredVersion {
	return StoredVersion{AccountID: f.idOf(a), Exists: a.exists, Version: a.stored}
}

// Pending returns how much waits to be flushed.
func (f *Fold) Pending() projection.Pending {
	return projection.Pending{
		Events: f.changes.Records + f.changes.Healed + f.changes.HealFailed,
		Bytes:  f.changes.Bytes,
		Full:   f.full(),

		Healing: len(f.healing) > 0,
		Open:    f.breaker.Open(),
	}
}

// full reports whether the hot generation of the cache has reached its memory limit.
func (f *Fold) full() bool { return f.cache.hot.bytes() > f.opts.CacheBytes/3*2 }

// Flushed returns the counts that are durable when the changes are written.
func (c *Changes) Flushed() projection.Flushed {
	return projection.Flushed{
		Records: c.Records, Outcomes: c.Outcomes, Healed: c.Healed, Overflows: len(c.Overflows), DeadLetters: c.DeadLetters,
	}
}
