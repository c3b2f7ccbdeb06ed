package outbox

import "time"

const (
	// longestPause is the longest time between two questions for one version.
	longestPause = time.Hour
	// maxWaits is how many accounts the schedule stores. If there are more, some are dropped and
	// are asked for again earlier than necessary.
	maxWaits = 50_000
)

// Schedule decides when an account is asked for again: after a pause that doubles after each
// failure, and at once if the account has a higher version. It is not safe for concurrent use.
type Schedule struct {
	first time.Duration
	waits map[string]*wait
}

// wait is what an account waits for, as it was asked for last.
type wait struct {
	version int64
	pause   time.Duration
	next    time.Time
	poison  string // digest of an event that came back and cannot be applied; empty: none did
}

// NewSchedule returns one whose first pause is first.
func NewSchedule(first time.Duration) *Schedule {
	return &Schedule{first: max(first, time.Second), waits: map[string]*wait{}}
}

// New reports whether an account that waits for a version was not asked for without success yet.
func (s *Schedule) New(account string, version int64) bool {
	w := s.waits[account]
	return w == nil || w.version != version
}

// Due reports whether an account that waits for a version is to be asked for now.
func (s *Schedule) Due(account string, version int64, now time.Time) bool {
	return s.New(account, version) || !now.Before(s.waits[account].next)
}

// Failed notes that the account still waits for a version that was asked for. poison is
// the digest of an event that came back and cannot be applied, empty when none did. It returns
// whether that is another one than the last time.
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

// Known reports whether the same poison came back for the version the last time.
func (s *Schedule) Known(account string, version int64, poison string) bool {
	w := s.waits[account]
	return w != nil && w.version == version && w.poison == poison
}

// Done forgets an account: all it was asked for was applied.
func (s *Schedule) Done(account string) { delete(s.waits, account) }

// forgetOne makes room for one more.
func (s *Schedule) forgetOne() {
	if len(s.waits) < maxWaits {
		return
	}
	for account := range s.waits {
		delete(s.waits, account)
		return
	}
}
