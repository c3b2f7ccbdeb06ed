package event

// jsonFormat is the default wire format: one JSON object that holds envelope and
// payload.
type jsonFormat struct{ *decoder }

// NewJSON returns the default wire format with the contract's own names, whatever
// the options' mapping says.
func NewJSON(opts Options) Format {
	opts.Mapping = Mapping{}
	f, err := newJSON(opts)
	if err != nil {
		panic("event: the contract's own names: " + err.Error())
	}
	return f
}

func newJSON(opts Options) (Format, error) {
	f, err := newDecoder(opts, contractLayout())
	if err != nil {
		return nil, err
	}
	return &jsonFormat{f}, nil
}

// contractLayout is where the contract's own format has the fields.
func contractLayout() *layout {
	return &layout{
		places: [memberCount]place{
			FieldEventID:       member("eventId"),
			FieldEventType:     member("eventType"),
			FieldAccountID:     member("accountId"),
			FieldVersion:       member("version"),
			FieldOccurredAt:    member("occurredAt"),
			FieldCorrelationID: member("correlationId"),
		},
		data:   []string{"data"},
		at:     func(path []string) (place, error) { return member(path...), nil },
		quoted: true,
	}
}

// Decode implements Format. What breaks the JSON grammar anywhere in the value
// leaves all that stands in it unread, whatever could have been read before the
// break: half a document proves nothing.
func (f *jsonFormat) Decode(m Message, d *Decoded) {
	*d = Decoded{}
	if m.Value == nil {
		d.Tombstone = true
		return
	}
	r := &reading{jsonScanner: f.scanner(), message: m}
	f.readDocument(r, m.Value, "")
	f.judge(r, d)
	f.end(r)
}
