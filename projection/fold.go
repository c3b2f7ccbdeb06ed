package projection

import (
	"bytes"
	"slices"
	"strings"

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
	// Parked counts the account's parked events above State.Version; when there are any,
	// NextParked is the lowest of their versions and NextClass its class.
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
	// CacheBytes is the size of all accounts in memory: half of it for those touched
	// since the last turn, changed or not, see Pending.Full and SetCacheBytes.
	CacheBytes int
}

// Fold folds the records of one partition over the accounts they touch and
// gathers what has to be written and dead-lettered. It does no I/O. Its driver
// has it Find the accounts of a run of records, lets it Learn those it does not
// know, calls JudgeFound record by record, feeds the accounts that are Healing from
// the database, writes the Changes and then says Flushed, or Reset when the database
// turned out to be elsewhere.
//
// A Fold is not safe for concurrent use.
type Fold struct {
	opts     FoldOptions
	cache    cache
	holds    map[*account]*hold
	dirty    []*account
	healing  []*account
	changes  Changes
	rejected map[Place]string // what PostgreSQL has refused, and why, until that is durable
	answered []Place          // of them, those that were judged since the last flush
	sole     Place
	lookup   lookup
}

// Place names a record: where it stood.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Place is where the record stood.
func (r *Record) Place() Place { return Place{r.Topic, r.Partition, r.Offset} }

// hold is what few accounts have: parked events.
type hold struct {
	parked     int64 // see Account
	waits      bool  // something is parked in the database:
	next       int64 // see Account
	nextClass  event.Class
	overflowed bool
	pending    map[int64]*Parked // parked by this fold and not yet written, by version
}

const (
	dirtyBytes  = 2 * 8 // pointers to a changed account
	parkedBytes = 400   // a parked event or dead letter without its payload
)

// NewFold returns an empty fold.
func NewFold(opts FoldOptions) *Fold {
	f := &Fold{opts: opts, rejected: map[Place]string{}}
	f.Reset()
	return f
}

// SetCacheBytes changes the size of all accounts in memory. Where they take more now,
// those that have not been touched since the last turn are forgotten at once.
func (f *Fold) SetCacheBytes(n int) {
	if n < f.opts.CacheBytes && f.cache.hot.bytes()+f.cache.cold.bytes() > n {
		f.cache.cold = newTable(f.cache.hot.seed)
	}
	f.opts.CacheBytes = n
}

// Reset forgets what is pending and what was learnt. Refused records are
// remembered, so that they are judged as refused when they come again.
func (f *Fold) Reset() {
	f.cache = newCache()
	f.holds = map[*account]*hold{}
	f.dirty, f.healing = nil, nil
	f.changes = Changes{}
	f.answered = nil
	f.lookup = lookup{}
}

// Reject makes the record be dead-lettered as refused by the database when it is
// judged next. It answers false when it was rejected before.
func (f *Fold) Reject(p Place, reason string) bool {
	_, again := f.rejected[p]
	f.rejected[p] = reason
	return !again
}

// holdOf is the account's hold, made when it has none.
func (f *Fold) holdOf(a *account) *hold {
	h := f.holds[a]
	if h == nil {
		h = &hold{}
		f.holds[a] = h
	}
	return h
}

func (f *Fold) idOf(a *account) string { return f.cache.hot.idOf(a) }

// judgeRecord judges a record of the account, nil when it names none, passed when it is
// known to be applied. See State.Judge
// for judgedBefore.
func (f *Fold) judgeRecord(a *account, r *Judgeable, judgedBefore bool) {
	f.changes.Records++
	f.sole = r.Record.Place()
	switch a {
	case nil:
		_, v := State{}.Judge(&r.Decoded, judgedBefore)
		f.conclude(&r.Record, &r.Decoded, nil, v)
		return
	case &passed:
		f.conclude(&r.Record, &r.Decoded, nil, Verdict{Outcome: Duplicate})
		return
	}
	next, v := f.judge(a, &r.Record, &r.Decoded, judgedBefore)
	if next.Version != a.version {
		f.advance(a, next)
	}
	f.conclude(&r.Record, &r.Decoded, a, v)
	f.settle(a)
}

