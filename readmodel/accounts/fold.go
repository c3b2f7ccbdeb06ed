package accounts

import (
	"context"

	"projector/projection"
	"projector/projection/event"
)

// Store reads what the database knows of accounts.
type Store interface {
	// Accounts calls found with what is stored of each account; its texts are valid until found
	// returns. Accounts of which nothing is known are left out.
	Accounts(ctx context.Context, ids []string, found func(*projection.StoredAccount)) error
	// Parked reads up to limit parked events of an account above a version, in the order of
	// their versions. more: there may be further ones after them.
	Parked(ctx context.Context, id string, above int64, limit int) (parked []projection.Parked, more bool, err error)
	// Versions is the index of all accounts, read after the last Reset; nil: there is none now.
	Versions(ctx context.Context) *VersionIndex
}

// Options bound a Fold.
type Options struct {
	FirstVersion int64
	ParkLimit    int64 // parked events an account
	ParkBytes    int64 // size of an account's parked events; 0: any
	// CacheBytes is the size of all accounts in memory: two thirds of it for those touched
	// since the last turn, changed or not, see Pending.Full and SetCacheBytes.
	CacheBytes int
	// Replay: what cannot be applied is neither dead-lettered nor parked, and
	// Changes.Decisions has the decision about each record.
	Replay bool
	// Balances: Changes.Balances has the balances before and after each record, in a replay.
	Balances bool
	// Take: Changes.Taken has the events that were applied.
	Take bool
	// Duplicates: NewDuplicates has the events whose versions were applied before them.
	Duplicates bool
}

// Fold folds records over the accounts they touch and gathers what has to be written and
// dead-lettered. Its driver has it Apply records and Heal, writes the Changes, and then says
// Flushed, or Reset when the database turned out to be elsewhere.
//
// A Fold is not safe for concurrent use.
type Fold struct {
	opts  Options
	store Store

	cache   cache
	queues  map[*account]*queue
	dirty   []*account
	healing []*account
	changes Changes
	last    eventRef             // decided about
	partly  projection.RecordRef // the record of which entries are left, when it is the last; zero: none
	breaker *projection.Breaker  // nil: off
	// duplicates are events that have come for the first time, of versions that were applied.
	duplicates []projection.SkippedEvent

	refused        map[eventRef]string // what PostgreSQL has refused, and why, until that is durable
	refusedDecided []eventRef          // of them, those decided about since the last flush

	lookup     lookup
	unreadIDs  []string
	redelivery redelivery
	newcomers  newcomers
}

// queue is what is parked of an account.
type queue struct {
	parked     int64 // see projection.StoredAccount
	bytes      int64 // their size, at most; see projection.StoredAccount
	waits      bool  // something is parked in the database:
	next       int64 // see projection.StoredAccount
	nextClass  event.Class
	overflowed bool
	pending    map[int64]*projection.Parked // parked by this fold and not yet written, by version
	// instead are events that replace those of their versions that are parked in the database,
	// where these cannot be applied, by version.
	instead map[int64]*projection.Parked
}

// waits reports whether the account waits for an event that is missing.
func (f *Fold) waits(a *account) bool {
	q := f.queues[a]
	if a == nil || q == nil {
		return false
	}
	for version := range q.pending {
		if version > a.version {
			return true
		}
	}
	return q.waits || q.overflowed
}

// Waits reports whether an account the fold knows waits for an event that is missing.
func (f *Fold) Waits(id string) bool { return f.waits(f.get(id)) }

const (
	dirtyBytes  = 2 * 8 // pointers to a changed account
	parkedBytes = 400   // a parked event or dead letter without its payload
	takenBytes  = 200   // an event that is taken, without its payload
)

// NewFold returns an empty fold.
func NewFold(opts Options, store Store) *Fold {
	f := &Fold{opts: opts, store: store, refused: map[eventRef]string{}}
	f.Reset()
	return f
}

// SetCacheBytes changes the size of all accounts in memory. Where they take more now,
// those that have not been touched since the last turn are forgotten at once.
func (f *Fold) SetCacheBytes(n int) {
	f.opts.CacheBytes = n
	f.cache.keepWithin(n)
}

// Reset forgets what is pending and what was learnt. Refused events are remembered, so
// that they are dead-lettered when they come again.
func (f *Fold) Reset() {
	f.cache = newCache()
	f.queues = map[*account]*queue{}
	f.dirty, f.healing = nil, nil
	f.changes = Changes{}
	f.refusedDecided, f.last, f.partly = nil, eventRef{}, projection.RecordRef{}
	f.lookup, f.redelivery = lookup{}, redelivery{}
	f.newcomers.inRow, f.duplicates = 0, nil
}

// AssumedWrongly has accounts be looked up again before they are taken for new ones. Reset
// comes next.
func (f *Fold) AssumedWrongly() { f.newcomers.distrust = distrustFor }

// CountedBy has the breaker count what is folded from here on. When it has opened, nothing
// is folded any more.
func (f *Fold) CountedBy(breaker *projection.Breaker) { f.breaker = breaker }

// Apply folds records in order until all are folded, limit events are pending or the breaker
// opens, and returns how many it has folded. After an error, continue with the rest.
func (f *Fold) Apply(ctx context.Context, records []projection.DecodedRecord, limit int) (int, error) {
	if f.breaker.Open() {
		return 0, nil
	}
	records = records[:min(len(records), max(1, limit-f.Pending().Events))]
	var versions *VersionIndex
	if f.redelivery.in {
		versions = f.store.Versions(ctx)
	}
	f.find(records, versions)
	f.cache.keepWithin(f.opts.CacheBytes)
	if err := f.readUnread(ctx); err != nil {
		return 0, err
	}
	duplicates := f.changes.Outcomes[projection.Duplicate]
	n, err := f.applyFound(ctx, records, limit)
	f.redelivery.applied(n, f.changes.Outcomes[projection.Duplicate]-duplicates, len(f.unreadIDs))
	return n, err
}

