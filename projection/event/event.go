// Package event holds account events and the wire formats they arrive in.
//
// A Format turns the bytes of one Kafka message into an Event or into a Fault
// that names the class, the field and the reason. Decoding is pure: no clock,
// no I/O, no shared state.
package event

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Event is one decoded account event.
type Event struct {
	ID            string
	AccountID     string
	CorrelationID string // empty when neither payload nor header carries one
	TypeName      string // the contract's name; of an Ignorable or Unknown type, the producer's
	Type          Type
	Version       int64
	OccurredAt    int64 // microseconds since the Unix epoch, UTC
	Amount        int64 // minor units of Currency, > 0; 0 when the type carries none
	Currency      Currency
	Data          string // of a Custom type: a JSON object, {} when there is none
}

// Signed returns what the event adds to the balance, in minor units of Currency.
func (e *Event) Signed() int64 { return int64(e.Type.meaning().money) * e.Amount }

// Header is one Kafka record header. Value is nil when the header's value is null.
type Header struct {
	Key   string
	Value []byte
}

// Message has the parts of a Kafka record that its producer wrote. Value is nil for a tombstone.
type Message struct {
	Key     []byte
	Value   []byte
	Headers []Header
	// Entry is the number of the event in an array, from 1. It is 0 if the value is one event.
	Entry int32
}

// Identity says how much of a message could be read.
type Identity uint8

const (
	// Unidentified: event id, account id or version could not be read. Those that could, and the
	// correlation id, are set for the dead letter.
	Unidentified Identity = iota
	// Identified: Event.ID, AccountID and Version are set and valid.
	Identified
)

// Decoded is the result of a Format for one message: Tombstone, Skip, a Fault, or else a whole
// Event.
type Decoded struct {
	Event    Event
	Identity Identity
	// Tombstone: the message has a null value.
	Tombstone bool
	// Skip: an event of an ignorable type whose identity cannot be read. It has no effect.
	Skip bool
	// Fault is why the message cannot be applied. If the event is Identified, its ID, AccountID and
	// Version are valid nevertheless: a duplicate has no fault.
	Fault *Fault
}

// Format decodes the messages of one wire format. It is safe for concurrent use.
type Format interface {
	// Decode reads one message into d, overwriting all of it. Strings in d may refer to the
	// message's bytes, which must never change afterwards. Clone a string that is to outlive the
	// message.
	Decode(m Message, d *Decoded)
}

// Class names why a record was dead-lettered. The names are public: in a DLQ header, a metric's
// label and a filter of the dlq commands.
type Class string

// The classes, in the order of the contract.
const (
	MalformedPayload    Class = "malformed_payload"
	UnknownEventType    Class = "unknown_event_type"
	InvalidAmount       Class = "invalid_amount"
	UnsupportedCurrency Class = "unsupported_currency"
	CurrencyMismatch    Class = "currency_mismatch"
	VersionGap          Class = "version_gap"
	VersionConflict     Class = "version_conflict"
	BalanceOverflow     Class = "balance_overflow"
	RejectedByDatabase  Class = "rejected_by_database"
)

// Classes lists every class.
func Classes() []Class {
	return []Class{
		MalformedPayload, UnknownEventType, InvalidAmount, UnsupportedCurrency, CurrencyMismatch,
		VersionGap, VersionConflict, BalanceOverflow, RejectedByDatabase,
	}
}

// Fault is why a message cannot be applied. Its text names the field and the rule. It never has the
// value, which may be an amount or private.
type Fault struct {
	Class  Class
	Field  string // JSON path or header, e.g. "data.amount"; empty when the whole value is meant
	Reason string
	// ByProducer: the producer wrote a value that breaks a rule. No other --format, topic or schema
	// would help.
	ByProducer bool
}

// Error implements error.
func (f *Fault) Error() string {
	if f.Field == "" {
		return f.Reason
	}
	return f.Field + ": " + f.Reason
}

// Options are what an operator can set about events.
type Options struct {
	// FirstVersion is the smallest version that an event may have.
	FirstVersion int64
	// Currencies are the accepted ones; the zero value accepts all.
	Currencies CurrencySet
	// Ignore names event types that only advance an account's version.
	Ignore []string
	// CustomTypes names the event types that a custom projection reads. Their data may be any JSON object,
	// and all other types are ignored. Without names, the contract's types are read.
	CustomTypes []string
	// Mapping says how another producer's events are read.
	Mapping Mapping
	// Debezium is for the format debezium-outbox only.
	Debezium DebeziumOptions
}

func (o *Options) typeNames() typeNames {
	if len(o.CustomTypes) > 0 {
		return ownTypeNames(o.CustomTypes, &o.Mapping, o.Ignore)
	}
	return newTypeNames(&o.Mapping, o.Ignore)
}

// FormatJSON is the name of the default format.
const FormatJSON = "json"

// formats are the wire formats by their names in --format.
var formats = map[string]func(Options) (Format, error){
	FormatJSON:        newJSON,
	FormatDebezium:    newDebezium,
	FormatCloudEvents: newCloudEvents,
}

// Formats lists the names New knows, in alphabetical order.
func Formats() []string {
	names := make([]string, 0, len(formats))
	for name := range formats {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// New returns the wire format of that name. The error for an unknown name lists the known ones.
func New(name string, opts Options) (Format, error) {
	newFormat, ok := formats[name]
	if !ok {
		return nil, fmt.Errorf("unknown event format %q (known: %s)", name, strings.Join(Formats(), ", "))
	}
	f, err := newFormat(opts)
	if err != nil || opts.Mapping.Envelope.Entries == nil {
		return f, err
	}
	return &seriesFormat{f.(opener)}, nil //nolint:forcetypeassert // all formats are openers
}

// Resolver finds the format that reads a message. If messages name their schema, it may have to
// fetch the schema.
type Resolver interface {
	// Resolve returns the format of a message. An error means that the message cannot be read yet:
	// the caller has to try again, without a limit.
	Resolve(ctx context.Context, m Message) (Format, error)
}

// Always is the Resolver that returns one format for all messages.
func Always(f Format) Resolver { return always{f} }

type always struct{ format Format }

// Resolve implements Resolver.
func (a always) Resolve(context.Context, Message) (Format, error) { return a.format, nil }
