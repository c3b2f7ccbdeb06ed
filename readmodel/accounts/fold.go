package accounts

import (
	"context"
	"strings"

	"projector/projection"
	"projector/projection/event"
)

// Store reads accounts from the database.
type Store interface {
	// Accounts calls found with the stored state of each account. The strings are valid until found
	// returns. Accounts without a stored state are left out.
	Accounts(ctx context.Context, ids []string, found func(*projection.StoredAccount)) error
	// Parked reads up to limit parked events of an account with versions above the given one, in
	// the order of their versions. If more is true, further parked events may exist.
	Parked(ctx context.Context, id string, above int64, limit int) (parked []projection.Parked, more bool, err error)
	// Versions returns the index of all accounts. It returns nil if the index was not read since
	// the last Reset.
	Versions(ctx context.Context) *VersionIndex
}

// Options are the options of a Fold.
type Options struct {
	FirstVersion int64
	ParkLimit    int64 // the most parked events per account
	ParkBytes    int64 // the most bytes of an account's parked events; 0 means no limit
	// CacheBytes limits the memory for accounts. Two thirds of this memory are for the hot
	// generation of the cache, which has the accounts that were used last. See Pending.Full and
	// SetCacheBytes.
	CacheBytes int
	// If Replay is set, events that cannot be applied are neither dead-lettered nor parked.
	// Changes.Decisions then has the decision about each record.
	Replay bool
	// If Balances is set in a replay, Changes.Balances has the balances before and after each
	// record.
	Balances bool
	// If Custom is set, Changes.CustomEvents has the applied events.
	Custom bool
	// If Duplicates is set, Fold.Duplicates returns events whose versions were applied before.
	Duplicates bool
}

// Fold applies records to accounts in memory and gathers what has to be written and dead-lettered.
// Its caller calls Apply and Heal, writes the Changes, and then calls Flushed. If the database has
// another state than the fold assumes, the caller calls Reset instead of Flushed.
//
// A Fold is not safe for concurrent use.
type Fold struct {
	opts  Options
	store Store

	cache   cache
	queues  map[*account]*queue
	dirty   []*account // accounts that were changed since the last flush
	healing []*account // accounts whose next event is parked in the database
	changes Changes
	last    eventRef             // the event of the last decision
	partly  projection.RecordRef // the last record, if entries of it are not processed yet; else zero
	breaker *projection.Breaker  // nil if it is off
	// duplicates holds events that were read for the first time and whose versions were applied
	// before.
	duplicates []projection.SkippedEvent

	refused        map[eventRef]string // why PostgreSQL refused an event, until the event's dead letter is durable
	refusedDecided []eventRef          // keys of refused whose events became dead letters since the last flush

	lookup     lookup
	unreadIDs  []string
	redelivery redelivery
	newcomers  newcomers
}

// A queue holds the parked events of an account.
type queue struct {
	parked     int64 // see projection.StoredAccount
	bytes      int64 // upper bound for the bytes of these events; see projection.StoredAccount
	inDatabase bool  // events are parked in the database
	next       int64 // see projection.StoredAccount
	nextClass  event.Class
	overflowed bool
	pending    map[int64]*projection.Parked // events parked by this fold and not written yet, by version
	// instead holds, by version, events that replace a parked event in the database if the parked
	// event cannot be applied.
	instead map[int64]*projection.Parked
}

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
	return q.inDatabase || q.overflowed
}

// Waits reports whether an account that the fold has read waits for a missing event.
func (f *Fold) Waits(id string) bool { return f.waits(f.get(id)) }

const (
	dirtyBytes   = 2 * 8 // pointers to a changed account
	parkedBytes  = 400   // a parked event or dead letter without its payload
	appliedBytes = 200   // an applied event without its payload
)

// NewFold returns an empty fold.
func NewFold(opts Options, store Store) *Fold {
	f := &Fold{opts: opts, store: store, refused: map[eventRef]string{}}
	f.Reset()
	return f
}

