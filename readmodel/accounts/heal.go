package accounts

import (
	"context"
	"slices"

	"projector/projection"
	"projector/projection/event"
)

// HealPiece is the largest number of parked events that are read and applied at a time. If the
// account has no more parked events than this, the transaction that fills the gap applies all that
// can be applied. The exception is a transaction that is limited to one event.
const HealPiece = 1000

// healGlance is the largest number of parked events in the first read of an account. Often another
// gap follows soon, and then a larger read would return events after that gap, which cannot be
// applied.
const healGlance = 8

// healMore returns the size of the next piece, after a piece that was applied completely.
func healMore(piece int) int { return min(4*piece, HealPiece) }

// Healing returns the accounts whose next event is parked in the database.
func (f *Fold) Healing() []string {
	ids := make([]string, len(f.healing))
	for i, a := range f.healing {
		ids[i] = f.idOf(a)
	}
	return ids
}

// Heal applies parked events of accounts whose gap was filled. It stops when limit or HealPiece
// events are pending.
func (f *Fold) Heal(ctx context.Context, limit int) error {
	defer f.keepLast()
	for _, a := range slices.Clone(f.healing) {
		room := min(limit, HealPiece) - f.Pending().Events
		if room <= 0 || f.breaker.Open() {
			break
		}
		if err := f.heal(ctx, a, room, projection.LastVersion); err != nil {
			return err
		}
	}
	return nil
}

// HealShortQueues applies the parked events of accounts whose gap was just filled. A queue of at
// most HealPiece events is applied up to the next gap. Events of a longer queue are applied until
// limit events are pending.
func (f *Fold) HealShortQueues(ctx context.Context, limit int) error {
	defer f.keepLast()
	for _, a := range slices.Clone(f.healing) {
		room := HealPiece
		if long := f.queues[a].parked > HealPiece; long {
			room = limit - f.Pending().Events
		}
		if err := f.healUpTo(ctx, a, room); err != nil {
			return err
		}
	}
	return nil
}

// healBefore applies the parked events of an account before its next record is folded. It returns
// false if limit events are pending and the record has to wait. The parked events count towards
// limit, so a flush that PostgreSQL refuses can be reduced to one event.
func (f *Fold) healBefore(ctx context.Context, a *account, version int64, limit int) (bool, error) {
	through := int64(projection.LastVersion)
	if f.opts.Replay { // the record is decided first, because it may correct the parked event of its version
		through = version - 1
	}
	for piece := healGlance; a.healing && a.version < through; piece = healMore(piece) {
		room := limit - f.Pending().Events
		if room <= 0 {
			return false, nil
		}
		if err := f.heal(ctx, a, min(room, piece), through); err != nil {
			return false, err
		}
	}
	return f.Pending().Events < limit, nil
}

// healUpTo applies up to room parked events after a gap was filled. Readers then see the events of
// a short queue at the same time as the event that filled the gap.
func (f *Fold) healUpTo(ctx context.Context, a *account, room int) error {
	for piece := healGlance; room > 0 && a.healing; piece = healMore(piece) {
		pending := f.Pending().Events
		if err := f.heal(ctx, a, min(room, piece), projection.LastVersion); err != nil {
			return err
		}
		room -= f.Pending().Events - pending
	}
	return nil
}

// heal reads up to room parked events of the account. It applies them in order, as long as the next
// one has the account's next version and this version is not above through.
func (f *Fold) heal(ctx context.Context, a *account, room int, through int64) error {
	parked, more, err := f.store.Parked(ctx, f.idOf(a), a.version, min(room, HealPiece))
	if err != nil {
		return err
	}
	f.queueOf(a).inDatabase = false
	for i := range parked {
		if !f.healWith(a, &parked[i], through) {
			more = false
			break
		}
	}
	if more {
		return nil
	}
	f.endHealing(a)
	f.applyFitting(a)
	return nil
}

