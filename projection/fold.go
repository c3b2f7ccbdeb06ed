package projection

import (
	"projector/projection/event"
)

// Parked is an event that waits in the database behind a hole, or is the hole.
type Parked struct {
	Record  Record
	Decoded event.Decoded // identified
	Class   event.Class   // version_gap, or what keeps the event from being applied
	// Expected is the account's version + 1 when the event was parked.
	Expected int64
}

// Account is what the database knows of an account.
type Account struct {
	ID     string
	Exists bool // it has a balance row
	State  State
	// Parked counts the account's parked events above State.Version; NextParked is
	// the lowest of their versions (0: none) and NextClass its class.
	Parked     int64
	NextParked int64
	NextClass  event.Class
	// Overflowed: gap events beyond the park limit were dead-lettered only.
	Overflowed bool
}

// FoldOptions bound a Fold.
type FoldOptions struct {
	FirstVersion int64
	ParkLimit    int64 // parked events an account
	CacheBytes   int   // approximate size of the accounts remembered between flushes
}

// Fold folds the records of one partition over the accounts they touch and
// gathers what has to be written and dead-lettered. It does no I/O. Its driver
// lets it Learn the accounts it does not know, calls Judge record by record,
// feeds the accounts that are Healing from the database, writes the Changes and
// then says Flushed, or Reset when the database turned out to be elsewhere.
//
// A Fold is not safe for concurrent use.
type Fold struct {
	opts     FoldOptions
	cache    cache
	dirty    []*account
	healing  []*account
	changes  Changes
	rejected map[Place]string // what PostgreSQL has refused, and why
	sole     Place
}

// Place names a record: where it stood.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Place is where the record stood.
func (r *Record) Place() Place { return Place{r.Topic, r.Partition, r.Offset} }

// account is an account in memory: the database's row and what is pending on it.
type account struct {
	Account
	base     int64 // version in the database
	held     bool  // the database may hold parked events of it
	isDirty  bool
	healing  bool
	lettered bool              // its base is among changes.Bases
	pending  map[int64]*Parked // parked by this fold and not yet written, by version
}

const (
	accountBytes = 320 // an account, its map entry and its share of the slices, without its strings
	parkedBytes  = 400 // a parked event or dead letter without its payload
)

// NewFold returns an empty fold.
func NewFold(opts FoldOptions) *Fold {
	f := &Fold{opts: opts, rejected: map[Place]string{}}
	f.Reset()
	return f
}

// Reset forgets what is pending and what was learnt. Refused records are
// remembered, so that they are judged as refused when they come again.
func (f *Fold) Reset() {
	f.cache = newCache()
	f.dirty, f.healing = nil, nil
	f.changes = Changes{}
}

// Reject makes the record be dead-lettered as refused by the database when it is
// judged next. It answers false when it was rejected before.
func (f *Fold) Reject(p Place, reason string) bool {
	_, again := f.rejected[p]
	f.rejected[p] = reason
	return !again
}

// Knows reports whether the account's state is in memory.
func (f *Fold) Knows(id string) bool { return f.cache.get(id) != nil }

// Version is the version of an account the fold knows, pending changes included.
func (f *Fold) Version(id string) int64 { return f.cache.get(id).State.Version }

// Learn takes in what the database knows of an account.
func (f *Fold) Learn(known Account) {
	a := &account{Account: known, base: known.State.Version}
	a.held = known.Parked > 0 || known.Overflowed
	f.cache.put(a)
	f.settle(a)
}

// LearnNew takes in an account of which the database knows nothing.
func (f *Fold) LearnNew(id string) {
	f.Learn(Account{ID: id, State: NewState(f.opts.FirstVersion)})
}

// Judge judges one record: of an account the fold knows and that is not healing,
// or one that names no account. See State.Judge for judgedBefore.
func (f *Fold) Judge(rec Record, d *event.Decoded, judgedBefore bool) {
	f.changes.Records++
	f.sole = rec.Place()
	if d.Identity == event.Unidentified {
		_, v := State{}.Judge(d, judgedBefore)
		f.conclude(rec, d, nil, v)
		return
	}
	a := f.cache.get(d.Event.AccountID)
	next, v := f.judge(a, &rec, d, judgedBefore)
	if next.Version != a.State.Version {
		f.advance(a, next)
	}
	f.conclude(rec, d, a, v)
	f.settle(a)
}

// judge is State.Judge, unless PostgreSQL has refused what it would write.
func (f *Fold) judge(a *account, rec *Record, d *event.Decoded, judgedBefore bool) (State, Verdict) {
	next, v := a.State.Judge(d, judgedBefore)
	if next.Version == a.State.Version || len(f.rejected) == 0 {
		return next, v
	}
	if reason, refused := f.rejected[rec.Place()]; refused {
		return a.State, deadLettered(event.RejectedByDatabase, reason)
	}
	return next, v
}

// conclude counts the verdict and, for a dead letter, keeps the letter and parks
// the event.
func (f *Fold) conclude(rec Record, d *event.Decoded, a *account, v Verdict) {
	f.changes.Outcomes[v.Outcome]++
	if v.Outcome != DeadLettered {
		return
	}
	f.letter(rec, d, a, v)
	if a != nil && v.Class != event.VersionConflict {
		f.park(a, rec, d, v.Class)
	}
}

func (f *Fold) letter(rec Record, d *event.Decoded, a *account, v Verdict) {
	l := DeadLetter{Record: rec, Class: v.Class, Message: v.Message}
	if a != nil {
		l.AccountID, l.EventID, l.CorrelationID = d.Event.AccountID, d.Event.ID, d.Event.CorrelationID
		l.Received, l.Expected = d.Event.Version, a.State.Version+1
		if !a.lettered {
			a.lettered = true
			f.changes.Bases = append(f.changes.Bases, Base{AccountID: a.ID, Exists: a.Exists, Version: a.base})
			f.touch(a)
		}
	}
	f.changes.Letters = append(f.changes.Letters, l)
	f.changes.Bytes += parkedBytes + len(rec.Value) + len(rec.Key)
}

// park keeps the event for when its turn comes. Of two events for one version
// the first stays.
func (f *Fold) park(a *account, rec Record, d *event.Decoded, class event.Class) {
	version := d.Event.Version
	if a.pending[version] != nil || a.NextParked == version {
		return
	}
	if a.Parked >= f.opts.ParkLimit {
		a.Overflowed = true
		f.changes.Overflows = append(f.changes.Overflows,
			Overflow{AccountID: a.ID, Version: version, Expected: a.State.Version + 1})
		return
	}
	if a.pending == nil {
		a.pending = map[int64]*Parked{}
	}
	a.Parked++
	a.pending[version] = &Parked{Record: rec, Decoded: *d, Class: class, Expected: a.State.Version + 1}
	f.changes.Bytes += parkedBytes
	f.touch(a)
}

func (f *Fold) advance(a *account, next State) {
	a.State = next
	f.touch(a)
}

func (f *Fold) touch(a *account) {
	if !a.isDirty {
		a.isDirty = true
		f.dirty = append(f.dirty, a)
		f.changes.Bytes += accountBytes
	}
}
