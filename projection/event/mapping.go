package event

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// FieldPath says where a field is and how it is written there. It has one source: Path, Outer,
// Constant, Join, or a Header or the Key, in whose JSON a Path may lead to the field. With Written
// alone the field is where the format has it. An empty FieldPath of FieldData is the document itself.
type FieldPath struct {
	// Path leads to a member of the document, the outermost name first. The paths of FieldAmount and
	// FieldCurrency begin in the object FieldData.
	Path     []string
	Header   string   // of the record
	Key      bool     // the record's key
	Outer    []string // a path in the document around the envelope
	Constant string
	// Join has the parts of a joined text. Separator is between them, and only the last part may
	// contain it.
	Join      []FieldPath
	Separator byte
	// Optional: this part of FieldEventType counts as the empty text if it is missing or null, because
	// events of other types may have other fields.
	Optional bool
	Written  Written
}

// Written is the JSON type in which an id, an event type or a version is written.
type Written uint8

// The types. WrittenUsually is an integer for a version, and text for all else.
const (
	WrittenUsually Written = iota
	WrittenText
	WrittenInteger
	WrittenBoolean
	writtenNumber // an amount, whose digits are checked later
)

// writtenNames are public: mapping files have them.
var writtenNames = [...]string{WrittenText: "text", WrittenInteger: "integer", WrittenBoolean: "boolean", writtenNumber: "number"}

// String returns the name in a mapping file.
func (w Written) String() string { return writtenNames[w] }

// WrittenNamed returns the type of that name.
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

// The forms.
const (
	AmountText   AmountForm = iota // a decimal as text, "10.25"
	AmountNumber                   // a JSON number, 10.25, read from its digits
	AmountMinor                    // an integer in minor units by ISO 4217, 1025
	AmountScaled                   // an integer with Scale decimals
	AmountUnits                    // an integer of whole units, and another of billionths at Nanos
)

// AmountShape is how amounts are written. The zero value is the contract's.
type AmountShape struct {
	Form  AmountForm
	Scale int // of AmountScaled, 0 to MostScale
	// Text: the integer of AmountMinor or AmountScaled is written as text.
	Text bool
	// Nanos is the path of the nanos, relative to the same object as FieldAmount's path.
	Nanos []string
}

// MostScale is the largest Scale.
const MostScale = 18

// SignedType has the meaning of a type for each sign of its amount. Unknown means refused.
type SignedType struct{ Positive, Negative, Zero Type }

// Envelope is where the event is in the document.
type Envelope struct {
	Path    []string // empty: the document is the event
	Escaped bool     // it is a text that holds JSON
	// Entries is the path from there to an array whose entries are events. nil: there is one event.
	Entries []string
}

// Mapping says how another producer's events are read. The zero value is the contract.
type Mapping struct {
	// Types has the meaning of each event type, by its name. Ignorable only advances the version. A
	// type's own name counts only if the mapping has no other name for the type.
	Types map[string]Type
	// Signed has the types whose meaning depends on the sign of the amount. No name is also in Types.
	Signed map[string]SignedType
	// Fields has the places of fields. Other fields are where the format has them.
	Fields map[Field]FieldPath
	// Time is how FieldOccurredAt is written.
	Time     TimeUnit
	Amount   AmountShape
	Envelope Envelope
	// LowerCurrency: currency codes are written in small letters.
	LowerCurrency bool
}

// MappingError is a mistake in a mapping. Field is FieldEnvelope for the envelope.
type MappingError struct {
	Field  Field
	Reason string
}

// mistakeOf returns the mistake about a member. Those of the nanos are of the amount.
func mistakeOf(member Field, err error) *MappingError {
	if member == memberNanos {
		member = FieldAmount
	}
	return &MappingError{member, err.Error()}
}

// Error implements error.
func (e *MappingError) Error() string { return e.Field.String() + ": " + e.Reason }

var errDocumentOnly = errors.New("can be in the document only")

// sources returns how many sources there are besides Path.
func (p *FieldPath) sources() int {
	n := 0
	for _, is := range []bool{p.Header != "", p.Key, p.Outer != nil, p.Constant != "", p.Join != nil} {
		if is {
			n++
		}
	}
	return n
}

// validate checks that there is one source, and that the field can have it.
func (p *FieldPath) validate(field Field) error {
	sources := p.sources()
	within := p.Header != "" || p.Key // Path is in its JSON
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
	case p.Join != nil:
		return p.validateJoin(field)
	}
	if err := p.validateWritten(field); err != nil {
		return err
	}
	return validPath(slices.Concat(p.Path, p.Outer))
}

// staysInPlace reports whether the field has another type only, and is where the format has it.
func (p *FieldPath) staysInPlace() bool {
	return p.Written != WrittenUsually && !p.isElsewhere() && len(p.Path) == 0
}

func validPath(path []string) error {
	if slices.Contains(path, "") {
		return fmt.Errorf("the path %q has an empty name", strings.Join(path, "."))
	}
	return nil
}

// validateWritten checks that the field can have the type.
func (p *FieldPath) validateWritten(field Field) error {
	ok := p.Written == WrittenUsually
	switch field {
	case FieldEventID, FieldAccountID, FieldCorrelationID, FieldVersion:
		ok = p.Written != WrittenBoolean
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
		}
		if err := part.validate(memberPart); err != nil {
			return fmt.Errorf("part %d %w", i+1, err)
		}
	}
	return nil
}
