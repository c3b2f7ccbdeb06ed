package event

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// FieldPath says where a field is and how the field is written there. It has at most one source,
// which is Path, Record, Outer, Constant, Join, Header or Key. If a Header or the Key contains JSON,
// Path may lead to the field in this JSON. If only Written is set, the field is at the place where the
// format has it. For FieldData, an empty FieldPath means the whole document.
type FieldPath struct {
	// Path leads to a member of the document, the outermost name first. The paths of FieldAmount
	// and FieldCurrency begin in the object of FieldData.
	Path []string
	// Record means that the value is not the text at Path, but the full name of the record (Avro) or
	// of the message type (Protobuf) there. At a oneof it is the name of the field that is set.
	// Without a Path it is the name of the event's own record or message type.
	Record   bool
	Header   string   // name of a header of the record
	Key      bool     // the record's key is the source
	Outer    []string // a path in the document around the envelope
	Constant string
	// Join contains the parts of a joined text. Separator is written between the parts, and only
	// the last part may contain it.
	Join      []FieldPath
	Separator byte
	// Optional means that this part of FieldEventType counts as the empty text if it is missing or
	// null. It is needed because events of different types may have different fields.
	Optional bool
	Written  Written
}

// Written is the JSON type in which an id, an event type or a version is written.
type Written uint8

// WrittenUsually means an integer for a version, and a text for an id or an event type.
const (
	WrittenUsually Written = iota
	WrittenText
	WrittenInteger
	WrittenBoolean
	writtenNumber // may have a fraction; for amounts and seconds, which check the digits later
)

// writtenNames must not change, because mapping files contain them.
var writtenNames = [...]string{WrittenText: "text", WrittenInteger: "integer", WrittenBoolean: "boolean", writtenNumber: "number"}

// String returns the name in a mapping file.
func (w Written) String() string { return writtenNames[w] }

// WrittenNamed returns the type with the given name.
func WrittenNamed(name string) (w Written, known bool) {
	for w := WrittenText; w <= WrittenBoolean; w++ {
		if w.String() == name {
			return w, true
		}
	}
	return WrittenUsually, false
}

// AmountForm says how an amount is written.
type AmountForm uint8

// Each example in the comments below is the amount 10.25 EUR.
const (
	AmountText   AmountForm = iota // a decimal as text, "10.25"
	AmountNumber                   // a JSON number, 10.25, read from its digits
	AmountMinor                    // an integer in minor units by ISO 4217, 1025
	AmountScaled                   // an integer with Scale decimals
	AmountUnits                    // an integer of whole units, and another of billionths at Nanos
)

// AmountShape says how amounts are written. The zero value is the form in the contract.
type AmountShape struct {
	Form  AmountForm
	Scale int // for AmountScaled, 0 to MostScale
	// Text means that the integer of AmountMinor or AmountScaled is written as text.
	Text bool
	// DropZeros means that zeros of AmountText or AmountNumber beyond the currency's digits are
	// dropped. With the other forms they always are.
	DropZeros bool
	// Nanos is the path of the billionths of AmountUnits. It begins in the same object as the path
	// of FieldAmount.
	Nanos []string
}

// MostScale is the largest valid value of AmountShape.Scale.
const MostScale = 18

// SignedType contains the meaning of a type for each sign of the amount. Unknown means that an
// event with this sign is refused.
type SignedType struct{ Positive, Negative, Zero Type }

// CurrencyForm says how a currency code is written.
type CurrencyForm uint8

// Each example in the comments below is the euro.
const (
	CurrencyUpper   CurrencyForm = iota // the alphabetic code, EUR
	CurrencyLower                       // the alphabetic code in lower case, eur
	CurrencyNumeric                     // the numeric code, 978
)

// Envelope says where the event is in the document.
type Envelope struct {
	Path    []string // empty if the document is the event
	Escaped bool     // the member at Path is a text that contains JSON
	// Entries is the path, beginning at the end of Path, to an array in which each entry is an
	// event. It is nil if there is only one event.
	Entries []string
}

// Mapping says how the events of another producer are read. The zero value means that they are
// written as in the contract.
type Mapping struct {
	// Types contains the meaning of each event type, by the type's name in messages. Events of type
	// Ignorable only advance the version. If the mapping has another name for a type of the
	// contract, the contract's name is no longer accepted, except in a custom projection.
	Types map[string]Type
	// Signed contains the types whose meaning depends on the sign of the amount. A name in Signed
	// must not be in Types.
	Signed map[string]SignedType
	// Fields contains the places of the fields that the mapping declares. All other fields are
	// where the format has them.
	Fields map[Field]FieldPath
	// Time says how FieldOccurredAt is written.
	Time     TimeUnit
	Amount   AmountShape
	Envelope Envelope
	// Currency says how currency codes are written.
	Currency CurrencyForm
}

