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
	Version     int64 // first version - 1 while no event has been applied
	Balance     int64 // minor units of Currency; credits - debits
	Currency    event.Currency
	Closed      bool
	LastEventID string // empty when unknown (a version skipped on purpose)
	LastEventAt int64  // microseconds since the Unix epoch, or NoTime
}

// NewAccount is an account that has had no event. Versions start at firstVersion.
func NewAccount(firstVersion int64) Account {
	return Account{Version: firstVersion - 1, LastEventAt: NoTime}
}

// Outcome is how one record was handled. Its names are public.
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

// Decision is what is decided about one record. Class and Message are set when the
// outcome is DeadLettered.
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

// Apply decides what the decoded message does to the account and returns the account
// after it; only an applied or ignored event changes it. reprocessed says that the record
// lies before the offset up to which the partition was processed at any time: another event
// in its place is history and no conflict.
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

// ApplyRefused is Apply for an event that PostgreSQL has refused to write, for the
// reason given: what would change the account is dead-lettered instead.
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

// Parked is an event in the database that waits until a gap is filled. It is the gap itself if
// it could not be applied when its turn came.
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
	HealPassed  HealResult = iota // its version has been applied: it is removed
	HealApplied                   // it is applied
	HealFailed                    // it cannot be applied, and is the gap itself from now on
	HealWaits                     // it waits for an earlier version, or was the gap already
)

// Heal applies a parked event if it is the next one. refusal is why PostgreSQL has refused
// to write it, empty when it has not. The decision says why it has failed.
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

// Skip skips a version on purpose, and notes the event's id if it is known. It returns false
// unless the version is exactly the next one.
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
	// Parked counts the account's parked events above Account.Version; when there are any,
	// NextParked is the lowest of their versions and NextClass its class. ParkedBytes is their
	// size: key, value, and headers as they are stored.
	Parked      int64
	ParkedBytes int64
	NextParked  int64
	NextClass   event.Class
	// Overflowed: gap events beyond the park limit were dead-lettered only.
	Overflowed bool
}

// ReplayStatus is the current status of an event that was dead-lettered.
type ReplayStatus struct {
	Passed   bool     // the read model has it, or has passed it
	Waiting  bool     // for a gap to be filled
	Decision Decision // about applying it now, when neither of these
}

// ReplayStatusOf is the status of an event for the account.
func (a Account) ReplayStatusOf(version int64, d *event.Decoded) ReplayStatus {
	switch {
	case version <= a.Version:
		return ReplayStatus{Passed: true}
	case version > a.Version+1:
		return ReplayStatus{Waiting: true}
	case d.Identity != event.Identified: // its ids are known from when it failed only
		return ReplayStatus{}
	}
	_, decision := a.Apply(d, true)
	return ReplayStatus{Decision: decision}
}
