package readmodel

import (
	"cmp"
	"slices"

	"projector/projection"
)

// counted has the breaker count the records of an AppendProjection. Which of them are
// duplicates, which do not count, is known only when they have been written. So they are
// counted then, in the order of the topic; unless the breaker may open meanwhile: then all
// that comes is looked up first, and counted at once.
type counted struct {
	breaker *projection.Breaker // nil: off
	exact   bool                // what comes is looked up
	later   []uncounted         // to be counted behind the write, with the entries
	roots   int                 // of them root dead letters
	blind   bool                // of the entries those from an offset on are to be counted then
	from    int64
}

// uncounted is a record that counts, behind the write.
type uncounted struct {
	offset int64
	root   *projection.Decision // nil: it is no root dead letter
}

// prepare is told how many of the records that come next may be dead-lettered. false: what
// is pending is to be written before them.
func (c *counted) prepare(suspects int) bool {
	if c.breaker.Open() {
		return false
	}
	c.exact = suspects > 0 && c.breaker.Near(c.roots+suspects)
	return !c.exact || !c.blind && len(c.later) == 0
}

// passed counts a record that is not written and not dead-lettered.
func (c *counted) passed(r *projection.DecodedRecord, outcome projection.Outcome) {
	switch {
	case c.breaker == nil:
	case c.exact, r.Reprocessed:
		c.breaker.Passed(r, outcome)
	case outcome != projection.Duplicate && !r.Decoded.Tombstone:
		c.later = append(c.later, uncounted{offset: r.Record.Offset})
	}
}

// taken counts a record that is to be written.
func (c *counted) taken(r *projection.DecodedRecord) {
	switch {
	case c.breaker == nil:
	case c.exact, r.Reprocessed:
		c.breaker.Passed(r, projection.Applied)
	case !c.blind:
		c.blind, c.from = true, r.Record.Offset
	}
}

// deadLettered counts a dead letter: here no account ever waits.
func (c *counted) deadLettered(r *projection.DecodedRecord, decision projection.Decision) {
	switch {
	case c.breaker == nil:
	case c.exact, r.Reprocessed:
		c.breaker.DeadLettered(r, decision, false)
	default:
		c.later = append(c.later, uncounted{r.Record.Offset, &decision})
		c.roots++
	}
}

// afterWriting is the breaker when the entries are written, but for those that were there already.
func (c *counted) afterWriting(entries []Entry) *projection.Breaker {
	if c.breaker == nil || !c.blind && len(c.later) == 0 {
		return c.breaker
	}
	b := c.breaker.Clone()
	ordered := c.roots > 0 || !b.Empty() // else their order means nothing
	all := slices.Clone(c.later)
	for i := range entries {
		switch e := &entries[i]; {
		case !c.blind || e.Offset < c.from || e.Before || e.Present != "":
		case ordered:
			all = append(all, uncounted{offset: e.Offset})
		default:
			b.Sound(e.Offset, 1)
		}
	}
	if ordered {
		slices.SortFunc(all, func(a, b uncounted) int { return cmp.Compare(a.offset, b.offset) })
	}
	for _, u := range all {
		if u.root != nil {
			b.Root(u.offset, *u.root)
		} else {
			b.Sound(u.offset, 1)
		}
	}
	return b
}
