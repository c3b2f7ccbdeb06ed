package projection

import (
	"math"

	"projector/projection/event"
)

// NoTime is an event time that is not known.
const NoTime = math.MinInt64

// Account is the result of an account's events up to Version. It is a value: Apply, Heal and
// Skip return the new account.
type Account struct {
	Version  int64 // first version - 1 while no event has been applied
	Balance  int64 // minor units of Currency; credits - debits
	Currency event.Currency
	Closed   bool
	// LastEventID is the id of the event that has the last version. It is empty before the first event,
	// and if the id is not known: the event was skipped, or an opening did not name it.
	LastEventID string
	LastEventAt int64 // microseconds since the Unix epoch, or NoTime
}

// NewAccount is an account that has had no event. Versions start at firstVersion.
func NewAccount(firstVersion int64) Account {
	return Account{Version: firstVersion - 1, LastEventAt: NoTime}
}

// Outcome is how one record was handled. Its names are part of the public interface.
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

// OutcomeCounts counts records by Outcome.
type OutcomeCounts [outcomes]int

// String is the outcome's label.
func (o Outcome) String() string {
	return [outcomes]string{"applied", "duplicate", "ignored", "dead_lettered"}[o]
}

// Decision is the decision about one record. Class and Message are set if the outcome is DeadLettered.
type Decision struct {
	Outcome Outcome
	Class   event.Class
	Message string
	// ByProducer is copied from the event's Fault.
	ByProducer bool
}

// Refused is the decision about an event that has a fault.
func Refused(f *event.Fault) Decision {
	return Decision{Outcome: DeadLettered, Class: f.Class, Message: f.Error(), ByProducer: f.ByProducer}
}

func deadLettered(class event.Class, message string) Decision {
	return Decision{Outcome: DeadLettered, Class: class, Message: message}
}

// Apply decides about a decoded message. It returns the account after the message, which only an
// applied or ignored event changes. reprocessed says that the partition was already processed
// beyond this record. Then another event of an applied version is a duplicate and no conflict.
func (a Account) Apply(d *event.Decoded, reprocessed bool) (Account, Decision) {
	if d.Tombstone || d.Skip {
		return a, Decision{Outcome: Ignored}
	}
	if d.Identity == event.Unidentified {
		return a, Refused(d.Fault)
	}
	ev := &d.Event
	if ev.Version <= a.Version {
		return a, a.decideApplied(ev, reprocessed)
	}
	if d.Fault != nil {
		return a, Refused(d.Fault)
	}
	if ev.Version > a.Version+1 {
		return a, deadLettered(event.VersionGap, "version is ahead of the account: events in between are missing")
	}
	return a.applyNext(ev)
}

// ApplyRefused is Apply for an event that PostgreSQL has refused to write. If the event would change
// the account, it is dead-lettered with the given reason instead.
func (a Account) ApplyRefused(d *event.Decoded, reprocessed bool, reason string) (Account, Decision) {
	next, decision := a.Apply(d, reprocessed)
	if next.Version == a.Version {
		return a, decision
	}
	return a, deadLettered(event.RejectedByDatabase, reason)
}

// decideApplied decides about an event whose version has been applied.
func (a Account) decideApplied(ev *event.Event, reprocessed bool) Decision {
	conflict := ev.Version == a.Version && a.LastEventID != "" && ev.ID != a.LastEventID
	if conflict && !reprocessed {
		return deadLettered(event.VersionConflict, "another event was applied at this version")
	}
	return Decision{Outcome: Duplicate}
}

// applyNext applies the event of Version + 1.
func (a Account) applyNext(ev *event.Event) (Account, Decision) {
	next := a
	next.Version, next.LastEventID, next.LastEventAt = ev.Version, ev.ID, ev.OccurredAt
	if ev.Type == event.Ignorable {
		return next, Decision{Outcome: Ignored}
	}
	if !ev.Currency.IsZero() {
		if !a.Currency.IsZero() && a.Currency != ev.Currency {
			return a, deadLettered(event.CurrencyMismatch, "data.currency: differs from the account's currency")
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
	balance, fits := event.Add(a.Balance, ev.Signed())
	if !fits {
		return a, deadLettered(event.BalanceOverflow, "the new balance does not fit 64-bit minor units")
	}
	next.Balance = balance
	return next, Decision{Outcome: Applied}
}

// Parked is an event in the database that waits until a gap is filled. If it could not be applied when
// it was the next event, the account waits for a correction of it.
type Parked struct {
	Record  Record
	Decoded event.Decoded // identified
	Class   event.Class   // version_gap, or what keeps the event from being applied
	// Expected is the account's version + 1 when the event was parked.
	Expected int64
}

// HealResult says what to do with a parked event.
type HealResult uint8

// The results of Heal.
const (
	HealPassed  HealResult = iota // its version was applied by now: it is removed
	HealApplied                   // it is applied
	HealFailed                    // it is the next event and cannot be applied: the account waits for a correction
	HealWaits                     // it waits for an earlier version, or it has failed before
)

// Heal applies a parked event if it is the next one. refusal is the reason why PostgreSQL has refused
// to write it, or empty. If the event fails, the decision has the reason.
func (a Account) Heal(p *Parked, refusal string) (Account, Decision, HealResult) {
	version := p.Decoded.Event.Version
	switch {
	case version <= a.Version:
		return a, Decision{}, HealPassed
	case version > a.Version+1, p.Class != event.VersionGap:
		return a, Decision{}, HealWaits
	}
	next, decision := a.Apply(&p.Decoded, true)
	if refusal != "" {
		next, decision = a.ApplyRefused(&p.Decoded, true, refusal)
	}
	if decision.Outcome == DeadLettered {
		return a, decision, HealFailed
	}
	return next, decision, HealApplied
}

// Skip skips a version at a person's request. It stores the event's id if that is known. It returns
// false unless the version is the next one.
func (a Account) Skip(version int64, eventID string) (Account, bool) {
	if version != a.Version+1 {
		return a, false
	}
	a.Version, a.LastEventID = version, eventID
	return a, true
}

// StoredAccount is what the database knows of an account.
type StoredAccount struct {
	ID      string
	Exists  bool // it has a balance row
	Account Account
	// Parked is the number of parked events above Account.Version. If there are any, NextParked is
	// their lowest version and NextClass the class of that event. ParkedBytes is the size of their
	// keys, values and stored headers.
	Parked      int64
	ParkedBytes int64
	NextParked  int64
	NextClass   event.Class
	// Overflowed means that events beyond the park limit were dead-lettered but not parked.
	Overflowed bool
}

// ReplayStatus is the current status of an event that was dead-lettered.
type ReplayStatus struct {
	Passed   bool     // the account is at its version or a later one
	Waiting  bool     // it waits for an earlier event
	Decision Decision // the decision if it were applied now; not set if Passed or Waiting
}

// ReplayStatusOf is the status of an event for the account.
func (a Account) ReplayStatusOf(version int64, d *event.Decoded) ReplayStatus {
	switch {
	case version <= a.Version:
		return ReplayStatus{Passed: true}
	case version > a.Version+1:
		return ReplayStatus{Waiting: true}
	case d.Identity != event.Identified: // its ids come from the dead letter, because it cannot be decoded
		return ReplayStatus{}
	}
	_, decision := a.Apply(d, true)
	return ReplayStatus{Decision: decision}
}
