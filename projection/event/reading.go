package event

import "unicode/utf8"

// valueKind says how a value is written.
type valueKind uint8

const (
	asJSON  valueKind = iota // as JSON text
	plain                    // as the text it is, without quotes
	instant                  // as microseconds since the Unix epoch, UTC
)

// value is what was found in a place of a document, not validated. It is empty when the
// place is not there. What is no JSON and has no type of its own here is written as the
// JSON that is validated alike.
type value struct {
	raw  []byte
	kind valueKind
}

func (v *value) begins() byte {
	if v.kind == asJSON && len(v.raw) > 0 {
		return v.raw[0]
	}
	return 0
}

func (v *value) absent() bool   { return v.kind == asJSON && len(v.raw) == 0 }
func (v *value) isNull() bool   { return v.begins() == 'n' }
func (v *value) isString() bool { return v.begins() == '"' || v.kind == plain }
func (v *value) isObject() bool { return v.begins() == '{' }
func (v *value) isNumber() bool {
	c := v.begins()
	return c == '-' || c >= '0' && c <= '9'
}

// members holds what was found, by field.
type members [memberCount]value

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

// readData validates data by what the event's type needs of it: first its shape, then
// the currency, then the amount, which has no meaning without one.
func (f *decoder) readData(r *reading, ev *Event) *Fault {
	if fault := firstFault(r.documentFault, r.dataFault); fault != nil {
		return fault
	}
	movesMoney, needsCurrency := ev.Type.MovesMoney(), !ev.Type.meaning().dataOptional
	if fault := f.dataShape(&r.found, movesMoney, needsCurrency); fault != nil {
		return fault
	}
	if !r.found[FieldCurrency].isString() { // of a type that may go without
		return nil
	}
	currency, fault := supportedCurrency(f.places[FieldCurrency].name, r.text(&r.found[FieldCurrency]), f.currencies)
	if fault != nil {
		return fault
	}
	var amount int64
	if movesMoney {
		amount, fault = validAmount(f.places[FieldAmount].name, r.text(&r.found[FieldAmount]), currency)
		if fault != nil {
			return fault
		}
	}
	ev.Currency, ev.Amount = currency, amount
	return nil
}

// noData stands for data that is not there.
const noData = "{}"

// takeData sets data as it is, for a projection that knows what it means: any object.
func (f *decoder) takeData(r *reading, ev *Event) *Fault {
	if fault := firstFault(r.documentFault, r.dataFault); fault != nil {
		return fault
	}
	switch data := &r.found[FieldData]; {
	case data.absent() || data.isNull():
		ev.Data = noData
	case data.isObject():
		ev.Data = keep(data.raw, data.raw)
	default:
		return malformed(f.places[FieldData].name, reasonNotObject)
	}
	return nil
}

// dataShape checks that data, amount and currency are there as far as they are
// needed, and of the right type. An amount in a type that has none is an
// unknown field like any other.
func (f *decoder) dataShape(found *members, needsAmount, needsCurrency bool) *Fault {
	data, name := &found[FieldData], f.places[FieldData].name
	switch {
	case data.isObject():
	case !needsCurrency && (data.absent() || data.isNull()):
		return nil
	case data.absent():
		return malformed(name, reasonMissing)
	case data.isNull():
		return malformed(name, reasonNull)
	default:
		return malformed(name, reasonNotObject)
	}
	if needsAmount {
		if fault := amountShape(f.places[FieldAmount].name, &found[FieldAmount]); fault != nil {
			return fault
		}
	}
	return currencyShape(f.places[FieldCurrency].name, &found[FieldCurrency], needsCurrency)
}

// amountShape refuses a number too: it may have gone through a float.
func amountShape(name string, m *value) *Fault {
	switch {
	case m.absent():
		return malformed(name, reasonMissing)
	case m.isNull():
		return malformed(name, reasonNull)
	case m.isNumber():
		return &Fault{Class: MalformedPayload, Field: name, Reason: "is a number instead of a decimal string", ByProducer: true}
	case !m.isString():
		return malformed(name, reasonNotString)
	}
	return nil
}

func currencyShape(name string, m *value, needed bool) *Fault {
	switch {
	case !needed && (m.absent() || m.isNull()):
		return nil
	case m.absent():
		return malformed(name, reasonMissing)
	case m.isNull():
		return malformed(name, reasonNull)
	case !m.isString():
		return malformed(name, reasonNotString)
	}
	return nil
}

// correlationHeaders are the Kafka headers that may carry a correlation id, in
// order of preference.
var correlationHeaders = [...]string{"correlationId", "correlation_id"}

// headerCorrelationID returns the correlation id a message's headers carry, or "";
// a header that is the field's own place comes first. Of several headers with one
// name the first counts. A value that is empty, has a NUL or is no UTF-8 counts as
// none: it is a hint beside the event, not a part of it, so it never makes an event
// malformed.
func (r *reading) headerCorrelationID(p *place) string {
	if p.kind == inHeader {
		if id := r.correlationHeader(p.header, p.quoted); id != "" {
			return id
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