// endHealing removes an account from f.healing. Accounts heal in the order of the list, so the
// account is near its start and is found quickly.
func (f *Fold) endHealing(a *account) {
	a.healing = false
	at, last := slices.Index(f.healing, a), len(f.healing)-1
	if at < 0 {
		return
	}
	f.healing[at] = f.healing[last]
	f.healing[last] = nil
	f.healing = f.healing[:last]
}

// healWith tries to apply one parked event that is stored in the database, if its version is not
// above through. It returns false if no later event can be applied now.
func (f *Fold) healWith(a *account, p *projection.Parked, through int64) bool {
	f.choose(a, p)
	version, class := p.Decoded.Event.Version, p.Class
	f.applyFitting(a)
	if version <= through {
		switch f.healNext(a, p) {
		case projection.HealPassed, projection.HealApplied:
			return true
		case projection.HealFailed, projection.HealWaits:
		}
	}
	q := f.queueOf(a)
	q.inDatabase, q.next, q.nextClass = true, version, p.Class
	if p.Class != class && !f.opts.Replay {
		f.changes.Reclassed = append(f.changes.Reclassed, Reclassed{AccountID: f.idOf(a), Version: version, Class: p.Class})
	}
	return false
}

// choose decides between the parked event of the database and events of the same version that are
// not written yet. The event of the database stays, unless it cannot be applied and the newer event
// only waits for earlier versions.
func (f *Fold) choose(a *account, p *projection.Parked) {
	q, version := f.queueOf(a), p.Decoded.Event.Version
	if later := q.pending[version]; later != nil {
		delete(q.pending, version)
		q.parked--
		if givesWay(p.Class, later.Class) {
			f.replace(a, q, later)
		} else {
			q.bytes -= sizeOf(&later.Record)
		}
	}
	if later := q.instead[version]; later != nil && givesWay(p.Class, later.Class) {
		*p = *later
	}
}

// applyFitting applies pending parked events as long as one of them is the account's next event. If
// the next event is parked in the database, the account is marked as healing.
func (f *Fold) applyFitting(a *account) {
	q := f.queues[a]
	if q == nil {
		return
	}
	q.forget(a.version)
	for a.version < projection.LastVersion {
		next := a.version + 1
		if q.inDatabase && q.next <= next {
			f.startHealing(a, q)
			return
		}
		p := q.pending[next]
		if p == nil || f.healNext(a, p) != projection.HealApplied {
			return
		}
		delete(q.pending, next)
	}
}

// forget removes the parked event of a version that was applied from another record.
func (q *queue) forget(version int64) {
	if p := q.pending[version]; p != nil {
		delete(q.pending, version)
		q.parked--
		q.bytes -= sizeOf(&p.Record)
	}
}

func (f *Fold) startHealing(a *account, q *queue) {
	blocked := q.next == a.version+1 && q.nextClass != event.VersionGap
	if blocked || a.healing {
		return
	}
	if q.next == a.version { // this version was applied from another record
		q.parked--
	}
	a.healing = true
	f.healing = append(f.healing, a)
}

// healNext applies a parked event if it is the account's next one. An event that cannot be applied
// is dead-lettered with the class of its error. In a replay, the consumer dead-letters the event
// later.
func (f *Fold) healNext(a *account, p *projection.Parked) projection.HealResult {
	ref := eventRef{p.Record.Ref(), p.Decoded.Event.ID}
	next, decision, result := f.cache.hot.state(a).Heal(p, f.refusal(ref))
	switch result {
	case projection.HealApplied:
		f.last = ref
		f.advance(a, next)
		f.noteApplied(&p.Record, &p.Decoded.Event, decision)
		f.changes.Healed++
		q := f.queueOf(a)
		q.parked--
		q.bytes -= int64(len(p.Record.Key) + len(p.Record.Value)) // headers are smaller in the database
	case projection.HealFailed:
		p.Class = decision.Class
		if f.opts.Replay {
			break
		}
		f.last = ref
		f.deadLetter(p.Record, &p.Decoded, a, decision)
		f.changes.HealFailed++
		f.breaker.HealFailed(&p.Record, decision)
	case projection.HealPassed, projection.HealWaits:
	}
	return result
}
