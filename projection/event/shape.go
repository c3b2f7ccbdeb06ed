package event

import (
	"fmt"
	"strings"
)

// shape is what a format looks for in a JSON object: the names of members that
// are fields, or that are objects with fields in them. Few names are looked for, so
// comparing them one by one is faster than a map.
type shape struct {
	self    Field // the field that the object itself is, or memberNone
	members []shapeMember
}

type shapeMember struct {
	name  string
	field Field  // memberNone when only something in it counts
	inner *shape // what to look for when the member is an object, or nil
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
			at.members = append(at.members, shapeMember{name: name, field: memberNone})
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

// find returns what to do with the member of that name; nil when it is ignored.
// Members mostly come in one order, so the search begins at hint, the place behind
// the last one found.
func (s *shape) find(name []byte, hint int) (found *shapeMember, next int) {
	for i := hint; i < len(s.members); i++ {
		if s.members[i].name == string(name) {
			return &s.members[i], i + 1
		}
	}
	for i := range min(hint, len(s.members)) {
		if s.members[i].name == string(name) {
			return &s.members[i], i + 1
		}
	}
	return nil, hint
}
