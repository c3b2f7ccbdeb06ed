package event

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
)

// decoder finds and validates the fields of an event. All formats use it, so the same rules apply
// to all of them. Each format passes it the JSON document of a message, or the values that were
// read with a schema. A decoder is safe for concurrent use.
type decoder struct {
	firstVersion int64
	belowFirst   string // the reason of the fault if a version is lower than firstVersion
	currencies   CurrencySet
	types        typeNames
	shape        *shape // members of the document that is the event
	outer        *shape // members of the document around the event, if there is one
	envelope     Envelope
	series       *shape // path to the entries in an escaped document; nil if it is the array
	seriesName   string // name of the array in faults
	places       [memberCount]place
	typed        bool       // the values follow a schema
	number       numberRule // how a version may be written
	numericTime  bool       // a time may be a number
	timeUnit     TimeUnit   // unit of a time that is a number
	declaredTime TimeUnit   // unit that the mapping declares; RFC3339 if none
	amount       AmountShape
	currency     CurrencyForm
	correlation  [len(correlationHeaders)]place
	scanners     sync.Pool // contains *jsonScanner
}

// newDecoder returns a decoder that finds the fields at the places in l, or at the places in the
// options' mapping.
func newDecoder(opts Options, l *layout) (*decoder, error) {
	if err := l.apply(opts.Mapping); err != nil {
		return nil, err
	}
	f := &decoder{
		firstVersion: opts.FirstVersion,
		belowFirst: fmt.Sprintf("is below the first version, which is %d: if the first event of an account has a lower one, "+
			"set --first-version (FIRST_VERSION) to it, and rebuild with it", opts.FirstVersion),
		currencies:   opts.Currencies,
		types:        opts.typeNames(),
		declaredTime: opts.Mapping.Time,
		amount:       opts.Mapping.Amount,
		currency:     opts.Mapping.Currency,
		envelope:     opts.Mapping.Envelope,
		shape:        newShape(),
		places:       l.places,
		typed:        l.typed,
		scanners:     sync.Pool{New: func() any { return new(jsonScanner) }},
	}
	for i, name := range correlationHeaders {
		f.correlation[i] = place{kind: inHeader, header: name, quoted: l.places[FieldCorrelationID].quoted}
	}
	if f.envelope.isApart() {
		f.outer = newShape()
	}
	if err := f.place(opts.Mapping); err != nil {
		return nil, err
	}
	if err := f.placeSeries(); err != nil {
		return nil, err
	}
	return f, nil
}

// decode decodes the message of a reading and ends the reading. It is called for the result of
// opener.open, which is nil for a tombstone.
func (f *decoder) decode(r *reading, d *Decoded) {
	*d = Decoded{}
	if f == nil {
		d.Tombstone = true
		return
	}
	f.validate(r, d)
	f.end(r)
}

// begin gives the reading a scanner from the pool.
func (f *decoder) begin(r *reading) {
	r.jsonScanner = f.scanners.Get().(*jsonScanner) //nolint:forcetypeassert // the pool holds nothing else
}

// end returns the scanner to the pool.
func (f *decoder) end(r *reading) {
	r.release()
	f.scanners.Put(r.jsonScanner)
}

// readDocument finds the members of the document. The parameter field is the document's name in
// faults.
func (f *decoder) readDocument(r *reading, document []byte, field string) {
	if f.envelope.isApart() {
		f.readAround(r, document, field)
		return
	}
	if err := r.scan(document, f.shape, &r.found); err != nil {
		r.unreadable(syntaxFault(field, document, err))
	}
}

// readAround finds the members of a document and of the event's document inside it.
func (f *decoder) readAround(r *reading, document []byte, field string) {
	switch {
	case len(f.places[FieldEnvelope].path) == 0: // the whole document is the envelope
		text := bytes.Trim(document, whiteSpace)
		r.found[FieldEnvelope] = value{raw: text}
		if !bytes.HasPrefix(text, []byte{'"'}) {
			break
		}
		if _, err := r.scanText(text); err != nil { // it must be one string with nothing after it
			r.unreadable(syntaxFault(field, document, err))
		}
	default:
		if err := r.scan(document, f.outer, &r.found); err != nil {
			r.unreadable(syntaxFault(field, document, err))
		}
	}
	f.readApart(r)
}

// readDataDocument finds the members of a document that contains only the data. Some producers
// write null if there is no data. Null is a fault only if the event's type needs data.
func (f *decoder) readDataDocument(r *reading, document []byte, field string) {
	if isNullDocument(document) {
		r.found[FieldData] = value{raw: jsonNull}
		return
	}
	f.readDocument(r, document, field)
}

func isNullDocument(document []byte) bool {
	return string(bytes.Trim(document, whiteSpace)) == "null"
}

// unreadable sets the fault of the document and removes all members that were found in it.
func (r *reading) unreadable(fault *Fault) {
	r.found = members{}
	r.documentFault = fault
}

// validate checks the fields in the order that the contract defines. The ids and the version come
// first, because a duplicate must be recognised even if the event has other faults. The data comes
// last.
func (f *decoder) validate(r *reading, d *Decoded) {
	correlationFault := f.readCorrelationID(r, &d.Event)
	identityFault := f.readIdentity(r, &d.Event)
	typeFault := f.readType(r, &d.Event)
	if identityFault != nil {
		if d.Event.Type == Ignorable {
			d.Skip = true
			return
		}
		d.Fault = identityFault
		return
	}
	d.Identity = Identified
	timeFault := f.readOccurredAt(r, &d.Event)
	d.Fault = firstFault(r.envelopeFault, typeFault, timeFault, correlationFault)
	if d.Fault != nil {
		return
	}
	switch d.Event.Type {
	case Unknown:
		d.Fault = f.unknownType()
	case Ignorable: // the data is not read
	case Custom:
		d.Fault = f.readCustomData(r, &d.Event)
	default:
		d.Fault = f.readData(r, &d.Event)
	}
}

