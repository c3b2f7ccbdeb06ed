// Package pace decides how much one write contains (Size), and when to give up an attempt
// without answers (Attempt). So writes make progress even if the database is very slow. See
// docs/decisions/0020.
package pace

import "time"

// After a failed write of n events or rows, the next write may contain at most n/shrink, but at
// least 1. After seven failures, even the largest write has become a single event.
const shrink = 8

// After a quick write of n events or rows, the next write may contain up to grow*n.
const grow = 2

// Size is the number of events or rows that the next write may contain. This number is adjusted
// after each write, so that a write takes about the target time:
//
//	quick ─────────────► twice as much
//	longer than target ► what fits into the target time at the measured speed
//	failed ────────────► an eighth, at least 1
//
// A Size is a plain value that has neither a clock nor a lock. NewSize makes a Size.
type Size struct {
	limit, most int
	target      time.Duration
}

// NewSize returns a Size. The parameter first is how many events or rows the first write may
// contain, and most is the maximum for every write. A write should take at most the time target.
func NewSize(first, most int, target time.Duration) Size {
	return Size{limit: max(1, min(first, most)), most: max(1, most), target: target}
}

// Limit is how much the next write may contain, at least 1.
func (s *Size) Limit() int { return s.limit }

// Wrote notes a successful write of n events or rows. A slow write lowers the limit to what fits
// into the target time. A quick write may raise it, to at most 2*n and at most half of what fits
// into the target time.
func (s *Size) Wrote(n int, took time.Duration) {
	switch {
	case n <= 0:
	case took > s.target:
		s.limit = max(1, min(s.most, s.fitting(n, took)))
	case 2*took <= s.target:
		s.limit = max(s.limit, min(grow*n, s.fitting(n, took)/2, s.most))
	}
}

// Failed notes a failed write of n events or rows. The parameter done is how many of them were
// written within took, or 0 if this is not known.
func (s *Size) Failed(n, done int, took time.Duration) {
	if n <= 0 {
		return
	}
	limit := min(s.limit, n) / shrink // n exceeds the limit if related entries were not divided
	if done > 0 {
		limit = min(limit, s.fitting(done, took))
	}
	s.limit = max(1, limit)
}

// fitting returns how much can be written in the target time at the speed of n in took.
func (s *Size) fitting(n int, took time.Duration) int {
	return int(float64(n) * float64(s.target) / float64(max(took, 1)))
}
