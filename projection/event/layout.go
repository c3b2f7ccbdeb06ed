package event

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Field is one thing an event says.
type Field uint8

// The fields of an event. Data is the JSON object that holds Amount and Currency.
const (
	FieldEventID Field = iota
	FieldEventType
	FieldAccountID
	FieldVersion
	FieldOccurredAt
	FieldCorrelationID
	FieldData
	FieldAmount
	FieldCurrency

	// Members that only some formats have.
	memberSchema          // of a Kafka Connect envelope
	memberPayload         // of a Kafka Connect envelope
	memberSpecVersion     // of a CloudEvent
	memberDataContentType // of a CloudEvent
	memberDataBase64      // of a CloudEvent

	memberCount
	memberNone // stands for no member
)

// fieldNames are the contract's.
var fieldNames = [...]string{
	"eventId", "eventType", "accountId", "version", "occurredAt", "correlationId", "data", "amount", "currency",
}

// Fields lists the fields of an event.
func Fields() []Field {
	fields := make([]Field, len(fieldNames))
	for i := range fields {
		fields[i] = Field(i)
	}
	return fields
}

// String returns the contract's name of the field.
func (f Field) String() string {
	if int(f) >= len(fieldNames) {
		return "unknown"
	}
	return fieldNames[f]
}

// placeKind says in which part of a message a field stands.
type placeKind uint8

const (
	nowhere    placeKind = iota
	inDocument           // a member of the JSON document
	inHeader
	inKey
)

// place is where a format finds a field.
type place struct {
	kind    placeKind
	path    []string // of a member: the names that lead to it, outermost first
	header  string
	quoted  bool   // a header or key may be JSON, as Kafka Connect's JsonConverter writes it
	name    string // what a fault calls it
	missing string // what a fault says when it is not there; empty for the usual
}

// How a fault names what does not stand in the document.
const (
	nameKey    = "key"
	nameHeader = "header "
)

// member is a place in the document, by the names that lead to it.
func member(path ...string) place {
	return place{kind: inDocument, path: path, name: strings.Join(path, ".")}
}

// reasonMissing is what a fault says of a field that is not there.
func (p *place) reasonMissing() string {
	if p.missing != "" {
		return p.missing
	}
	return reasonMissing
}

// layout is where a format finds the fields of an event.
type layout struct {
	places [memberCount]place
	data   []string // the path of FieldData
	// at is the place of a path in the document.
	at func(path []string) (place, error)
	// quoted: header and key are as Kafka Connect writes them.
	quoted bool
}

// apply lets a mapping move fields. Its error joins a *MappingError for each field that cannot
// be moved so.
func (l *layout) apply(m Mapping) error {
	var mistakes []error
	for _, field := range Fields() {
		p, moved := m.Fields[field]
		if !moved {
			continue
		}
		if err := p.validate(field); err != nil {
			mistakes = append(mistakes, &MappingError{field, err.Error()})
			continue
		}
		if field < FieldData {
			var err error
			if l.places[field], err = l.place(p); err != nil {
				mistakes = append(mistakes, &MappingError{field, err.Error()})
			}
		}
	}
	if len(mistakes) > 0 {
		return errors.Join(mistakes...)
	}
	data := l.data
	if p, moved := m.Fields[FieldData]; moved {
		data = p.Path
	}
	within := map[Field][]string{FieldData: nil, FieldAmount: {"amount"}, FieldCurrency: {"currency"}}
	for field := FieldData; field <= FieldCurrency; field++ {
		path := within[field]
		if p, moved := m.Fields[field]; moved && field != FieldData {
			path = p.Path
		}
		var err error
		if l.places[field], err = l.at(slices.Concat(data, path)); err != nil {
			return &MappingError{field, err.Error()}
		}
	}
	return nil
}

// place is where a mapping says that a field stands.
func (l *layout) place(p FieldPath) (place, error) {
	switch {
	case p.Key:
		return place{kind: inKey, quoted: l.quoted, name: nameKey}, nil
	case p.Header != "":
		return place{kind: inHeader, header: p.Header, quoted: l.quoted, name: nameHeader + p.Header}, nil
	}
	return l.at(p.Path)
}

// validate checks that a place is one place, and one where the field can stand.
func (p FieldPath) validate(field Field) error {
	inDocumentOnly := field == FieldData || field == FieldAmount || field == FieldCurrency
	switch {
	case inDocumentOnly && (p.Key || p.Header != ""):
		return errors.New("can stand in the JSON document only")
	case p.Key && (p.Header != "" || len(p.Path) > 0), p.Header != "" && len(p.Path) > 0:
		return errors.New("can stand in one place only")
	case field != FieldData && !p.Key && p.Header == "" && len(p.Path) == 0:
		return errors.New("has no place")
	}
	for _, name := range p.Path {
		if name == "" {
			return fmt.Errorf("the path %q has an empty name", strings.Join(p.Path, "."))
		}
	}
	return nil
}

// shape is what a format looks for in a JSON object: the names of members that
// are fields, or that are objects with fields in them. Few names are looked for, and
// mostly in one order, so comparing them one by one is faster than a map.
type shape struct {
	self    Field // the field that the object itself is, or memberNone
	members []shapeMember
}

type shapeMember struct {
	name   string
	quoted string // the name as JSON; empty when it has to be escaped
	field  Field  // memberNone when only something in it counts
	inner  *shape // what to look for when the member is an object, or nil
}

func newShapeMember(name string, field Field) shapeMember {
	m := shapeMember{name: name, field: field}
	if !strings.ContainsAny(name, `"\`) {
		m.quoted = `"` + name + `"`
	}
	return m
}

// newShape returns the shape of a document with these fields.
func newShape() *shape { return &shape{self: memberNone} }

// add makes a field of the member at path; an empty path is the document itself.
// The error says which names get into each other's way.
func (s *shape) add(field Field, path []string) error {
	at := s
	for i, name := range path {
		m := at.member(name)
		last := i == len(path)-1
		switch {
		case m == nil:
			at.members = append(at.members, newShapeMember(name, memberNone))
			m = &at.members[len(at.members)-1]
		case m.field != memberNone && (last || m.field != FieldData):
			return fmt.Errorf("two fields are to be read from %q", strings.Join(path[:i+1], "."))
		case last && field != FieldData:
			return fmt.Errorf("%q is to be a field and to hold other fields", strings.Join(path, "."))
		}
		if last {
			m.field = field
			if m.inner != nil {
				m.inner.self = field
			}
			return nil
		}
		if m.inner == nil {
			m.inner = &shape{self: m.field}
		}
		at = m.inner
	}
	at.self = field
	return nil
}

func (s *shape) member(name string) *shapeMember {
	for i := range s.members {
		if s.members[i].name == name {
			return &s.members[i]
		}
	}
	return nil
}

// next returns the member that is expected at hint, if that is what raw names: the
// way through most messages, for which a name need not even be unquoted.
func (s *shape) next(raw []byte, hint int) *shapeMember {
	if hint < len(s.members) && s.members[hint].quoted == string(raw) {
		return &s.members[hint]
	}
	return nil
}

// find returns what to do with the member of that name, nil when it is ignored, and
// the hint for the member behind it.
func (s *shape) find(name []byte, hint int) (found *shapeMember, next int) {
	for i := range s.members {
		if s.members[i].name == string(name) {
			return &s.members[i], i + 1
		}
	}
	return nil, hint
}
