package outbox

import "time"

const (
	// longestPause is the longest pause that a failed query causes before the next query for the
	// same version.
	longestPause = time.Hour
	// maxWaits is the largest number of accounts in the schedule. If there are more, some accounts
	// are removed, and the next queries for them are sent earlier than necessary.
	maxWaits = 50_000
)

// Schedule decides when the outbox is queried again for an account. The pause doubles after each
// failed query, up to longestPause. If the account has reached a higher version since the last
// query, the next query is due at once. It is not safe for concurrent use.
type Schedule struct {
	first time.Duration
	waits map[string]*wait
}

// wait is the version that an account waited for at its last query.
type wait struct {
	version int64
	pause   time.Duration
	next    time.Time
	poison  string // digest of a returned event that cannot be applied; empty if there is none
}

// NewSchedule returns a Schedule. The parameter first is the first pause, which is at least one
// second.
func NewSchedule(first time.Duration) *Schedule {
	return &Schedule{first: max(first, time.Second), waits: map[string]*wait{}}
}

// NotFailed reports whether no query for this version of the account has failed yet.
func (s *Schedule) NotFailed(account string, version int64) bool {
	w := s.waits[account]
	return w == nil || w.version != version
}

// Due reports whether this version of the account should be queried now.
func (s *Schedule) Due(account string, version int64, now time.Time) bool {
	return s.NotFailed(account, version) || !now.Before(s.waits[account].next)
}

// Failed notes that the account still waits for a version after a query. The parameter poison is
// the digest of a returned event that cannot be applied, or empty. Failed reports whether poison is
// not empty and differs from the digest of the account's previous query.
func (s *Schedule) Failed(account string, version int64, poison string, now time.Time) (fresh bool) {
	w := s.waits[account]
	switch {
	case w == nil:
		s.forgetOne()
		w = &wait{version: version}
		s.waits[account] = w
	case w.version != version:
		*w = wait{version: version}
	}
	w.pause = min(max(s.first, 2*w.pause), longestPause)
	w.next = now.Add(w.pause)
	fresh = poison != "" && poison != w.poison
	w.poison = poison
	return fresh
}

// Known reports whether the last query for the version returned the same event that cannot be
// applied.
func (s *Schedule) Known(account string, version int64, poison string) bool {
	w := s.waits[account]
	return w != nil && w.version == version && w.poison == poison
}

// Done removes an account. It is called when the account has reached all versions that were
// queried.
func (s *Schedule) Done(account string) { delete(s.waits, account) }

// forgetOne removes one account if the schedule is full.
func (s *Schedule) forgetOne() {
	if len(s.waits) < maxWaits {
		return
	}
	for account := range s.waits {
		delete(s.waits, account)
		return
	}
}
