package event

import (
	"bytes"
)

// connectPrefix is how every value begins that Kafka Connect's JsonConverter writes
// with schemas.enable=true: {"schema":…,"payload":…}.
var connectPrefix = []byte(`{"schema":`)

// connectShape finds the two parts of such an envelope.
var connectShape = &shape{self: memberNone, members: []shapeMember{
	newShapeMember("schema", memberSchema), newShapeMember("payload", memberPayload),
}}

func isConnectEnvelope(value []byte) bool { return bytes.HasPrefix(value, connectPrefix) }

// envelopeText returns the text in the envelope of a header or a key; a number's is
// its digits.
func (r *reading) envelopeText(value []byte) (raw, text []byte, reason string) {
	var found members
	if err := r.scan(value, connectShape, &found); err != nil {
		return nil, nil, "begins like an envelope with a schema and is not well-formed JSON"
	}
	switch m := &found[memberPayload]; {
	case m.absent():
		return value, value, "" // it only looks like one
	case m.isNull():
		return nil, nil, reasonNull
	case m.isString():
		return m.raw, r.text(m), ""
	case m.isNumber():
		return m.raw, m.raw, ""
	}
	return nil, nil, "is an envelope with a schema whose payload is neither text nor a number"
}

// connectDocument returns the JSON document that Kafka Connect made of a JSON
// column: the value itself, or what an escaped string or an envelope with a schema
// holds.
func (r *reading) connectDocument(value []byte) ([]byte, *Fault) {
	if isConnectEnvelope(value) {
		var found members
		if err := r.scan(value, connectShape, &found); err != nil {
			return nil, syntaxFault(value, err)
		}
		if !found[memberPayload].absent() {
			value = found[memberPayload].raw
		}
	}
	if trimmed := bytes.TrimLeft(value, whiteSpace); len(trimmed) == 0 || trimmed[0] != '"' {
		return value, nil
	}
	text, err := r.scanText(value)
	if err != nil {
		return nil, syntaxFault(value, err)
	}
	return bytes.Clone(text), nil // the event keeps parts of it
}