// MappingError is a mistake in a mapping. Field is FieldEnvelope for a mistake in the envelope.
type MappingError struct {
	Field  Field
	Reason string
}

// mistakeOf returns the error about a member. An error about memberNanos is reported for
// FieldAmount.
func mistakeOf(member Field, err error) *MappingError {
	if member == memberNanos {
		member = FieldAmount
	}
	return &MappingError{member, err.Error()}
}

func (e *MappingError) Error() string { return e.Field.String() + ": " + e.Reason }

var errDocumentOnly = errors.New("can be in the document only")

// sources returns how many sources are set. Path is not counted.
func (p *FieldPath) sources() int {
	n := 0
	for _, is := range []bool{p.Record, p.Header != "", p.Key, p.Outer != nil, p.Constant != "", p.Join != nil} {
		if is {
			n++
		}
	}
	return n
}

// validate checks that there is not more than one source, and that the field may have it.
func (p *FieldPath) validate(field Field) error {
	sources := p.sources()
	within := p.Header != "" || p.Key || p.Record // Path leads to the record, or into the JSON of the header or key
	switch {
	case field == FieldData && sources > 0:
		return errDocumentOnly
	case sources > 1, sources == 1 && !within && len(p.Path) > 0:
		return errors.New("can be in one place only")
	case p.staysInPlace():
		return p.validateWritten(field)
	case sources == 0 && field != FieldData && len(p.Path) == 0, p.Outer != nil && len(p.Outer) == 0:
		return errors.New("has no place")
	case p.Constant != "" && field != FieldEventType && field != FieldCurrency && field != memberPart:
		return errors.New("cannot be a constant")
	case p.Record && field != FieldEventType && field != memberPart:
		return errors.New("cannot be the name of a record; only eventType can")
	case p.Record && p.Written != WrittenUsually:
		return errors.New("is the name of a record, which has no type")
	case p.Join != nil:
		return p.validateJoin(field)
	}
	if err := p.validateWritten(field); err != nil {
		return err
	}
	return validPath(slices.Concat(p.Path, p.Outer))
}

// staysInPlace reports whether the mapping declares only another type for the field, and not where
// the field is.
func (p *FieldPath) staysInPlace() bool {
	return p.Written != WrittenUsually && !p.isElsewhere() && len(p.Path) == 0
}

func validPath(path []string) error {
	if slices.Contains(path, "") {
		return fmt.Errorf("the path %q has an empty name", strings.Join(path, "."))
	}
	return nil
}

// validateWritten checks that the field may be written in the declared type.
func (p *FieldPath) validateWritten(field Field) error {
	ok := p.Written == WrittenUsually
	switch field {
	case FieldEventID, FieldAccountID, FieldCorrelationID, FieldVersion:
		ok = p.Written != WrittenBoolean
	case FieldCurrency:
		ok = ok || p.Written == WrittenInteger
	case FieldEventType, memberPart:
		ok = true
	default:
	}
	if !ok {
		return fmt.Errorf("cannot be of type %s", p.Written)
	}
	return nil
}

func (p *FieldPath) validateJoin(field Field) error {
	switch {
	case field != FieldEventID && field != FieldAccountID && field != FieldEventType:
		return errors.New("cannot be joined; only eventId, accountId and eventType can")
	case p.Written != WrittenUsually:
		return errors.New("has a type, which only the parts that it is joined of can have")
	case len(p.Join) < 2:
		return errors.New("is joined of fewer than two parts")
	case p.Separator <= ' ' || p.Separator > '~':
		return errors.New("needs a separator of one ASCII character between its parts")
	}
	for i := range p.Join {
		part := &p.Join[i]
		switch {
		case part.Join != nil:
			return errors.New("has a part that is joined itself")
		case part.Optional && field != FieldEventType:
			return errors.New("has an optional part, which only eventType can have")
		case part.Record && field != FieldEventType:
			return errors.New("has the name of a record as a part, which only eventType can have")
		}
		if err := part.validate(memberPart); err != nil {
			return fmt.Errorf("part %d %w", i+1, err)
		}
	}
	return nil
}
