package projection

import "projector/projection/event"

// NewDeadLetter is the dead letter of a record that a projection without versions
// cannot take in. It holds nothing of the fetch the record came in.
func NewDeadLetter(rec Record, d *event.Decoded, class event.Class, message string) DeadLetter {
	rec, kept := keep(rec, d)
	ev := &kept.Event
	return DeadLetter{
		Record: rec, Class: class, Message: message, Identified: d.Identity == event.Identified,
		AccountID: ev.AccountID, EventID: ev.ID, CorrelationID: ev.CorrelationID, Received: ev.Version,
	}
}

// Standing is how an event that was dead-lettered stands to the read model now.
type Standing struct {
	Passed  bool    // the read model has it, or has passed it
	Waiting bool    // it is behind a hole
	Verdict Verdict // what judging it now would give, when neither of these
}

// StandingTo is how an event stands to its account.
func (s State) StandingTo(version int64, d *event.Decoded) Standing {
	switch {
	case version <= s.Version:
		return Standing{Passed: true}
	case version > s.Version+1:
		return Standing{Waiting: true}
	case d.Identity != event.Identified: // its ids are known from when it failed only
		return Standing{}
	}
	_, v := s.Judge(d, true)
	return Standing{Verdict: v}
}
