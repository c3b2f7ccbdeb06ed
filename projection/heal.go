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
		ids[i] = a.ID
	}
	return ids
}

// IsHealing reports whether the account must heal before it can be judged.
func (f *Fold) IsHealing(id string) bool {
	if len(f.healing) == 0 {
		return false
	}
	a := f.cache.get(id)
	return a != nil && a.healing
}

// Heal applies parked events read from the database: those of the account above
// its Version, ascending and without omission. more says that the database holds
// further ones behind them.
func (f *Fold) Heal(id string, parked []Parked, more bool) {
	a := f.cache.get(id)
	a.NextParked, a.NextClass = 0, ""
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
	f.healing = slices.DeleteFunc(f.healing, func(b *account) bool { return b == a })
	f.settle(a)
}

// healWith applies one parked event; false when it does not fit or cannot be applied.
func (f *Fold) healWith(a *account, p *Parked) bool {
	f.settle(a)
	version, class := p.Decoded.Event.Version, p.Class
	if version <= a.State.Version {
		return true
	}
	if version == a.State.Version+1 && f.takeTurn(a, p) {
		return true
	}
	a.NextParked, a.NextClass = version, p.Class
	if p.Class != class {
		f.changes.Reclassed = append(f.changes.Reclassed, Reclassed{AccountID: a.ID, Version: version, Class: p.Class})
	}
	return false
}

// settle applies the pending parked events that fit, and notes the account as
// healing when the next one that fits waits in the database.
func (f *Fold) settle(a *account) {
	for {
		next := a.State.Version + 1
		if a.NextParked != 0 && a.NextParked <= next {
			f.startHealing(a)
			return
		}
		p := a.pending[next]
		if p == nil || !f.takeTurn(a, p) {
			return
		}
		delete(a.pending, next)
	}
}

func (f *Fold) startHealing(a *account) {
	blocked := a.NextParked == a.State.Version+1 && a.NextClass != event.VersionGap
	if blocked || a.healing {
		return
	}
	a.healing = true
	f.healing = append(f.healing, a)
}

// takeTurn applies a parked event whose version is next, or dead-letters it as
// the hole that it now is.
func (f *Fold) takeTurn(a *account, p *Parked) bool {
	if p.Class != event.VersionGap {
		return false
	}
	f.sole = p.Record.Place()
	next, v := f.judge(a, &p.Record, &p.Decoded, true)
	if v.Outcome == DeadLettered {
		p.Class = v.Class
		f.letter(p.Record, &p.Decoded, a, v)
		f.changes.Turned++
		return false
	}
	f.advance(a, next)
	f.changes.Healed++
	a.Parked--
	return true
}
