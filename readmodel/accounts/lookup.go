package accounts

import (
	"context"
	"math"
	"slices"

	"projector/projection"
	"projector/projection/event"
)

// lookup finds the accounts of many records at once.
type lookup struct {
	found  []*account // by index of the record; nil where it names no account
	hashes []uint64
	index  []idHash   // by index of the record; empty while there is no VersionIndex
	unread []*account // found, and not read yet
	warmed int64      // keeps table.warm from being left out
}

// applied represents any account of an event that the VersionIndex knows to be applied.
var applied account

// find looks up the accounts of records. Where one is not known it is made unread.
//
// Each account is looked up once an event, and the memory of a whole run is asked for
// at once: BenchmarkFold/uniform went from 4.7 to 1.6 µs an event, medians of 5 turns
// on a busy machine.
func (f *Fold) find(records []projection.DecodedRecord, versions *VersionIndex) {
	l := &f.lookup
	l.found, l.hashes = emptied(l.found), l.hashes[:0]
	f.findApplied(records, versions)
	for i := range records {
		var hash uint64
		if d := &records[i].Decoded; d.Identity == event.Identified && l.found[i] != &applied {
			hash = f.cache.hash(d.Event.AccountID)
		}
		l.hashes = append(l.hashes, hash)
	}
	l.warmed += f.cache.hot.warm(l.hashes) + f.cache.cold.warm(l.hashes)
	for i := range records {
		if d := &records[i].Decoded; d.Identity == event.Identified && l.found[i] != &applied {
			l.found[i] = f.findOne(d.Event.AccountID, l.hashes[i], d.Event.Version)
		}
	}
}

// findApplied prepares found for the records, and marks the events that were applied
// according to the index.
func (f *Fold) findApplied(records []projection.DecodedRecord, versions *VersionIndex) {
	l := &f.lookup
	l.found = slices.Grow(l.found, len(records))[:len(records)]
	if versions == nil || len(f.refused) > 0 { // what was refused is counted where it is decided
		return
	}
	l.index = l.index[:0]
	for i := range records {
		var id idHash
		if d := &records[i].Decoded; d.Identity == event.Identified && !d.Tombstone && !d.Skip {
			id = versions.idOf(d.Event.AccountID)
		}
		l.index = append(l.index, id)
	}
	l.warmed += versions.warm(l.index)
	for i, id := range l.index {
		if id[0] != 0 && versions.applied(id, &records[i].Decoded.Event) {
			l.found[i] = &applied
		}
	}
}

// findOne finds the account of an event of such a version.
func (f *Fold) findOne(id string, hash uint64, version int64) *account {
	if a := f.cache.get(id, hash); a != nil {
		return a
	}
	a := f.cache.hot.add(id, hash)
	if a.assumed = version == f.opts.FirstVersion && !f.opts.Replay; a.assumed && f.newcomers.trusted() {
		f.setNew(a)
		return a
	}
	a.unread = true
	f.lookup.unread = append(f.lookup.unread, a)
	return a
}

// setNew has an account be one of which the database knows nothing.
func (f *Fold) setNew(a *account) {
	account := projection.NewAccount(f.opts.FirstVersion)
	f.cache.hot.set(a, account)
	a.stored = account.Version
}

// newcomers decides whether accounts that appear with their first event may be assumed to
// be new: those that were looked up last all were. What is assumed is checked before
// anything is published or written.
type newcomers struct {
	inRow    int // met with their first event and looked up, since one of them was known
	distrust int // flushes until something is assumed again
}

const (
	// newcomersInRow are looked up before the next are assumed to be new.
	newcomersInRow = 1024
	// distrustFor is for how many flushes nothing is assumed after an assumption was wrong.
	distrustFor = 64
)

func (n *newcomers) trusted() bool { return n.inRow >= newcomersInRow && n.distrust == 0 }

// unknownVersion is that of no event.
const unknownVersion = math.MinInt64

// Read has the fold know the accounts. Those whose next event is parked then heal.
func (f *Fold) Read(ctx context.Context, ids []string) error {
	for _, id := range ids {
		f.findOne(id, f.cache.hash(id), unknownVersion)
	}
	return f.readUnread(ctx)
}

// readUnread reads the accounts that were found and are not known: those of an earlier
// look-up too whose reading has failed.
func (f *Fold) readUnread(ctx context.Context) error {
	f.unreadIDs = emptied(f.unreadIDs)
	for _, a := range f.lookup.unread {
		if a.unread {
			f.unreadIDs = append(f.unreadIDs, f.idOf(a))
		}
	}
	if len(f.unreadIDs) == 0 {
		return nil
	}
	slices.Sort(f.unreadIDs) // neighbours in the database's index are read together
	if err := f.store.Accounts(ctx, f.unreadIDs, f.setStored); err != nil {
		return err
	}
	for _, a := range f.lookup.unread { // of what is left the database knows nothing
		if a.unread {
			a.unread = false
			f.setNew(a)
		}
		if a.assumed {
			a.assumed = false
			f.newcomers.inRow++
		}
	}
	f.lookup.unread = emptied(f.lookup.unread)
	return nil
}

// setStored sets an account to what the database has of it. It keeps none of the texts.
func (f *Fold) setStored(known *projection.StoredAccount) {
	a := f.get(known.ID)
	a.unread = false
	if a.assumed {
		a.assumed = false
		f.newcomers.inRow = 0
	}
	f.cache.hot.set(a, known.Account)
	a.stored, a.exists = known.Account.Version, known.Exists
	if known.Parked > 0 || known.Overflowed {
		a.hasParked = true
		*f.queueOf(a) = queue{
			parked: known.Parked, bytes: known.ParkedBytes, waits: known.Parked > 0, next: known.NextParked, nextClass: known.NextClass,
			overflowed: known.Overflowed,
		}
		f.applyFitting(a)
	}
}

// dropUnread gives up the places of what could not be read.
func (f *Fold) dropUnread() {
	for _, a := range f.lookup.unread {
		if a.unread {
			f.cache.hot.drop(a)
		}
	}
	f.lookup.unread = emptied(f.lookup.unread)
}
