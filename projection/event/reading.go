package event

import (
	"bytes"
	"unicode/utf8"
)

type valueKind uint8

const (
	asJSON  valueKind = iota // JSON text
	plain                    // the text itself, without quotes
	exact                    // digits of a decimal type of the schema
	inexact                  // a float
	instant                  // microseconds since the Unix epoch, UTC
	inArray                  // no value, because the path leads through an array
)

// value is the content of one place in a document, before validation. It is empty if the document
// has no such place. A value that was read with a schema and fits no other valueKind is converted
// to JSON.
type value struct {
	raw  []byte
	kind valueKind
	// verbatim means that a JSON string has no escapes.
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

type members [memberCount]value

// text returns the text of a field that must have one. The result raw is the part of the message
// that contains the text, or nil. Both are valid until the next call of a method of r.
func (f *decoder) text(r *reading, field Field) (raw, text []byte, fault *Fault) {
	return f.textAt(r, &f.places[field], field)
}

// textAt is like text, but for a given place.
func (f *decoder) textAt(r *reading, p *place, field Field) (raw, text []byte, fault *Fault) {
	if r.message.Entry > 0 && p.isShared() {
		return f.sharedText(r, p, field)
	}
	return f.textOnce(r, p, field)
}

// sharedText is the text or the fault of a place that is the same for all entries of a message.
type sharedText struct {
	text  []byte
	fault *Fault
}

// isShared reports whether the place has the same text for all entries of a message.
func (p *place) isShared() bool {
	return p.kind == inHeader || p.kind == inKey || p.kind == inDocument && p.outer
}

// sharedText returns the text of a place that is the same for all entries of a message. It reads
// and copies the text for the first entry only. Otherwise a thousand entries would have a thousand
// copies of a long text.
func (f *decoder) sharedText(r *reading, p *place, field Field) (raw, text []byte, fault *Fault) {
	if t, is := r.shared[p]; is {
		return t.text, t.text, t.fault
	}
	raw, text, fault = f.textOnce(r, p, field)
	if !shareMemory(raw, text) {
		text = bytes.Clone(text)
	}
	if r.shared == nil {
		r.shared = map[*place]sharedText{}
	}
	r.shared[p] = sharedText{text, fault}
	return text, text, fault
}

// textOnce is like textAt, but it always reads the text.
func (f *decoder) textOnce(r *reading, p *place, field Field) (raw, text []byte, fault *Fault) {
	if p.kind != inDocument {
		return f.textElsewhere(r, p, field)
	}
	m := &r.found[p.slot]
	switch {
	case p.written > WrittenText || !m.isString():
		return f.writtenText(r, p, m, field)
	case m.verbatim: // nearly always the case
		return m.raw, m.raw[1 : len(m.raw)-1], nil
	}
	return m.raw, r.text(m), nil
}

// textElsewhere returns the text at a place that is not in the document.
func (f *decoder) textElsewhere(r *reading, p *place, field Field) (raw, text []byte, fault *Fault) {
	switch p.kind {
	case constant:
		return p.text, p.text, nil
	case joined:
		return f.joinedText(r, p, field)
	case nowhere, inDocument, inHeader, inKey: // read below
	}
	value, found := f.keyWithoutSchemaID(r.message.Key), r.message.Key != nil
	if p.kind == inHeader {
		value, found = firstHeader(r.message.Headers, p.header)
	}
	switch {
	case !found:
		return nil, nil, malformed(p.name, p.reasonMissing())
	case value == nil:
		return nil, nil, malformed(p.name, reasonNull)
	case p.kind == inKey && len(value) > 0 && value[0] == 0:
		return nil, nil, malformed(p.name, reasonKeySchema)
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

const reasonKeySchema = "begins with a zero byte, as keys do whose schema is in a registry; only a key that is text or JSON can be read"

// keyWithoutSchemaID returns a key without the id of a JSON schema. If the schemas of the values
// are not JSON schemas, a key of one digit may be an Avro number: 24 is one byte in Avro, which is
// the digit 0. So this key is returned unchanged.
func (f *decoder) keyWithoutSchemaID(key []byte) []byte {
	inner := WithoutSchemaID(key)
	if f.typed && len(inner) < len(key) && len(inner) == 1 {
		return key
	}
	return inner
}

// noValue returns a fault if a member is missing or null. Otherwise it returns nil.
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

func (p *place) missingValue(m *value) *Fault {
	if m.kind == inArray {
		return malformed(p.name, reasonInArray)
	}
	return malformed(p.name, p.reasonMissing())
}

// unread returns the fault that says why the document of a place cannot be read, or nil.
func (f *decoder) unread(r *reading, p *place) *Fault {
	if p.outer && f.outer != nil {
		return r.outerFault
	}
	return r.documentFault
}

// plainText returns the text of a header or a key, or the reason why the text cannot be read. If
// quoted is true, it also accepts the forms that Kafka Connect's JsonConverter writes. These are a
// JSON string, null, and an envelope with a schema.
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

// correlationHeaders are the headers that may contain a correlation id. The first usable header
// counts.
var correlationHeaders = [...]string{"correlationId", "correlation_id"}

// headerCorrelationID returns the correlation id from the place of the field if this is a header or
// the key. If that gives no usable id, it returns the id from one of correlationHeaders, or "". A
// value that is empty, contains a NUL or is not UTF-8 is skipped. Such a value causes no fault,
// because headers are not a part of the event.
func (f *decoder) headerCorrelationID(r *reading, p *place) string {
	if p.kind == inHeader || p.kind == inKey {
		raw, text, fault := f.textAt(r, p, FieldCorrelationID)
		if fault == nil && len(text) > 0 && !hasNUL(text) {
			return keep(raw, text)
		}
	}
	for i := range f.correlation {
		header := &f.correlation[i]
		if value, _ := firstHeader(r.message.Headers, header.header); len(value) == 0 { // nearly always the case
			continue
		}
		raw, text, fault := f.textAt(r, header, FieldCorrelationID)
		if fault == nil && len(text) > 0 && !hasNUL(text) {
			return keep(raw, text)
		}
	}
	return ""
}

// firstHeader returns the value of the first header with the given name, and whether there is one.
// The value may be null.
func firstHeader(headers []Header, name string) (value []byte, found bool) {
	for i := range headers {
		if headers[i].Key == name {
			return headers[i].Value, true
		}
	}
	return nil, false
}
