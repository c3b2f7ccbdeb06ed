package event

import "unicode/utf8"

// valueKind says how a value is written.
type valueKind uint8

const (
	asJSON  valueKind = iota // as JSON text
	plain                    // as the text it is, without quotes
	exact                    // as the digits of an exact number of a schema's own
	inexact                  // as a number that has gone through a float
	instant                  // as microseconds since the Unix epoch, UTC
	inArray                  // not at all: the path to it meets an array
)

// value is what was found in a place of a document, not validated. It is empty when the
// place is not there. What is no JSON and has no type of its own here is written as the
// JSON that is validated alike.
type value struct {
	raw  []byte
	kind valueKind
	// verbatim: if it is a JSON string, it has no escapes.
	verbatim bool
}

func (v *value) begins() byte {
	if v.kind == asJSON && len(v.raw) > 0 {
		return v.raw[0]
	}
	return 0
}

func (v *value) absent() bool    { return len(v.raw) == 0 }
func (v *value) isNull() bool    { return v.begins() == 'n' }
func (v *value) isString() bool  { return v.begins() == '"' || v.kind == plain || v.kind == exact }
func (v *value) isBoolean() bool { return v.begins() == 't' || v.begins() == 'f' }
func (v *value) isObject() bool  { return v.begins() == '{' }
func (v *value) isNumber() bool {
	c := v.begins()
	return c == '-' || c >= '0' && c <= '9'
}

// members holds what was found, by field.
type members [memberCount]value

// text returns what a field says that must be there and be text. raw is the part of
// the message it was read from, nil when it is no part of it. Both are valid until the next
// call of r.
func (f *decoder) text(r *reading, field Field) (raw, text []byte, fault *Fault) {
	return f.textAt(r, &f.places[field], field)
}

// textAt is text of a place.
func (f *decoder) textAt(r *reading, p *place, field Field) (raw, text []byte, fault *Fault) {
	if p.kind != inDocument {
		return f.textElsewhere(r, p, field)
	}
	m := &r.found[p.slot]
	switch {
	case p.written > WrittenText || !m.isString():
		return f.writtenText(r, p, m, field)
	case m.verbatim: // nearly always
		return m.raw, m.raw[1 : len(m.raw)-1], nil
	}
	return m.raw, r.text(m), nil
}

// textElsewhere is text of a place that is not in the document.
func (f *decoder) textElsewhere(r *reading, p *place, field Field) (raw, text []byte, fault *Fault) {
	switch p.kind {
	case constant:
		return p.text, p.text, nil
	case joined:
		return f.joinedText(r, p, field)
	case nowhere, inDocument, inHeader, inKey: // read below
	}
	value, found := r.message.Key, r.message.Key != nil
	if p.kind == inHeader {
		value, found = firstHeader(r.message.Headers, p.header)
	}
	switch {
	case !found:
		return nil, nil, malformed(p.name, p.reasonMissing())
	case value == nil:
		return nil, nil, malformed(p.name, reasonNull)
	case p.inner != nil:
		return f.innerText(r, p, value, field)
	}
	raw, text, reason := r.plainText(value, p.quoted)
	if reason == "" {
		reason = p.written.textReason(text)
	}
	if reason != "" {
		return nil, nil, malformed(p.name, reason)
	}
	return raw, text, nil
}

// noValue is the fault of a member that is not there; nil when it is.
func (f *decoder) noValue(r *reading, p *place, m *value) *Fault {
	switch {
	case f.unread(r, p) != nil:
		return f.unread(r, p)
	case m.absent():
		return p.missingValue(m)
	case m.isNull():
		return malformed(p.name, reasonNull)
	}
	return nil
}

// missingValue is the fault of a value that is not there.
func (p *place) missingValue(m *value) *Fault {
	if m.kind == inArray {
		return malformed(p.name, reasonInArray)
	}
	return malformed(p.name, p.reasonMissing())
}

// unread is why the document that a place is in cannot be read; nil: it was read.
func (f *decoder) unread(r *reading, p *place) *Fault {
	if p.outer && f.outer != nil {
		return r.outerFault
	}
	return r.documentFault
}

// plainText returns what a header or a key says; reason is why it says nothing.
// If it may be JSON, a quoted text, an envelope with a schema and null are read as Kafka
// Connect's JsonConverter writes them.
func (r *reading) plainText(value []byte, quoted bool) (raw, text []byte, reason string) {
	if quoted && len(value) > 0 {
		switch {
		case value[0] == '"':
			text, err := r.scanText(value)
			if err != nil {
				return nil, nil, "is not plain text and not a well-formed JSON string"
			}
			return value, text, ""
		case isConnectEnvelope(value):
			return r.envelopeText(value)
		case string(value) == "null":
			return nil, nil, reasonNull
		}
	}
	if !utf8.Valid(value) {
		return nil, nil, "is not UTF-8"
	}
	return value, value, ""
}

// correlationHeaders are the Kafka headers that may carry a correlation id, in
// order of preference.
var correlationHeaders = [...]string{"correlationId", "correlation_id"}

// headerCorrelationID returns the correlation id a message's headers carry, or "";
// a header, or the key, that is the field's own place comes first. Of several headers with one
// name the first counts. A value that is empty, has a NUL or is no UTF-8 counts as
// none: it is a hint and not a part of the event, so it never makes an event
// malformed.
func (f *decoder) headerCorrelationID(r *reading, p *place) string {
	if p.kind == inHeader || p.kind == inKey {
		raw, text, fault := f.textAt(r, p, FieldCorrelationID)
		if fault == nil && len(text) > 0 && !hasNUL(text) {
			return keep(raw, text)
		}
	}
	for _, name := range correlationHeaders {
		if id := r.correlationHeader(name, p.quoted); id != "" {
			return id
		}
	}
	return ""
}

func (r *reading) correlationHeader(name string, quoted bool) string {
	value, _ := firstHeader(r.message.Headers, name)
	if len(value) == 0 {
		return ""
	}
	raw, text, reason := r.plainText(value, quoted)
	if reason != "" || hasNUL(text) {
		return ""
	}
	return keep(raw, text)
}

// firstHeader returns the value of the first header of that name, and whether there
// is one: the value may be null.
func firstHeader(headers []Header, name string) (value []byte, found bool) {
	for i := range headers {
		if headers[i].Key == name {
			return headers[i].Value, true
		}
	}
	return nil, false
}
