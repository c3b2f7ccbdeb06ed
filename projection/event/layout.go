package event

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Place is where a field of an event stands. Exactly one of its fields is set; the
// place of FieldData may also be empty, which is the document itself.
type Place struct {
	// Path leads to a member of the JSON document, outermost name first. The paths
	// of FieldAmount and FieldCurrency begin in the object that is FieldData.
	Path   []string
	Header string // of the record
	Key    bool   // the record's key
}

// Mapping is how other people's events are read. The zero value is the contract's.
type Mapping struct {
	// Types says what an event type means, by its name. Ignorable is one that only
	// advances the version. The name the contract has for a type counts only when
	// the mapping gives that type no name.
	Types map[string]Type
	// Places says where fields stand; what is not in it stands where the format has it.
	Places map[Field]Place
}

// MappingError is a place in a mapping that the format cannot have.
type MappingError struct {
	Field  Field
	Reason string
}

// Error implements error.
func (e *MappingError) Error() string { return e.Field.String() + ": " + e.Reason }

// layout is where a format finds the fields of an event.
type layout struct {
	places [memberCount]place
	data   []string // the path of FieldData
	// at is the place of a path in the document.
	at func(path []string) (place, error)
	// quoted: header and key are as Kafka Connect writes them.
	quoted bool
}

// apply lets a mapping move fields.
func (l *layout) apply(m Mapping) error {
	for _, field := range Fields() {
		p, moved := m.Places[field]
		if !moved {
			continue
		}
		if err := p.validate(field); err != nil {
			return &MappingError{field, err.Error()}
		}
		if field < FieldData {
			var err error
			if l.places[field], err = l.place(p); err != nil {
				return &MappingError{field, err.Error()}
			}
		}
	}
	data := l.data
	if p, moved := m.Places[FieldData]; moved {
		data = p.Path
	}
	within := map[Field][]string{FieldData: nil, FieldAmount: {"amount"}, FieldCurrency: {"currency"}}
	for field := FieldData; field <= FieldCurrency; field++ {
		path := within[field]
		if p, moved := m.Places[field]; moved && field != FieldData {
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
func (l *layout) place(p Place) (place, error) {
	switch {
	case p.Key:
		return place{kind: inKey, quoted: l.quoted, name: nameKey}, nil
	case p.Header != "":
		return place{kind: inHeader, header: p.Header, quoted: l.quoted, name: nameHeader + p.Header}, nil
	}
	return l.at(p.Path)
}

// validate checks that a place is one place, and one where the field can stand.
func (p Place) validate(field Field) error {
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