// SetCacheBytes changes the memory limit for accounts. If the accounts need more memory than the
// new limit, the cold generation of the cache is removed at once.
func (f *Fold) SetCacheBytes(n int) {
	f.opts.CacheBytes = n
	f.cache.keepWithin(n)
}

// Reset removes pending changes and all accounts from memory. It keeps refused events, so that they
// are dead-lettered when they are read again.
func (f *Fold) Reset() {
	f.cache = newCache()
	f.queues = map[*account]*queue{}
	f.dirty, f.healing = nil, nil
	f.changes = Changes{}
	f.refusedDecided, f.last, f.partly = nil, eventRef{}, projection.RecordRef{}
	f.lookup, f.redelivery = lookup{}, redelivery{}
	f.newcomers.inRow, f.duplicates = 0, nil
}

// AssumedWrongly is called if an account that was assumed to be new may have a row or parked
// events. In the next flushes, no account is assumed to be new. The caller calls Reset next.
func (f *Fold) AssumedWrongly() { f.newcomers.distrust = distrustFor }

// CountedBy sets the breaker that counts records. After the breaker has opened, no record is
// folded.
func (f *Fold) CountedBy(breaker *projection.Breaker) { f.breaker = breaker }

// Apply folds records in order until all are folded, limit events are pending or the breaker opens.
// It returns the number of folded records. After an error, the caller continues with the remaining
// records.
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
	f.keepLast()
	f.redelivery.applied(n, f.changes.Outcomes[projection.Duplicate]-duplicates, len(f.unreadIDs))
	return n, err
}

// keepLast copies the id of the last event. Otherwise it would keep a whole fetch response, or a
// parked event, in memory.
func (f *Fold) keepLast() { f.last.id = strings.Clone(f.last.id) }

// applyFound applies records whose accounts were looked up.
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

// applyRecord decides about a record of an account. The account is nil if the record names none.
// The account is &applied if the version index shows that the event was applied.
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

// decide calls Account.Apply, or Account.ApplyRefused if PostgreSQL has refused the event.
func (f *Fold) decide(a *account, r *projection.DecodedRecord) (projection.Account, projection.Decision) {
	account := f.cache.hot.state(a)
	if reason := f.refusal(f.last); reason != "" {
		return account.ApplyRefused(&r.Decoded, r.Reprocessed, reason)
	}
	return account.Apply(&r.Decoded, r.Reprocessed)
}

// Skip skips a version of an account. The caller must have called Read for the account, and the
// account must have no pending changes. Skip returns false if the version is not the account's next
// one.
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

// noteApplied adds an applied event to the changes, if the projection needs it. The event's strings
// share the record's memory.
func (f *Fold) noteApplied(r *projection.Record, ev *event.Event, decision projection.Decision) {
	if !f.opts.Custom || decision.Outcome != projection.Applied {
		return
	}
	f.changes.CustomEvents = append(f.changes.CustomEvents, projection.CustomEvent{Event: *ev, Record: r.Ref()})
	f.changes.Bytes += appliedBytes + r.Bytes()
}

func (f *Fold) touch(a *account) {
	if !a.dirty {
		a.dirty = true
		f.dirty = append(f.dirty, a)
		f.changes.Bytes += dirtyBytes
	}
}

// queueOf returns the account's queue. It creates an empty queue if there is none.
func (f *Fold) queueOf(a *account) *queue {
	q := f.queues[a]
	if q == nil {
		q = &queue{}
		f.queues[a] = q
	}
	return q
}

func (f *Fold) idOf(a *account) string { return f.cache.hot.idOf(a) }

// get returns the account if it is in memory, even if its state was not read from the database yet.
func (f *Fold) get(id string) *account { return f.cache.get(id, f.cache.hash(id)) }

// Flushed is called when the changes are durable. Changed accounts with parked events are removed
// from memory, so that their state is read again from the database. Accounts that are healing stay.
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
		f.cache.turn()  // frees memory, so that the next flush can be as large
		clear(f.queues) // only healed accounts are left here; those with parked events are forgotten above
	}
}