// applyFound is Apply after the accounts were looked up.
func (f *Fold) applyFound(ctx context.Context, records []projection.DecodedRecord, limit int) (int, error) {
	for i := range records {
		a := f.lookup.found[i]
		if a != nil && a.healing {
			if ready, err := f.healBefore(ctx, a, records[i].Decoded.Event.Version, limit); err != nil || !ready || f.breaker.Open() {
				return i, err
			}
		}
		f.applyRecord(a, &records[i])
		if a != nil && a.healing && limit > 1 && !f.opts.Replay {
			if err := f.healUpTo(ctx, a, HealPiece); err != nil {
				return i + 1, err
			}
		}
		if p := f.Pending(); p.Events >= limit || p.Open {
			return i + 1, nil
		}
	}
	return len(records), nil
}

// applyRecord decides about a record of the account: nil when it names none, applied when
// it is known to have been applied.
func (f *Fold) applyRecord(a *account, r *projection.DecodedRecord) {
	f.changes.Records++
	f.last = eventRef{r.Record.Ref(), r.Decoded.Event.ID}
	if f.partly = (projection.RecordRef{}); r.More {
		f.partly = f.last.record
	}
	if r.Discarded {
		f.conclude(r, nil, projection.Decision{Outcome: projection.Duplicate})
		return
	}
	switch a {
	case nil:
		_, decision := projection.Account{}.Apply(&r.Decoded, r.Reprocessed)
		f.conclude(r, nil, decision)
		f.noteBalance(Balance{})
		return
	case &applied:
		f.noteBalance(Balance{})
		f.conclude(r, nil, projection.Decision{Outcome: projection.Duplicate})
		return
	}
	before := f.cache.hot.state(a).Balance
	next, decision := f.decide(a, r)
	f.noteBalance(Balance{Before: before, After: next.Balance, Currency: next.Currency, Known: true})
	if next.Version != a.version {
		f.advance(a, next)
		f.noteApplied(&r.Record, &r.Decoded.Event, decision)
	}
	f.conclude(r, a, decision)
	f.applyFitting(a)
}

// decide is Account.Apply, unless PostgreSQL has refused what it would write.
func (f *Fold) decide(a *account, r *projection.DecodedRecord) (projection.Account, projection.Decision) {
	account := f.cache.hot.state(a)
	if reason := f.refusal(f.last); reason != "" {
		return account.ApplyRefused(&r.Decoded, r.Reprocessed, reason)
	}
	return account.Apply(&r.Decoded, r.Reprocessed)
}

// Skip skips a version of an account. The account was read (see Read) and has nothing
// pending. Skip returns false unless the version is the account's next one.
func (f *Fold) Skip(id string, version int64, eventID string) bool {
	a := f.get(id)
	next, done := f.cache.hot.state(a).Skip(version, eventID)
	if !done {
		return false
	}
	f.advance(a, next)
	f.applyFitting(a)
	return true
}

func (f *Fold) advance(a *account, next projection.Account) {
	f.cache.hot.set(a, next)
	f.touch(a)
}

// noteApplied adds an event that was applied to the changes, if the projection needs it. Its
// texts are views of its record.
func (f *Fold) noteApplied(r *projection.Record, ev *event.Event, decision projection.Decision) {
	if !f.opts.Take || decision.Outcome != projection.Applied {
		return
	}
	f.changes.Taken = append(f.changes.Taken, projection.TakenEvent{Event: *ev, Record: r.Ref()})
	f.changes.Bytes += takenBytes + r.Bytes()
}

func (f *Fold) touch(a *account) {
	if !a.dirty {
		a.dirty = true
		f.dirty = append(f.dirty, a)
		f.changes.Bytes += dirtyBytes
	}
}

// queueOf is the account's queue, made when it has none.
func (f *Fold) queueOf(a *account) *queue {
	q := f.queues[a]
	if q == nil {
		q = &queue{}
		f.queues[a] = q
	}
	return q
}

func (f *Fold) idOf(a *account) string { return f.cache.hot.idOf(a) }

// get returns the account if it has a place in memory, unread or not.
func (f *Fold) get(id string) *account { return f.cache.get(id, f.cache.hash(id)) }

// Flushed notes that the changes are durable. Accounts with parked events
// are forgotten, so that what the database has of them is read afresh.
func (f *Fold) Flushed() {
	for _, a := range f.dirty {
		a.exists = a.exists || a.version != a.stored
		a.stored, a.dirty, a.decidedOn, a.assumed = a.version, false, false, false
		if q := f.queues[a]; q != nil {
			a.hasParked = a.hasParked || len(q.pending) > 0 || q.overflowed
			q.pending, q.instead = nil, nil
		}
		if a.hasParked && !a.healing {
			f.cache.hot.drop(a)
			delete(f.queues, a)
		}
	}
	f.dirty = emptied(f.dirty)
	f.forgetRefused()
	f.changes = f.changes.emptied()
	f.dropUnread()
	f.newcomers.distrust = max(0, f.newcomers.distrust-1)
	if f.full() && len(f.healing) == 0 {
		f.cache.turn()  // so that the next flush can be as deep
		clear(f.queues) // of accounts that have healed: those that have parked events are forgotten above
	}
}
