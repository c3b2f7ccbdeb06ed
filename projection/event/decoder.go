package event

import (
	"bytes"
	"strconv"
	"sync"
)

// decoder is what all formats share: it knows where each field is and validates
// them by one set of rules. A format sets it up and, for each message, says where
// the JSON document is. It is safe for concurrent use.
type decoder struct {
	firstVersion  int64
	currencies    CurrencySet
	types         typeNames
	shape         *shape // of the document that is the event
	outer         *shape // of the document around it, when that is apart
	envelope      Envelope
	series        *shape // where the array of entries is in an escaped document; nil: it is the document
	seriesName    string // of the array
	places        [memberCount]place
	typed         bool       // the document follows a schema that has types of its own
	number        numberRule // how a version may be written
	numericTime   bool       // a time may be a number,
	timeUnit      TimeUnit   // and means that
	declaredTime  TimeUnit   // the only way a time is written, when the mapping says so
	amount        AmountShape
	lowerCurrency bool
	scanners      sync.Pool // of *jsonScanner
}

// newDecoder returns a decoder for events that are laid out like l, but for what the
// options' mapping moves.
func newDecoder(opts Options, l *layout) (*decoder, error) {
	if err := l.apply(opts.Mapping); err != nil {
		return nil, err
	}
	f := &decoder{
		firstVersion:  opts.FirstVersion,
		currencies:    opts.Currencies,
		types:         opts.typeNames(),
		declaredTime:  opts.Mapping.Time,
		amount:        opts.Mapping.Amount,
		lowerCurrency: opts.Mapping.LowerCurrency,
		envelope:      opts.Mapping.Envelope,
		shape:         newShape(),
		places:        l.places,
		scanners:      sync.Pool{New: func() any { return new(jsonScanner) }},
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

func (f *decoder) scanner() *jsonScanner {
	return f.scanners.Get().(*jsonScanner) //nolint:forcetypeassert // the pool holds nothing else
}

// end returns the scanner to the pool.
func (f *decoder) end(r *reading) {
	r.release()
	f.scanners.Put(r.jsonScanner)
}

// readDocument finds the document's members; a fault is named after field.
func (f *decoder) readDocument(r *reading, document []byte, field string) {
	if f.envelope.isApart() {
		f.readAround(r, document, field)
		return
	}
	if err := r.scan(document, f.shape, &r.found); err != nil {
		r.unreadable(syntaxFault(document, err), field)
	}
}

// readAround finds the members of a document that holds the event as another one.
func (f *decoder) readAround(r *reading, document []byte, field string) {
	switch {
	case len(f.places[FieldEnvelope].path) == 0: // nothing is around it
		text := bytes.Trim(document, whiteSpace)
		r.found[FieldEnvelope] = value{raw: text}
		if !bytes.HasPrefix(text, []byte{'"'}) {
			break
		}
		if _, err := r.scanText(text); err != nil { // no scan has checked that it is one string
			r.unreadable(syntaxFault(document, err), field)
		}
	default:
		if err := r.scan(document, f.outer, &r.found); err != nil {
			r.unreadable(syntaxFault(document, err), field)
		}
	}
	f.readApart(r)
}

// readDataDocument finds the members of a document that is data alone. One of null,
// which some producers write when there is none, is no fault yet.
func (f *decoder) readDataDocument(r *reading, document []byte, field string) {
	if isNullDocument(document) {
		r.found[FieldData] = value{raw: jsonNull}
		return
	}
	f.readDocument(r, document, field)
}

// isNullDocument reports whether a document is JSON null.
func isNullDocument(document []byte) bool {
	return string(bytes.Trim(document, whiteSpace)) == "null"
}

// unreadable notes that nothing of the document can be believed.
func (r *reading) unreadable(fault *Fault, field string) {
	r.found = members{}
	fault.Field = field
	r.documentFault = fault
}

// validate checks the fields in the order of the contract: identity first, because a
// duplicate is decided on it whatever else is wrong, then the envelope, then data.
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
	case Ignorable: // its data is not looked at
	case Taken:
		d.Fault = f.takeData(r, &d.Event)
	default:
		d.Fault = f.readData(r, &d.Event)
	}
}

// firstFault returns the first that is not nil.
func firstFault(faults ...*Fault) *Fault {
	for _, fault := range faults {
		if fault != nil {
			return fault
		}
	}
	return nil
}

// readIdentity sets what it can read of event id, account id and version, and
// returns the fault of the first that breaks its rules.
func (f *decoder) readIdentity(r *reading, ev *Event) *Fault {
	var idFault, accountFault, versionFault *Fault
	ev.ID, idFault = f.readID(r, FieldEventID)
	ev.AccountID, accountFault = f.readID(r, FieldAccountID)
	ev.Version, versionFault = f.readVersion(r)
	return firstFault(idFault, accountFault, versionFault)
}

// readID reads an event id or an account id.
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

// readType sets the type; one that is neither known nor ignorable is no fault yet.
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

// readVersion reads a version. In a document it is an integer: a JSON number also in
// its spelling, so neither 1.0 nor 1e0.
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

// readOccurredAt sets the time of the event.
func (f *decoder) readOccurredAt(r *reading, ev *Event) *Fault {
	if m := &r.found[FieldOccurredAt]; m.kind == instant {
		micros, _ := strconv.ParseInt(string(m.raw), 10, 64) // as Values has written it
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

// readDeclaredTime sets the time of the event where the mapping says what it counts. In a
// document a count is a number: text has no type that would show another meaning.
func (f *decoder) readDeclaredTime(r *reading, ev *Event) *Fault {
	p, m := &f.places[FieldOccurredAt], &r.found[FieldOccurredAt]
	text := m.raw
	switch {
	case f.declaredTime != Date && m.isNumber():
	case f.declaredTime != Date && p.kind == inDocument && !m.absent() && !m.isNull():
		return malformed(p.name, reasonNotCount)
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

// readCorrelationID sets the correlation id from the document, or from the headers
// when that has none: no member, null or an empty string.
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
