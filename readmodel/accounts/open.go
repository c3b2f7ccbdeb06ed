package accounts

import "projector/projection"

// Open starts an account from an opening balance. The caller must have called Read for the account,
// and the account must have no pending changes. Open also returns how many parked events may be
// applied afterwards.
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