// judge is State.Judge, unless PostgreSQL has refused what it would write.
func (f *Fold) judge(a *account, rec *Record, d *event.Decoded, judgedBefore bool) (State, Verdict) {
	state := f.cache.hot.state(a)
	if reason := f.refusal(rec.Place()); reason != "" {
		return state.JudgeRefused(d, judgedBefore, reason)
	}
	return state.Judge(d, judgedBefore)
}

// refusal is why PostgreSQL has refused a record that is judged now; empty: it has not.
func (f *Fold) refusal(p Place) string {
	if len(f.rejected) == 0 {
		return ""
	}
	reason, refused := f.rejected[p]
	if refused {
		f.answered = append(f.answered, p)
	}
	return reason
}

// conclude counts the verdict and, for a dead letter, keeps the letter and parks
// the event.
func (f *Fold) conclude(r *Record, d *event.Decoded, a *account, v Verdict) {
	f.changes.Outcomes[v.Outcome]++
	if v.Outcome != DeadLettered {
		return
	}
	rec, kept := keep(*r, d)
	f.letter(rec, &kept, a, v)
	if a != nil && v.Class != event.VersionConflict {
		f.park(a, rec, &kept, v.Class)
	}
}

// keep copies a record that outlives its chunk: as it is, it would hold the memory
// of the whole fetch it came in.
func keep(rec Record, d *event.Decoded) (Record, event.Decoded) {
	rec.Key, rec.Value, rec.Headers = bytes.Clone(rec.Key), bytes.Clone(rec.Value), slices.Clone(rec.Headers)
	for i := range rec.Headers {
		rec.Headers[i].Value = bytes.Clone(rec.Headers[i].Value)
	}
	kept := *d
	ev := &kept.Event
	ev.ID, ev.AccountID, ev.CorrelationID = strings.Clone(ev.ID), strings.Clone(ev.AccountID), strings.Clone(ev.CorrelationID)
	return rec, kept
}

func (f *Fold) letter(rec Record, d *event.Decoded, a *account, v Verdict) {
	l := DeadLetter{
		Record: rec, Class: v.Class, Message: v.Message,
		AccountID: d.Event.AccountID, EventID: d.Event.ID, CorrelationID: d.Event.CorrelationID, Received: d.Event.Version,
	}
	if a != nil {
		l.Identified, l.Expected = true, new(a.version+1)
		if !a.lettered {
			a.lettered = true
			f.changes.Bases = append(f.changes.Bases, f.baseOf(a))
			f.touch(a)
		}
	}
	f.changes.Letters = append(f.changes.Letters, l)
	f.changes.Bytes += parkedBytes + rec.Bytes()
}

// park keeps the event for when its turn comes. Of two events for one version
// the first stays.
func (f *Fold) park(a *account, rec Record, d *event.Decoded, class event.Class) {
	version, h := d.Event.Version, f.holdOf(a)
	if h.pending[version] != nil || h.waits && h.next == version {
		return
	}
	if expected := version == a.version+1; h.parked >= f.opts.ParkLimit && !expected { // the hole itself is always kept
		h.overflowed = true
		f.touch(a)
		f.changes.Overflows = append(f.changes.Overflows,
			Overflow{AccountID: f.idOf(a), Version: version, Expected: a.version + 1})
		return
	}
	if h.pending == nil {
		h.pending = map[int64]*Parked{}
	}
	h.parked++
	h.pending[version] = &Parked{Record: rec, Decoded: *d, Class: class, Expected: a.version + 1}
	f.changes.Bytes += parkedBytes
	f.touch(a)
}

func (f *Fold) advance(a *account, next State) {
	f.cache.hot.set(a, next)
	f.touch(a)
}

func (f *Fold) touch(a *account) {
	if !a.dirty {
		a.dirty = true
		f.dirty = append(f.dirty, a)
		f.changes.Bytes += dirtyBytes
	}
}
