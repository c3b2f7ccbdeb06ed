package projection

import (
	"math"

	"projector/projection/event"
)

// NoTime stands for an event time that is not known.
const NoTime = math.MinInt64

// State is an account as its events up to Version have made it.
type State struct {
	Version     int64 // first version - 1 while no event has been applied
	Balance     int64 // minor units of Currency; credits - debits
	Currency    event.Currency
	Closed      bool
	LastEventID string // empty when unknown (a version passed over on purpose)
	LastEventAt int64  // microseconds since the Unix epoch, or NoTime
}

// NewState is the state of an account that has had no event. Versions start at
// firstVersion.
func NewState(firstVersion int64) State {
	return State{Version: firstVersion - 1, LastEventAt: NoTime}
}

// Outcome is what became of one record. Its names are public surface.
type Outcome uint8

// The outcomes of the contract.
const (
	Applied Outcome = iota
	Duplicate
	Ignored
	DeadLettered
	outcomes
)

// Outcomes lists all outcomes in order.
func Outcomes() []Outcome { return []Outcome{Applied, Duplicate, Ignored, DeadLettered} }

// String is the outcome's label.
func (o Outcome) String() string {
	return [outcomes]string{"applied", "duplicate", "ignored", "dead_lettered"}[o]
}

// Verdict is the answer for one record. Class and Message are set when the
// outcome is DeadLettered.
type Verdict struct {
	Outcome Outcome
	Class   event.Class
	Message string
}

func deadLettered(class event.Class, message string) Verdict {
	return Verdict{Outcome: DeadLettered, Class: class, Message: message}
}

// Judge decides what the decoded message does to the account and returns the
// state after it; only an applied or ignored event changes the state. judgedBefore
// says that the record lies below the partition's durable position: it was
// judged once already, so another event in its place is history and no conflict.
func (s State) Judge(d *event.Decoded, judgedBefore bool) (State, Verdict) {
	if d.Tombstone || d.Skip {
		return s, Verdict{Outcome: Ignored}
	}
	if d.Identity == event.Unidentified {
		return s, deadLettered(d.Fault.Class, d.Fault.Error())
	}
	ev := &d.Event
	if ev.Version <= s.Version {
		return s, s.judgeApplied(ev, judgedBefore)
	}
	if d.Fault != nil {
		return s, deadLettered(d.Fault.Class, d.Fault.Error())
	}
	if ev.Version > s.Version+1 {
		return s, deadLettered(event.VersionGap, "version is ahead of the account: events in between are missing")
	}
	return s.apply(ev)
}

// JudgeRefused is Judge for an event that PostgreSQL has refused to write, for the
// reason given: what would change the state is dead-lettered instead.
func (s State) JudgeRefused(d *event.Decoded, judgedBefore bool, reason string) (State, Verdict) {
	next, v := s.Judge(d, judgedBefore)
	if next.Version == s.Version {
		return s, v
	}
	return s, deadLettered(event.RejectedByDatabase, reason)
}

// judgeApplied judges a version that has been applied already.
func (s State) judgeApplied(ev *event.Event, judgedBefore bool) Verdict {
	conflict := ev.Version == s.Version && s.LastEventID != "" && ev.ID != s.LastEventID
	if conflict && !judgedBefore {
		return deadLettered(event.VersionConflict, "another event was applied at this version")
	}
	return Verdict{Outcome: Duplicate}
}

// apply applies the event at Version + 1.
func (s State) apply(ev *event.Event) (State, Verdict) {
	next := s
	next.Version, next.LastEventID, next.LastEventAt = ev.Version, ev.ID, ev.OccurredAt
	if ev.Type == event.Ignorable {
		return next, Verdict{Outcome: Ignored}
	}
	if !ev.Currency.IsZero() {
		if !s.Currency.IsZero() && s.Currency != ev.Currency {
			return s, deadLettered(event.CurrencyMismatch, "data.currency: differs from the account's currency")
		}
		next.Currency = ev.Currency
	}
	switch ev.Type.Status() {
	case event.Opened:
		next.Closed = false
	case event.Closed:
		next.Closed = true
	case event.Unchanged:
	}
	balance, fits := event.Add(s.Balance, ev.Signed())
	if !fits {
		return s, deadLettered(event.BalanceOverflow, "the new balance does not fit 64-bit minor units")
	}
	next.Balance = balance
	return next, Verdict{Outcome: Applied}
}

// Turn is what becomes of a parked event when it is looked at.
type Turn uint8

// The turns of a parked event.
const (
	TurnOver   Turn = iota // its version has been applied: it is done with
	TurnTaken              // it is applied
	TurnFailed             // it cannot be applied, and is the gap itself from now on
	TurnWaits              // it waits for an earlier version, or was the gap already
)

// Heal decides what becomes of a parked event. refusal is why PostgreSQL has refused to
// write it, empty when it has not. The verdict says why a turn has failed.
func (s State) Heal(p *Parked, refusal string) (State, Verdict, Turn) {
	version := p.Decoded.Event.Version
	switch {
	case version <= s.Version:
		return s, Verdict{}, TurnOver
	case version > s.Version+1, p.Class != event.VersionGap:
		return s, Verdict{}, TurnWaits
	}
	next, v := s.Judge(&p.Decoded, true)
	if refusal != "" {
		next, v = s.JudgeRefused(&p.Decoded, true, refusal)
	}
	if v.Outcome == DeadLettered {
		return s, v, TurnFailed
	}
	return next, v, TurnTaken
}

// Skip passes over version on purpose, taking the passed-over event's id if it is
// known. It answers false unless version is exactly the next one.
func (s State) Skip(version int64, eventID string) (State, bool) {
	if version != s.Version+1 {
		return s, false
	}
	s.Version, s.LastEventID = version, eventID
	return s, true
}
