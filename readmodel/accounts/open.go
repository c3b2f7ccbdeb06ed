package accounts

import "projector/projection"

// Open has an account the fold knows, see Read, and of which nothing is pending, start from
// an opening. Only one that is applied changes anything. It also returns how many parked
// events may heal after it.
func (f *Fold) Open(id string, o *projection.Opening) (projection.Decision, int64) {
	a := f.get(id)
	next, decision := f.cache.hot.state(a).Open(o)
	if decision.Outcome != projection.Applied {
		return decision, 0
	}
	f.advance(a, next)
	f.applyFitting(a)
	if !a.healing {
		return decision, 0
	}
	return decision, f.queues[a].parked
}
