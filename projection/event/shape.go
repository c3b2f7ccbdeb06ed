package event

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// shape has the members of a JSON object that a format reads: fields, and objects with fields in
// them. Comparing names one by one is faster than a map, because they are few, and mostly in order.
type shape struct {
	self    Field // the field that the object itself is, or memberNone
	members []shapeMember
}

type shapeMember struct {
	name   string
	quoted string // the name as JSON; empty if JSON has to escape it
	field  Field  // memberNone if the member is no field itself
	inner  *shape // of the object that the member may be, or nil
	// The first eight bytes of quoted, and a mask of those that it has. Comparing them first takes a
	// twentieth off decoding.
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

func newShape() *shape { return &shape{self: memberNone} }

// add adds a field at path. An empty path is the document itself. The error names the path that
// conflicts with another field.
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

// meetsArray marks all fields of the shape as inArray.
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

// next returns the member at hint if raw is its name. As most messages have the same order, this
// finds most members without unquoting names.
func (s *shape) next(raw []byte, hint int) *shapeMember {
	if hint < len(s.members) && s.members[hint].quoted == string(raw) {
		return &s.members[hint]
	}
	return nil
}

// find returns the member of that name, or nil, and the hint for the next one.
func (s *shape) find(name []byte, hint int) (found *shapeMember, next int) {
	for i := range s.members {
		if s.members[i].name == string(name) {
			return &s.members[i], i + 1
		}
	}
	return nil, hint
}
