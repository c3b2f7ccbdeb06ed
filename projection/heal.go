package projection

import (
	"slices"

	"projector/projection/event"
)

// Healing lists the accounts whose next event waits in the database. Each must be
// fed with Heal until it is no longer listed before a record of it can be judged.
func (f *Fold) Healing() []string {
	ids := make([]string, len(f.healing))
	for i, a := range f.healing {
		ids[i] = f.idOf(a)
	}
	return ids
}

// FoundHealing reports whether the account of the i-th of the records given to Find must
// heal.
func (f *Fold) FoundHealing(i int) bool {
	a := f.lookup.found[i]
	return a != nil && a.healing
}

// IsHealing reports whether the account must heal before it can be judged.
func (f *Fold) IsHealing(id string) bool {
	if len(f.healing) == 0 {
		return false
	}
	a := f.get(id)
	return a != nil && a.healing
}

// Heal applies parked events read from the database: those of the account above
// its Version, ascending and without omission. more says that the database holds
// further ones behind them.
func (f *Fold) Heal(id string, parked []Parked, more bool) {
	a := f.get(id)
	h := f.holdOf(a)
	h.waits = false
	for i := range parked {
		if !f.healWith(a, &parked[i]) {
			more = false
			break
		}
	}
	if more {
		return
	}
	a.healing = false
	f.healed(a)
	f.settle(a)
}

// healed takes an account off the list. They heal in its order, so the account stands
// near the start: a hole in every account is no work that grows with its square.
func (f *Fold) healed(a *account) {
	at, last := slices.Index(f.healing, a), len(f.healing)-1
	if at < 0 {
		return
	}
	f.healing[at] = f.healing[last]
	f.healing[last] = nil
	f.healing = f.healing[:last]
}

// healWith looks at one parked event of the database; false when none behind it can be
// applied.
func (f *Fold) healWith(a *account, p *Parked) bool {
	version, class := p.Decoded.Event.Version, p.Class
	f.yield(a, version)
	f.settle(a)
	switch f.takeTurn(a, p) {
	case TurnOver, TurnTaken:
		return true
	case TurnFailed, TurnWaits:
	}
	h := f.holdOf(a)
	h.waits, h.next, h.nextClass = true, version, p.Class
	if p.Class != class {
		f.changes.Reclassed = append(f.changes.Reclassed, Reclassed{AccountID: f.idOf(a), Version: version, Class: p.Class})
	}
	return false
}

// yield gives up the pending parked event of a version that the database holds too: of
// two parked for one version the first stays.
func (f *Fold) yield(a *account, version int64) {
	if h := f.holdOf(a); h.pending[version] != nil {
		delete(h.pending, version)
		h.parked--
	}
}

// settle applies the pending parked events that fit, and notes the account as
// healing when the next one that fits waits in the database.
func (f *Fold) settle(a *account) {
	h := f.holds[a]
	if h == nil {
		return
	}
	for {
		next := a.version + 1
		if h.waits && h.next <= next {
			f.startHealing(a, h)
			return
		}
		p := h.pending[next]
		if p == nil || f.takeTurn(a, p) != TurnTaken {
			return
		}
		delete(h.pending, next)
	}
}

func (f *Fold) startHealing(a *account, h *hold) {
	blocked := h.next == a.version+1 && h.nextClass != event.VersionGap
	if blocked || a.healing {
		return
	}
	a.healing = true
	f.healing = append(f.healing, a)
}

// takeTurn applies a parked event if its turn has come and it can be applied. One that
// cannot is dead-lettered with the class that keeps it from that.
func (f *Fold) takeTurn(a *account, p *Parked) Turn {
	next, v, turn := f.cache.hot.state(a).Heal(p, f.refusal(p.Record.Place()))
	switch turn {
	case TurnTaken:
		f.sole = p.Record.Place()
		f.advance(a, next)
		f.changes.Healed++
		f.holdOf(a).parked--
	case TurnFailed:
		f.sole = p.Record.Place()
		p.Class = v.Class
		f.letter(p.Record, &p.Decoded, a, v)
		f.changes.Turned++
	case TurnOver, TurnWaits:
	}
	return turn
}
