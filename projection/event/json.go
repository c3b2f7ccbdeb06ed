package event

import "sync"

// jsonFormat is the default wire format: one JSON object that holds envelope and
// payload. It is safe for concurrent use.
type jsonFormat struct {
	firstVersion int64
	currencies   CurrencySet
	types        typeNames
	scanners     sync.Pool // of *jsonScanner
}

// NewJSON returns the default wire format.
func NewJSON(opts Options) Format {
	return &jsonFormat{
		firstVersion: opts.FirstVersion,
		currencies:   opts.Currencies,
		types:        newTypeNames(opts.Ignore),
		scanners:     sync.Pool{New: func() any { return new(jsonScanner) }},
	}
}

// Decode implements Format. What breaks the JSON grammar anywhere in the value
// leaves the event unidentified, whatever could have been read before the break:
// half a document proves nothing.
func (f *jsonFormat) Decode(m Message, d *Decoded) {
	*d = Decoded{}
	if m.Value == nil {
		d.Tombstone = true
		return
	}
	s := f.scanners.Get().(*jsonScanner) //nolint:forcetypeassert // the pool holds nothing else
	var e jsonEnvelope
	if err := s.scan(m.Value, &e); err != nil {
		d.Event.CorrelationID = headerCorrelationID(m.Headers)
		d.Fault = syntaxFault(m.Value, err)
	} else {
		f.judge(s, &e, m.Headers, d)
	}
	s.release()
	f.scanners.Put(s)
}

// judge checks the members in the order of the contract: identity first, because a
// duplicate is decided on it whatever else is wrong, then the envelope, then data.
func (f *jsonFormat) judge(s *jsonScanner, e *jsonEnvelope, headers []Header, d *Decoded) {
	correlationFault := readCorrelationID(s, e.correlationID, headers, &d.Event)
	identityFault := f.readIdentity(s, e, &d.Event)
	typeFault := f.readType(s, e.eventType, &d.Event)
	if identityFault != nil {
		if d.Event.Type == Ignorable {
			d.Skip = true
			return
		}
		d.Fault = identityFault
		return
	}
	d.Identity = Identified
	timeFault := readOccurredAt(s, e.occurredAt, &d.Event)
	d.Fault = firstFault(typeFault, timeFault, correlationFault)
	if d.Fault != nil {
		return
	}
	switch d.Event.Type {
	case Unknown:
		d.Fault = &Fault{Class: UnknownEventType, Field: "eventType", Reason: "is neither a known event type nor one to ignore"}
	case Ignorable: // its data is not looked at
	default:
		d.Fault = f.readData(s, e, &d.Event)
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
func (f *jsonFormat) readIdentity(s *jsonScanner, e *jsonEnvelope, ev *Event) *Fault {
	var idFault, accountFault, versionFault *Fault
	ev.ID, idFault = readID(s, "eventId", e.eventID)
	ev.AccountID, accountFault = readID(s, "accountId", e.accountID)
	ev.Version, versionFault = f.readVersion(e.version)
	return firstFault(idFault, accountFault, versionFault)
}

// readID reads an event id or an account id.
func readID(s *jsonScanner, field string, m jsonMember) (string, *Fault) {
	text, fault := requiredText(s, field, m)
	if fault != nil {
		return "", fault
	}
	if reason := idReason(text); reason != "" {
		return "", malformed(field, reason)
	}
	return view(m, text), nil
}

// readVersion reads a version: a JSON number, and an integer also in its spelling,
// so neither 1.0 nor 1e0.
func (f *jsonFormat) readVersion(m jsonMember) (int64, *Fault) {
	const field = "version"
	switch {
	case m.absent():
		return 0, malformed(field, reasonMissing)
	case m.isNull():
		return 0, malformed(field, reasonNull)
	case !m.isNumber():
		return 0, malformed(field, "is not a JSON number")
	}
	version, reason := parseVersion(m, f.firstVersion)
	if reason != "" {
		return 0, malformed(field, reason)
	}
	return version, nil
}

// readType sets the type; one that is neither known nor ignorable is no fault yet.
func (f *jsonFormat) readType(s *jsonScanner, m jsonMember, ev *Event) *Fault {
	text, fault := requiredText(s, "eventType", m)
	if fault != nil {
		return fault
	}
	named := f.types.resolve(text)
	ev.Type, ev.TypeName = named.kind, named.name
	return nil
}

// readOccurredAt sets the time of the event.
func readOccurredAt(s *jsonScanner, m jsonMember, ev *Event) *Fault {
	const field = "occurredAt"
	text, fault := requiredText(s, field, m)
	if fault != nil {
		return fault
	}
	micros, ok := parseTimestamp(text)
	if !ok {
		return malformed(field, "is not an RFC 3339 time with offset")
	}
	ev.OccurredAt = micros
	return nil
}

// readCorrelationID sets the correlation id from the payload, or from the headers
// when the payload has none: no member, null or an empty string.
func readCorrelationID(s *jsonScanner, m jsonMember, headers []Header, ev *Event) *Fault {
	if m.absent() || m.isNull() {
		ev.CorrelationID = headerCorrelationID(headers)
		return nil
	}
	const field = "correlationId"
	text, fault := requiredText(s, field, m)
	switch {
	case fault != nil:
		return fault
	case hasNUL(text):
		return malformed(field, reasonNUL)
	case len(text) == 0:
		ev.CorrelationID = headerCorrelationID(headers)
	default:
		ev.CorrelationID = view(m, text)
	}
	return nil
}

// requiredText returns what a member says that must be there and be a string. The
// text is valid until the next call of s.
func requiredText(s *jsonScanner, field string, m jsonMember) ([]byte, *Fault) {
	switch {
	case m.absent():
		return nil, malformed(field, reasonMissing)
	case m.isNull():
		return nil, malformed(field, reasonNull)
	case !m.isString():
		return nil, malformed(field, reasonNotString)
	}
	return s.text(m), nil
}
