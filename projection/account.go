package projection

import (
	"math"

	"projector/projection/event"
)

// NoTime means that the time of an event is not known.
const NoTime = math.MinInt64

// LastVersion is the highest version that an event can have. No version follows it.
const LastVersion = math.MaxInt64

// Account is the state of an account after its events up to Version. Its methods Apply, Heal and
// Skip do not change it, but return the new state.
type Account struct {
	Version  int64 // first version - 1 until an event is applied
	Balance  int64 // minor units of Currency; credits - debits
	Currency event.Currency
	Closed   bool
	// LastEventID is the id of the event whose version is the account's Version. It is empty before
	// the first event. It is also empty if the event was skipped without its id, or if the
	// account's imported initial state did not contain the id.
	LastEventID string
	LastEventAt int64 // microseconds since the Unix epoch, or NoTime
}

// NewAccount returns an account without events. The version of its first event must be
// firstVersion.
func NewAccount(firstVersion int64) Account {
	return Account{Version: firstVersion - 1, LastEventAt: NoTime}
}

// Outcome says what was done with one record. Its names are part of the public interface.
type Outcome uint8

// Only records with the outcome Applied or Ignored can change an account.
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

// String returns the outcome's label in metrics.
func (o Outcome) String() string {
	return [outcomes]string{"applied", "duplicate", "ignored", "dead_lettered"}[o]
}

// Decision says what happens with one record. Class and Message are set if the outcome is
// DeadLettered.
type Decision struct {
	Outcome Outcome
	Class   event.Class
	Message string
	// ByProducer is copied from the event's Fault.
	ByProducer bool
}

// Refused returns the decision about an event that has a fault.
func Refused(f *event.Fault) Decision {
	return Decision{Outcome: DeadLettered, Class: f.Class, Message: f.Error(), ByProducer: f.ByProducer}
}

func deadLettered(class event.Class, message string) Decision {
	return Decision{Outcome: DeadLettered, Class: class, Message: message}
}

// Apply decides what a decoded message does to the account. It returns the account after the
// message. Only an applied or ignored event can change the account. The parameter reprocessed is
// true if the record was processed before. In this case an event with an applied version is always
// a duplicate, even if its id is different.
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

// ApplyRefused is like Apply, but for an event that PostgreSQL has refused to write. If the event
// would change the account, it is dead-lettered with the given reason.
func (a Account) ApplyRefused(d *event.Decoded, reprocessed bool, reason string) (Account, Decision) {
	next, decision := a.Apply(d, reprocessed)
	if next.Version == a.Version {
		return a, decision
	}
	return a, deadLettered(event.RejectedByDatabase, reason)
}

// decideApplied decides about an event whose version was already applied.
func (a Account) decideApplied(ev *event.Event, reprocessed bool) Decision {
	conflict := ev.Version == a.Version && a.LastEventID != "" && ev.ID != a.LastEventID
	if conflict && !reprocessed {
		return deadLettered(event.VersionConflict, "another event was applied at this version")
	}
	return Decision{Outcome: Duplicate}
}

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

// Parked is an event that is stored in the database until the missing versions before it are
// applied. If the event has the account's next version but cannot be applied, the account waits
// until a person corrects the event or skips its version.
type Parked struct {
	Record  Record
	Decoded event.Decoded // account, event id and version are valid
	Class   event.Class   // version_gap, or the reason why the event cannot be applied
	// Expected is the account's version + 1 when the event was parked.
	Expected int64
}

// HealResult says what happens with a parked event.
type HealResult uint8

// Only HealApplied changes the account.
const (
	HealPassed  HealResult = iota // the account has passed its version, so it is removed
	HealApplied                   // it is applied
	HealFailed                    // it is next but cannot be applied: the account waits for a correction
	HealWaits                     // it waits for an earlier version, or it has failed before
)

// Heal applies a parked event if it has the account's next version. The parameter refusal is the
// reason why PostgreSQL refused to write the event, or empty. The decision is set only if the
// result is HealApplied or HealFailed.
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

// Skip skips a version at a person's request. It stores the id of the skipped event if the id is
// known. It returns false if the version is not the account's next one.
func (a Account) Skip(version int64, eventID string) (Account, bool) {
	if a.Version == LastVersion || version != a.Version+1 {
		return a, false
	}
	a.Version, a.LastEventID = version, eventID
	return a, true
}

// StoredAccount is the state of an account in the database.
type StoredAccount struct {
	ID      string
	Exists  bool // the account has a balance row
	Account Account
	// Parked is the number of parked events above Account.Version. NextParked is the lowest version
	// of these events. NextClass is the class of the event with the version NextParked. ParkedBytes
	// is the size of the events' keys, values and stored headers.
	Parked      int64
	ParkedBytes int64
	NextParked  int64
	NextClass   event.Class
	// Overflowed means that more events of the account had to be parked than the limit allows. The
	// events above the limit were dead-lettered but not parked.
	Overflowed bool
}

// ReplayStatus is the current status of an event that was dead-lettered.
type ReplayStatus struct {
	Passed   bool     // the account is at the event's version or a later one
	Waiting  bool     // the event waits for an earlier one
	Decision Decision // decision if the event were applied now; not set if Passed or Waiting
}

// ReplayStatusOf returns the status of an event of this account.
func (a Account) ReplayStatusOf(version int64, d *event.Decoded) ReplayStatus {
	switch {
	case version <= a.Version:
		return ReplayStatus{Passed: true}
	case version > a.Version+1:
		return ReplayStatus{Waiting: true}
	case d.Identity != event.Identified: // its version comes from the dead letter
		return ReplayStatus{}
	}
	_, decision := a.Apply(d, true)
	return ReplayStatus{Decision: decision}
}
