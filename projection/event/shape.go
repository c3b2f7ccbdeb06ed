package event

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// shape contains the members of a JSON object that a format reads. These are fields, and objects
// that contain fields. The names are compared one by one. This is faster than a map, because there
// are few names and most messages contain them in this order.
type shape struct {
	self    Field // the field of the object itself, or memberNone
	record  Field // the field whose value is the name of the object's record, or memberNone
	members []shapeMember
}

type shapeMember struct {
	name   string
	quoted string // the name as a JSON string; empty if JSON has to escape the name
	field  Field  // memberNone if the member itself is not a field
	inner  *shape // members of the object, if the member may be one; otherwise nil
	// word contains the first eight bytes of quoted. mask marks those of the eight bytes that
	// quoted really has. Comparing word first makes decoding about 5% faster.
	word, mask uint64
}

const wordBytes = 8

func newShapeMember(name string, field Field) shapeMember {
	m := shapeMember{name: name, field: field}
	if strings.IndexFunc(name, func(c rune) bool { return c < ' ' || c == '"' || c == '\\' }) < 0 {
		m.quoted = `"` + name + `"`
		var word, mask [wordBytes]byte
		for i := range copy(word[:], m.quoted) {
			mask[i] = 0xff
		}
		m.word, m.mask = binary.LittleEndian.Uint64(word[:]), binary.LittleEndian.Uint64(mask[:])
	}
	return m
}

// begins reports whether rest begins with the member's name.
func (m *shapeMember) begins(rest []byte) bool {
	n := len(m.quoted)
	if n == 0 || n > len(rest) {
		return false
	}
	if len(rest) < wordBytes {
		return string(rest[:n]) == m.quoted
	}
	return (binary.LittleEndian.Uint64(rest)^m.word)&m.mask == 0 && (n <= wordBytes || string(rest[:n]) == m.quoted)
}

func newShape() *shape { return &shape{self: memberNone, record: memberNone} }

// add adds a field at a path. An empty path means the document itself. The error names the path
// that conflicts with another field.
func (s *shape) add(field Field, path []string) error {
	if len(path) == 0 {
		s.self = field
		return nil
	}
	last := len(path) - 1
	at, err := s.object(path[:last])
	if err != nil {
		return err
	}
	switch m := at.member(path[last]); {
	case m == nil:
		at.members = append(at.members, newShapeMember(path[last], field))
	case m.field != memberNone:
		return twoFieldsAt(path)
	case field != FieldData:
		return fmt.Errorf("%q is to be a field and to hold other fields", strings.Join(path, "."))
	default:
		m.field, m.inner.self = field, field
	}
	return nil
}

// addRecord adds a field whose value is the name of the record at a path.
func (s *shape) addRecord(field Field, path []string) error {
	at, err := s.object(path)
	if err != nil {
		return err
	}
	if at.record != memberNone {
		return errors.New("has the name of the same record twice")
	}
	at.record = field
	return nil
}

// object returns the shape of the object at a path. It adds the members that lead there.
func (s *shape) object(path []string) (*shape, error) {
	at := s
	for i, name := range path {
		m := at.member(name)
		switch {
		case m == nil:
			at.members = append(at.members, newShapeMember(name, memberNone))
			m = &at.members[len(at.members)-1]
		case m.field != memberNone && m.field != FieldData:
			return nil, twoFieldsAt(path[:i+1])
		}
		if m.inner == nil {
			m.inner = newShape()
			m.inner.self = m.field
		}
		at = m.inner
	}
	return at, nil
}

func twoFieldsAt(path []string) error {
	return fmt.Errorf("two fields are to be read from %q", strings.Join(path, "."))
}

// at returns the field at a path, or memberNone.
func (s *shape) at(path []string) Field {
	field := memberNone
	for _, name := range path {
		if s == nil {
			return memberNone
		}
		m := s.member(name)
		if m == nil {
			return memberNone
		}
		field, s = m.field, m.inner
	}
	return field
}

func (s *shape) member(name string) *shapeMember {
	for i := range s.members {
		if s.members[i].name == name {
			return &s.members[i]
		}
	}
	return nil
}

// below returns the shape of the object that is the member with the given name.
func (s *shape) below(name string) *shape {
	m, below := s.member(name), newShape()
	switch {
	case m == nil:
		return below
	case m.inner != nil:
		return m.inner
	}
	below.self = m.field
	return below
}

// meetsArray marks all fields of the shape as inArray, which means that their paths lead through an
// array.
func (s *shape) meetsArray(found *members) {
	for i := range s.members {
		m := &s.members[i]
		if m.field != memberNone {
			found[m.field] = value{kind: inArray}
		}
		if m.inner != nil {
			m.inner.meetsArray(found)
		}
	}
}

// next returns the member at the index hint if raw is its name. Most messages have the same order
// of members, so next finds most members without unquoting their names.
func (s *shape) next(raw []byte, hint int) *shapeMember {
	if hint < len(s.members) && s.members[hint].quoted == string(raw) {
		return &s.members[hint]
	}
	return nil
}

// find returns the member with the given name, or nil, and the hint for the next member.
func (s *shape) find(name []byte, hint int) (found *shapeMember, next int) {
	for i := range s.members {
		if s.members[i].name == string(name) {
			return &s.members[i], i + 1
		}
	}
	return nil, hint
}