// firstFault returns the first fault that is not nil.
func firstFault(faults ...*Fault) *Fault {
	for _, fault := range faults {
		if fault != nil {
			return fault
		}
	}
	return nil
}

// readIdentity sets the event id, the account id and the version as far as they can be read. It
// returns the first fault.
func (f *decoder) readIdentity(r *reading, ev *Event) *Fault {
	var idFault, accountFault, versionFault *Fault
	ev.ID, idFault = f.readID(r, FieldEventID)
	ev.AccountID, accountFault = f.readID(r, FieldAccountID)
	ev.Version, versionFault = f.readVersion(r)
	return firstFault(idFault, accountFault, versionFault)
}

func (f *decoder) readID(r *reading, field Field) (string, *Fault) {
	raw, text, fault := f.text(r, field)
	if fault != nil {
		return "", fault
	}
	reason := idReason(text)
	if field == FieldEventID && r.message.Entry > 0 && f.envelope.Entries != nil && reason == "" {
		raw, text = nil, entryID(text, r.message.Entry)
		reason = idReason(text)
	}
	if reason != "" {
		return "", malformed(f.places[field].name, reason)
	}
	return keep(raw, text), nil
}

// readType sets the event's type. It returns no fault for an unknown type, because faults of the
// identity and of the time are reported first.
func (f *decoder) readType(r *reading, ev *Event) *Fault {
	raw, text, fault := f.text(r, FieldEventType)
	if fault != nil {
		return fault
	}
	named := f.types.resolve(text)
	if ev.Type, ev.TypeName = named.kind, named.name; named.name == "" {
		ev.TypeName = keep(raw, text)
	}
	if named.signed != nil {
		return f.readSign(r, ev, named.signed)
	}
	return nil
}

// readVersion reads a version. A JSON number must be written as an integer, so 1.0 and 1e0 are
// refused.
func (f *decoder) readVersion(r *reading) (int64, *Fault) {
	p, m := &f.places[FieldVersion], &r.found[FieldVersion]
	var version int64
	var reason string
	switch {
	case m.isNumber() && p.written == WrittenUsually:
		version, reason = f.parseVersion(m.raw)
	case f.number == numberOnly && p.written == WrittenUsually && !m.absent() && !m.isNull():
		reason = f.notNumber()
	default:
		_, text, fault := f.text(r, FieldVersion)
		if fault != nil {
			return 0, fault
		}
		version, reason = f.parseVersion(text)
	}
	if reason != "" {
		return 0, malformed(p.name, reason)
	}
	return version, nil
}

func (f *decoder) readOccurredAt(r *reading, ev *Event) *Fault {
	if m := &r.found[FieldOccurredAt]; m.kind == instant {
		micros, _ := strconv.ParseInt(string(m.raw), 10, 64) // cannot fail: Values.Instant wrote the digits
		return f.keepTime(ev, micros, timeReason(micros))
	}
	if f.declaredTime != RFC3339 {
		return f.readDeclaredTime(r, ev)
	}
	_, text, fault := f.text(r, FieldOccurredAt)
	if fault != nil {
		return fault
	}
	micros, ok := parseTimestamp(text)
	reason := ""
	switch {
	case ok:
	case f.numericTime:
		micros, reason = f.timeUnit.parse(text)
	default:
		reason = reasonNotTime
	}
	return f.keepTime(ev, micros, reason)
}

// readDeclaredTime sets the time of the event from the unit that the mapping declares. In a
// document, a time that counts from 1970 must be a JSON number, because a text could also be a date
// without separators.
func (f *decoder) readDeclaredTime(r *reading, ev *Event) *Fault {
	p, m := &f.places[FieldOccurredAt], &r.found[FieldOccurredAt]
	text := m.raw
	switch {
	case f.declaredTime != Date && m.isNumber():
	case f.declaredTime != Date && p.kind == inDocument && !m.absent() && !m.isNull():
		return malformed(p.name, f.declaredTime.reasonNotCount())
	default:
		var fault *Fault
		if _, text, fault = f.text(r, FieldOccurredAt); fault != nil {
			return fault
		}
	}
	micros, reason := f.declaredTime.parseDeclared(text)
	return f.keepTime(ev, micros, reason)
}

func (f *decoder) keepTime(ev *Event, micros int64, reason string) *Fault {
	if reason != "" {
		return malformed(f.places[FieldOccurredAt].name, reason)
	}
	ev.OccurredAt = micros
	return nil
}

// readCorrelationID sets the correlation id from the document. If the correlation id is missing,
// null or empty there, it is read from the headers.
func (f *decoder) readCorrelationID(r *reading, ev *Event) *Fault {
	p := &f.places[FieldCorrelationID]
	m := &r.found[FieldCorrelationID]
	if p.kind != inDocument || m.absent() || m.isNull() {
		ev.CorrelationID = f.headerCorrelationID(r, p)
		return nil
	}
	raw, text, fault := f.text(r, FieldCorrelationID)
	switch {
	case fault != nil:
		return fault
	case hasNUL(text):
		return malformed(p.name, reasonNUL)
	case len(text) == 0:
		ev.CorrelationID = f.headerCorrelationID(r, p)
	default:
		ev.CorrelationID = keep(raw, text)
	}
	return nil
}
