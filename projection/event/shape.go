package event

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// shape is the part of a JSON object that a format reads: the members that are fields, or
// objects with fields in them. There are few names, mostly in one order, so comparing them one
// by one is faster than a map.
type shape struct {
	self    Field // the field that the object itself is, or memberNone
	members []shapeMember
}

type shapeMember struct {
	name   string
	quoted string // the name as JSON; empty when it has to be escaped
	field  Field  // memberNone when only something in it counts
	inner  *shape // the members to read when it is an object, or nil
	// The first eight bytes of quoted, and which of them there are. Most names fit, and comparing
	// them so is a twentieth of decoding faster.
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

// begins reports whether a document continues with the member's name.
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

// newShape returns the shape of a document with these fields.
func newShape() *shape { return &shape{self: memberNone} }

// add makes a field of the member at path; an empty path is the document itself.
// The error says which names conflict.
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

// at returns the field whose value is at a path; memberNone when none is.
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

// meetsArray notes that an array is where the object should be.
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

// next returns the member at hint if raw is its name. Most messages have their members in
// the same order, so this finds a member without unquoting its name.
func (s *shape) next(raw []byte, hint int) *shapeMember {
	if hint < len(s.members) && s.members[hint].quoted == string(raw) {
		return &s.members[hint]
	}
	return nil
}

// find returns what to do with the member of that name, nil when it is ignored, and
// the hint for the member after it.
func (s *shape) find(name []byte, hint int) (found *shapeMember, next int) {
	for i := range s.members {
		if s.members[i].name == string(name) {
			return &s.members[i], i + 1
		}
	}
	return nil, hint
}
