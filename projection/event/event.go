// Package event holds account events and the wire formats they arrive in.
//
// A Format turns the bytes of one Kafka message into an Event or into a Fault
// that names the class, the field and the reason. Decoding is pure: no clock,
// no I/O, no shared state.
package event

// Event is one decoded account event.
type Event struct {
	ID            string
	AccountID     string
	CorrelationID string // empty when neither payload nor header carries one
	TypeName      string // the contract's name, of an Ignorable as it arrived; empty for one that is Unknown
	Type          Type
	Version       int64
	OccurredAt    int64 // microseconds since the Unix epoch, UTC
	Amount        int64 // minor units of Currency, > 0; 0 when the type carries none
	Currency      Currency
}

// Signed is what the event adds to the balance, in minor units of Currency; 0 when it
// moves no money.
func (e *Event) Signed() int64 { return int64(e.Type.meaning().money) * e.Amount }

// Header is one Kafka record header. Value is nil when the header's value is null.
type Header struct {
	Key   string
	Value []byte
}

// Message is what a Format decodes: the parts of a Kafka record that a
// producer wrote. Value is nil for a tombstone.
type Message struct {
	Key     []byte
	Value   []byte
	Headers []Header
}

// Identity says how much of a message could be read.
type Identity uint8

const (
	// Unidentified: event id, account id or version could not be read. Those that
	// could be read are set all the same, as evidence for a dead letter, and so is
	// the correlation id.
	Unidentified Identity = iota
	// Identified: Event.ID, AccountID and Version are set and keep their rules.
	Identified
)

// Decoded is the answer of a Format for one message. Exactly one of these holds:
// Tombstone, Skip, Fault != nil, or a whole Event.
type Decoded struct {
	Event    Event
	Identity Identity
	// Tombstone: the message has a null value.
	Tombstone bool
	// Skip: an ignorable event type whose identity cannot be read; it has no effect.
	Skip bool
	// Fault is why the message cannot be applied. With Identity == Identified the
	// event's ID, AccountID and Version are still valid (a duplicate is decided
	// before the fault counts).
	Fault *Fault
}

// Format decodes the messages of one wire format. Implementations are safe for
// concurrent use by several goroutines, or say otherwise.
type Format interface {
	// Decode reads one message into d, overwriting all of it. Strings in d may be
	// views of the message's bytes, which must never change afterwards; who keeps
	// a string longer than the message clones it.
	Decode(m Message, d *Decoded)
}
