package event

import "unicode/utf8"

// text returns what a field says that must be there and be text. raw is the part of
// the message it was read from. Both are valid until the next call of r.
func (f *decoder) text(r *reading, field Field) (raw, text []byte, fault *Fault) {
	p := &f.places[field]
	if p.kind == inDocument {
		if m := &r.found[field]; m.isString() {
			return m.raw, r.text(m), nil
		}
		return nil, nil, f.noDocumentText(r, field)
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
	}
	raw, text, reason := r.plainText(value, p.quoted)
	if reason != "" {
		return nil, nil, malformed(p.name, reason)
	}
	return raw, text, nil
}

// noDocumentText is the fault of a field that stands in the document and is no text
// there.
func (f *decoder) noDocumentText(r *reading, field Field) *Fault {
	p, m := &f.places[field], &r.found[field]
	switch {
	case r.documentFault != nil:
		return r.documentFault
	case m.absent():
		return malformed(p.name, p.reasonMissing())
	case m.isNull():
		return malformed(p.name, reasonNull)
	}
	return malformed(p.name, f.notString(field))
}

// plainText returns what a header or a key says; reason is why it says nothing.
// Where it may be JSON, a quoted text, an envelope with a schema and null are read
// as Kafka Connect's JsonConverter means them.
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
