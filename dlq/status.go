package dlq

import (
	"projector/projection"
	"projector/projection/event"
)

// Status is how a dead letter stands to the read model as it is now. Its names
// are public surface.
type Status string

// The statuses.
const (
	// Open: it needs a person. Its account or version cannot be read, its turn has
	// come and it cannot be applied, or another event was applied in its place.
	Open Status = "open"
	// Ready: its turn has come, and it would be applied now.
	Ready Status = "ready"
	// Waiting: it is behind a hole.
	Waiting Status = "waiting"
	// Resolved: the read model has passed it.
	Resolved Status = "resolved"
	// Discarded: a person has said that nothing is to be done about it.
	Discarded Status = "discarded"
)

// Statuses lists all statuses, for validating filters.
func Statuses() []Status { return []Status{Open, Ready, Waiting, Resolved, Discarded} }

// Subject is which event of which account a dead letter is about: as it can be
// read now, else as it could be read when it failed. ok is false when it never
// could.
func (e *Entry) Subject(d *event.Decoded) (account string, version int64, ok bool) {
	switch {
	case d.Identity == event.Identified:
		return d.Event.AccountID, d.Event.Version, true
	case e.AccountID != "" && e.EventID != "" && e.Received != nil:
		return e.AccountID, *e.Received, true
	default:
		return "", 0, false
	}
}

// StatusOf tells the status of an entry that was not discarded. d is what its
// value decodes to now, s how the Subject stands to the read model.
//
// A conflict stays open until it is discarded: its version is passed by nature,
// and it was not this event that was applied. What PostgreSQL has refused stays
// open while its turn is: whether it would be applied now, only a replay can tell.
func (e *Entry) StatusOf(d *event.Decoded, s projection.Standing) Status {
	_, _, known := e.Subject(d)
	switch {
	case !known || e.Class == event.VersionConflict:
		return Open
	case s.Passed:
		return Resolved
	case s.Waiting:
		return Waiting
	case e.Truncated || d.Identity != event.Identified || e.Class == event.RejectedByDatabase:
		return Open
	case s.Verdict.Outcome == projection.DeadLettered:
		return Open
	}
	return Ready
}
