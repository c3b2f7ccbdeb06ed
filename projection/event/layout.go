package event

import (
	"errors"
	"slices"
	"strings"
)

// Field is a field of an event, or another member that a format needs in order to find a field.
type Field uint8

// These are the fields of an event. Data is the JSON object that holds Amount and Currency.
const (
	FieldEventID Field = iota
	FieldEventType
	FieldAccountID
	FieldVersion
	FieldOccurredAt
	FieldCorrelationID
	FieldData
	FieldAmount
	FieldCurrency

	// These members exist only in some formats.
	memberSchema          // in a Kafka Connect envelope
	memberPayload         // in a Kafka Connect envelope
	memberSpecVersion     // in a CloudEvent
	memberDataContentType // in a CloudEvent
	memberDataBase64      // in a CloudEvent

	FieldEnvelope // the member that contains the event, as the mapping declares
	memberNanos   // the nanos of an amount
	memberPart    // the first part of a joined text; the other parts follow

	memberCount = memberPart + mostParts
	memberNone  = memberCount // not a member
)

// mostParts is the largest number of parts that all joined fields may have together. It is small
// because each part needs memory in every reading.
const mostParts = 8

var fieldNames = [...]string{
	"eventId", "eventType", "accountId", "version", "occurredAt", "correlationId", "data", "amount", "currency",
}

// Fields returns the fields of an event.
func Fields() []Field {
	fields := make([]Field, len(fieldNames))
	for i := range fields {
		fields[i] = Field(i)
	}
	return fields
}

// String returns the contract's name of the field.
func (f Field) String() string {
	if f == FieldEnvelope {
		return "envelope"
	}
	if int(f) >= len(fieldNames) {
		return "unknown"
	}
	return fieldNames[f]
}

type placeKind uint8

const (
	nowhere    placeKind = iota
	inDocument           // a member of the JSON document
	inHeader
	inKey
	constant
	joined
)

// place says where a format finds a field, and how the field is written there.
type place struct {
	kind    placeKind
	written Written
	slot    Field    // index of the member's value in members
	quoted  bool     // a header or key may be JSON of Kafka Connect's JsonConverter
	outer   bool     // the member is in the document around the envelope
	record  bool     // the value is the name of the record at the path
	path    []string // path of the member, the outermost name first
	header  string
	name    string // name in faults
	missing string // the reason of a fault if there is no value; empty for reasonMissing
	inner   *shape // shape of the JSON object in a header or key, with the value as memberPart
	text    []byte // text of a constant
	parts   []place
	between byte // the separator of the parts

	optional bool // a part without a value counts as the empty text
	digits   bool // a version in the JSON of a header or key may also be a text
}

// These are parts of the names of places in faults.
const (
	nameKey    = "key"
	nameHeader = "header "
)

func member(path ...string) place {
	return place{kind: inDocument, path: path, name: strings.Join(path, ".")}
}

// reasonMissing returns the reason of a fault if the place has no value.
func (p *place) reasonMissing() string {
	if p.missing != "" {
		return p.missing
	}
	return reasonMissing
}

// isAbsent reports whether a fault means that the place has no value.
func (p *place) isAbsent(fault *Fault) bool {
	return slices.Contains([]string{p.reasonMissing(), reasonMissing, reasonInArray, reasonNull}, fault.Reason)
}

// layout contains the places at which a format has the fields of an event.
type layout struct {
	places [memberCount]place
	data   []string // the path of FieldData
	// at returns the place of a path in the document.
	at func(path []string) (place, error)
	// typed means that the values follow a schema.
	typed bool
	// whole means that the format has all fields of an event in one document. If the mapping
	// declares an envelope, the fields are read from the event inside it.
	whole    bool
	envelope Envelope
}

