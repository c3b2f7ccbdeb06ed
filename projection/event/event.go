// Package event defines account events and decodes them from the wire formats of Kafka messages.
//
// A Format turns the bytes of one Kafka message into an Event or into a Fault that names the class,
// the field and the reason. Decoding uses no clock and no I/O, and its result does not depend on
// other messages.
package event

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Event is one decoded account event.
type Event struct {
	ID            string
	AccountID     string
	CorrelationID string // empty if neither the payload nor a header has one
	TypeName      string // the contract's name, or the producer's if the type is Ignorable, Unknown or refused for its amount
	Type          Type
	Version       int64
	OccurredAt    int64 // microseconds since the Unix epoch, UTC
	Amount        int64 // minor units of Currency, not negative; 0 if the type has no amount
	Currency      Currency
	Data          string // for a Custom type: a JSON object, {} if there is none
}

// Signed returns the amount that the event adds to the balance, in minor units of Currency.
func (e *Event) Signed() int64 { return int64(e.Type.meaning().money) * e.Amount }

// Header is one Kafka record header. Value is nil if the header's value is null.
type Header struct {
	Key   string
	Value []byte
}

// Message contains the parts of a Kafka record that its producer wrote. Value is nil for a
// tombstone.
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
	// Unidentified means that the event id, the account id or the version could not be read. The
	// ones that could be read, and the correlation id, are set for the dead letter.
	Unidentified Identity = iota
	// Identified means that Event.ID, AccountID and Version are set and valid.
	Identified
)

// Decoded is the result of decoding one message. It is a tombstone, an event to skip, a fault, or a
// complete Event.
type Decoded struct {
	Event    Event
	Identity Identity
	// Tombstone means that the message has a null value.
	Tombstone bool
	// Skip means that the event has an ignorable type and that its identity cannot be read. The
	// event has no effect.
	Skip bool
	// Fault says why the message cannot be applied. If the event is Identified, its ID, AccountID
	// and Version are valid even with a fault. With these three values a duplicate is recognised,
	// and a duplicate has no effect.
	Fault *Fault
}

// Keep copies the texts of the event, so that they do not refer to the memory of the message.
func (d *Decoded) Keep() {
	ev := &d.Event
	for _, text := range []*string{&ev.ID, &ev.AccountID, &ev.CorrelationID, &ev.TypeName, &ev.Data} {
		*text = strings.Clone(*text)
	}
}

// Format decodes the messages of one wire format. It is safe for concurrent use.
type Format interface {
	// Decode reads one message into d and overwrites all of d. Strings in d may refer to the
	// message's bytes, which must not change afterwards. The caller must clone a string that is
	// used longer than the message.
	Decode(m Message, d *Decoded)
}

// Class is the reason why a record was dead-lettered. The names are part of the public interface,
// because a DLQ header, a metric's label and a filter of the dlq commands contain them.
type Class string

// These are the classes, in the order in which the event contract lists them.
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

// Classes returns all classes in order.
func Classes() []Class {
	return []Class{
		MalformedPayload, UnknownEventType, InvalidAmount, UnsupportedCurrency, CurrencyMismatch,
		VersionGap, VersionConflict, BalanceOverflow, RejectedByDatabase,
	}
}

// Fault says why a message cannot be applied. Its text names the field and the rule. It never
// contains the value, which may be an amount or private.
type Fault struct {
	Class  Class
	Field  string // JSON path or header, e.g. "data.amount"; empty for the whole value
	Reason string
	// ByProducer means that the producer wrote a value that breaks a rule. Another --format, topic
	// or schema would not help.
	ByProducer bool
}

func (f *Fault) Error() string {
	if f.Field == "" {
		return f.Reason
	}
	return f.Field + ": " + f.Reason
}

// Options contains the operator's settings for events.
type Options struct {
	// FirstVersion is the smallest version that an event may have.
	FirstVersion int64
	// Currencies is the set of accepted currencies. The zero value accepts all.
	Currencies CurrencySet
	// Ignore names event types that only advance an account's version.
	Ignore []string
	// CustomTypes names the event types that a custom projection reads. Their data may be any JSON
	// object, and all other types are ignored. Without names, the types of the contract are read.
	CustomTypes []string
	// Mapping says how the events of another producer are read.
	Mapping Mapping
	// Debezium is used only by the format debezium-outbox.
	Debezium DebeziumOptions
}

func (o *Options) typeNames() typeNames {
	if len(o.CustomTypes) > 0 {
		return customTypeNames(o.CustomTypes, &o.Mapping, o.Ignore)
	}
	return newTypeNames(&o.Mapping, o.Ignore)
}

// FormatJSON is the name of the default format.
const FormatJSON = "json"

// formats contains the wire formats by their names in --format.
var formats = map[string]func(Options) (Format, error){
	FormatJSON:        newJSON,
	FormatDebezium:    newDebezium,
	FormatCloudEvents: newCloudEvents,
}

// Formats returns the names that New accepts, in alphabetical order.
func Formats() []string {
	return slices.Sorted(maps.Keys(formats))
}

// New returns the wire format with the given name. If the name is unknown, the error lists the
// known names.
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
	// Resolve returns the format of a message. An error means that the message cannot be read yet,
	// so the caller must retry without a limit.
	Resolve(ctx context.Context, m Message) (Format, error)
}

// Always is the Resolver that returns one format for all messages.
func Always(f Format) Resolver { return always{f} }

type always struct{ format Format }

// Resolve implements Resolver.
func (a always) Resolve(context.Context, Message) (Format, error) { return a.format, nil }
