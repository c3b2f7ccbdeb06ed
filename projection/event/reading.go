package event

import "unicode/utf8"

// valueKind says how a value is written.
type valueKind uint8

const (
	asJSON  valueKind = iota // as JSON text
	plain                    // as the text it is, without quotes
	exact                    // as the digits of a schema's decimal
	inexact                  // as a float
	instant                  // as microseconds since the Unix epoch, UTC
	inArray                  // there is none: its path leads through an array
)

// value is what a place of a document has, before validation. It is empty if the document does not
// have the place. A schema's value without a valueKind of its own is written as JSON.
type value struct {
	raw  []byte
	kind valueKind
	// verbatim: it has no escapes if it is a JSON string.
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

// text returns the text of a field that must have one. raw is the part of the message that it was
// read from, or nil. Both are valid until the next call of r.
func (f *decoder) text(r *reading, field Field) (raw, text []byte, fault *Fault) {
	return f.textAt(r, &f.places[field], field)
}

// textAt returns the text at a place, as text does.
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

// textElsewhere returns the text at a place that is not in the document.
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

// noValue returns the fault of a member that is missing or null. Otherwise it returns nil.
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

// unread returns why the document that has a place cannot be read, or nil.
func (f *decoder) unread(r *reading, p *place) *Fault {
	if p.outer && f.outer != nil {
		return r.outerFault
	}
	return r.documentFault
}

// plainText returns the text of a header or a key, or the reason why there is none. If quoted, it
// also reads what Kafka Connect's JsonConverter writes: a JSON string, null, or an envelope with a
// schema.
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

// correlationHeaders are the headers that may have a correlation id. The first counts.
var correlationHeaders = [...]string{"correlationId", "correlation_id"}

// headerCorrelationID returns the correlation id at the place of the field if that is a header or
// the key, else that in correlationHeaders, or "". A value that is empty, has a NUL or is no UTF-8 is
// skipped: a header is no part of the event and never makes it malformed.
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

// firstHeader returns the value of the first header of that name, which may be null, and whether
// there is one.
func firstHeader(headers []Header, name string) (value []byte, found bool) {
	for i := range headers {
		if headers[i].Key == name {
			return headers[i].Value, true
		}
	}
	return nil, false
}