// apply sets the places that a mapping declares. If fields cannot be at their declared places, its
// error contains one or more *MappingError.
func (l *layout) apply(m Mapping) error {
	l.envelope = m.Envelope
	mistakes := []error{l.applyEnvelope()}
	for _, field := range Fields() {
		p, moved := m.Fields[field]
		if !moved {
			continue
		}
		if err := p.validate(field); err != nil {
			mistakes = append(mistakes, &MappingError{field, err.Error()})
			continue
		}
		switch {
		case p.staysInPlace():
			l.places[field].written = p.Written
		case field < FieldData:
			var err error
			if l.places[field], err = l.place(&p); err != nil {
				mistakes = append(mistakes, &MappingError{field, err.Error()})
			}
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return err
	}
	return l.applyData(m)
}

// applyData sets the places of the data and of the fields in it.
func (l *layout) applyData(m Mapping) error {
	data := l.data
	if p, moved := m.Fields[FieldData]; moved {
		data = p.Path
	}
	within := map[Field]FieldPath{FieldData: {}, FieldAmount: {Path: []string{"amount"}}, FieldCurrency: {Path: []string{"currency"}}}
	if m.Amount.Form == AmountUnits {
		within[memberNanos] = FieldPath{Path: m.Amount.Nanos}
		if amount := m.Fields[FieldAmount]; len(amount.Path) == 0 || amount.Header != "" || amount.Key {
			return &MappingError{FieldAmount, "units and nanos " + errDocumentOnly.Error()}
		}
		if err := validPath(m.Amount.Nanos); err != nil {
			return &MappingError{FieldAmount, err.Error()}
		}
	}
	for _, field := range []Field{FieldData, FieldAmount, FieldCurrency, memberNanos} {
		p, is := within[field]
		if !is {
			continue
		}
		if moved, is := m.Fields[field]; is && moved.staysInPlace() {
			p.Written = moved.Written
		} else if is && field != FieldData {
			p = moved
		}
		if !p.isElsewhere() {
			p.Path = slices.Concat(data, p.Path)
		}
		var err error
		if l.places[field], err = l.place(&p); err != nil {
			return mistakeOf(field, err)
		}
	}
	return nil
}

// isElsewhere reports whether the field has a source other than a path in the event's document.
func (p *FieldPath) isElsewhere() bool {
	return p.Record || p.Header != "" || p.Key || p.Outer != nil || p.Constant != "" || p.Join != nil
}

// place returns the place that a mapping declares for a field.
func (l *layout) place(p *FieldPath) (place, error) {
	made := place{written: p.Written, quoted: true}
	switch {
	case p.Key:
		made.kind, made.name = inKey, nameKey
		return made.holding(p.Path)
	case p.Header != "":
		made.kind, made.header, made.name = inHeader, p.Header, nameHeader+p.Header
		return made.holding(p.Path)
	case p.Constant != "":
		return place{kind: constant, text: []byte(p.Constant), name: "the constant"}, nil
	case p.Join != nil:
		return l.join(p)
	case p.Outer != nil:
		return l.around(p)
	}
	in, err := l.inner(p.Path)
	in.written = p.Written
	if p.Record && err == nil {
		return l.recordName(in)
	}
	return in, err
}

// recordName returns the place of the name of the record that is at the given place.
func (l *layout) recordName(at place) (place, error) {
	if !l.typed || l.envelope.Escaped {
		return at, errors.New("is the name of a record; values in avro and protobuf have one, and JSON has none")
	}
	at.record, at.name = true, strings.TrimSuffix("name of the record "+at.name, " ")
	return at, nil
}

// holding returns the place of a path in the JSON object that a header or the key contains.
func (p place) holding(path []string) (place, error) {
	if len(path) == 0 {
		return p, nil
	}
	p.inner = newShape()
	p.path = path
	p.name += ": " + strings.Join(path, ".")
	if p.written == WrittenUsually {
		p.written = WrittenText
	}
	return p, p.inner.add(memberPart, path)
}

// join returns the place of a text that is joined from several parts.
func (l *layout) join(p *FieldPath) (place, error) {
	made := place{kind: joined, between: p.Separator}
	var names []string
	for i := range p.Join {
		part, err := l.place(&p.Join[i])
		if err != nil {
			return made, err
		}
		part.optional = p.Join[i].Optional
		names = append(names, part.name)
		made.parts = append(made.parts, part)
	}
	made.name = strings.Join(names, " and ")
	return made, nil
}
