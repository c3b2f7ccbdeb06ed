package event

// jsonFormat is the default wire format: one JSON object that holds envelope and
// payload.
type jsonFormat struct{ *decoder }

// NewJSON returns the default wire format.
func NewJSON(opts Options) Format {
	f, err := newJSON(opts)
	if err != nil {
		panic("event: the contract's own names: " + err.Error())
	}
	return f
}

func newJSON(opts Options) (Format, error) {
	f, err := newDecoder(opts, [memberCount]place{
		FieldEventID:       member("eventId"),
		FieldEventType:     member("eventType"),
		FieldAccountID:     member("accountId"),
		FieldVersion:       member("version"),
		FieldOccurredAt:    member("occurredAt"),
		FieldCorrelationID: member("correlationId"),
		FieldData:          member("data"),
		FieldAmount:        member("data", "amount"),
		FieldCurrency:      member("data", "currency"),
	})
	if err != nil {
		return nil, err
	}
	return &jsonFormat{f}, nil
}

// Decode implements Format. What breaks the JSON grammar anywhere in the value
// leaves the event unidentified, whatever could have been read before the break.
func (f *jsonFormat) Decode(m Message, d *Decoded) {
	*d = Decoded{}
	if m.Value == nil {
		d.Tombstone = true
		return
	}
	r := f.begin(&m)
	if err := r.scan(m.Value, f.shape, &r.found); err != nil {
		r.found = members{}
		r.documentFault = syntaxFault(m.Value, err)
	}
	f.judge(r, d)
	f.end(r)
}
