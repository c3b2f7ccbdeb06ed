package event

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// isApart reports whether the event is a separate document inside another document. This is the
// case for escaped JSON and for an entry of an array. The inner document is read after the outer
// one.
func (e *Envelope) isApart() bool { return e.Escaped || e.Entries != nil }

func (e *Envelope) isSet() bool { return len(e.Path) > 0 || e.isApart() }

// applyEnvelope changes the places of the event's fields so that they are inside the envelope.
func (l *layout) applyEnvelope() error {
	e := &l.envelope
	if !e.isSet() {
		return nil
	}
	for _, path := range [][]string{e.Path, e.Entries} {
		if err := validPath(path); err != nil {
			return &MappingError{FieldEnvelope, err.Error()}
		}
	}
	if e.isApart() {
		var err error
		if l.places[FieldEnvelope], err = l.at(e.outerPath()); err != nil {
			return &MappingError{FieldEnvelope, err.Error()}
		}
	}
	for field := range l.places {
		p := &l.places[field]
		if p.kind != inDocument || Field(field) == FieldEnvelope {
			continue
		}
		if !l.whole {
			p.outer = true
			continue
		}
		var err error
		if *p, err = l.inner(p.path); err != nil {
			return &MappingError{FieldEnvelope, err.Error()}
		}
	}
	return nil
}

// outerPath returns the path, in the outer document, that leads to the escaped JSON or to the array
// of entries.
func (e *Envelope) outerPath() []string {
	if e.Escaped {
		return e.Path
	}
	return slices.Concat(e.Path, e.Entries)
}

// inner returns the place of a path in the event's document.
func (l *layout) inner(path []string) (place, error) {
	e := &l.envelope
	if !e.isApart() {
		return l.at(slices.Concat(e.Path, path))
	}
	p := member(path...)
	name := l.places[FieldEnvelope].name
	if e.Escaped && len(e.Entries) > 0 {
		name = joinPath(name, strings.Join(e.Entries, "."))
	}
	if e.Entries != nil {
		name += "[]"
	}
	p.name = joinPath(name, p.name)
	return p, nil
}

func joinPath(a, b string) string {
	return strings.Trim(a+"."+b, ".")
}

func (l *layout) around(p *FieldPath) (place, error) {
	if !l.envelope.isSet() {
		return place{}, errors.New("is to be read around an envelope, and there is none")
	}
	made, err := l.at(p.Outer)
	if made.kind == inDocument && l.envelope.isApart() && len(l.places[FieldEnvelope].path) == 0 {
		err = errors.New("is to be read around an envelope that is the whole document")
	}
	made.outer, made.written = true, p.Written
	return made, err
}

const reasonNotEscaped = "is not a text that holds JSON, as the mapping declares"

// readApart reads the event's document after the document around it was read.
func (f *decoder) readApart(r *reading) {
	if r.documentFault != nil {
		r.outerFault = r.documentFault
		return
	}
	if f.typed && f.envelope.Entries != nil && !f.envelope.Escaped { // the Reader has found the entries
		r.documentFault = f.checkEntries(r)
		return
	}
	document, fault := f.unwrap(r, &r.found[FieldEnvelope])
	switch {
	case fault != nil:
		r.documentFault = fault
	case f.envelope.Entries != nil:
		r.documentFault = f.split(r, document)
	default:
		f.readInner(r, document)
	}
}

// readInner finds the members of the event's document, and adds them to those of the document
// around it.
func (f *decoder) readInner(r *reading, document []byte) {
	r.documentFault = r.addMembers(f.places[FieldEnvelope].name, document, f.shape)
}

// addMembers finds the members of a document in the field of a message, and adds them to those that
// were found around it.
func (r *reading) addMembers(field string, document []byte, sh *shape) *Fault {
	var found members
	if err := r.scan(document, sh, &found); err != nil {
		return syntaxFault(field, document, err)
	}
	r.add(&found)
	return nil
}

func (r *reading) add(found *members) {
	for field := range found {
		if !found[field].absent() || found[field].kind == inArray {
			r.found[field] = found[field]
		}
	}
}

// unwrap returns the document that is inside an envelope, or a fault.
func (f *decoder) unwrap(r *reading, held *value) ([]byte, *Fault) {
	name := f.places[FieldEnvelope].name
	switch {
	case held.absent():
		return nil, f.places[FieldEnvelope].missingValue(held)
	case held.isNull():
		return nil, malformed(name, reasonNull)
	case !f.envelope.Escaped:
		return held.raw, nil
	case !held.isString():
		return nil, malformed(name, reasonNotEscaped)
	}
	text := r.text(held)
	if held.kind != asJSON { // the text is a part of the message
		return text, nil
	}
	return bytes.Clone(text), nil // a copy, because the event refers to parts of it
}
