package event

import (
	"strconv"
	"strings"
	"time"
)

// FieldReading is the result of reading one field of a message.
type FieldReading struct {
	Field string // the contract's name
	From  string // a path, a header or the key
	Value string // empty if there is no value or if Fault is set
	Fault *Fault
}

// opener is a format whose messages can be read field by field.
type opener interface {
	// open finds the members of r.message, and stores them in r. It returns the decoder that reads
	// the fields from r, or nil for a tombstone. The caller must call the method end of the decoder
	// when it no longer uses r.
	open(r *reading) *decoder
	// list returns the places at which the format finds the fields.
	list() []FieldPlace
}

// Explain reads a message field by field, and returns the value or the fault of each field that the
// event's type has. A missing correlation id is left out. For a tombstone, Explain returns nil.
func Explain(format Format, m Message) []FieldReading {
	o, is := format.(opener)
	if !is {
		return nil
	}
	r := reading{message: m}
	f := o.open(&r)
	if f == nil {
		return nil
	}
	defer f.end(&r)
	return f.explain(&r)
}

func (f *decoder) explain(r *reading) []FieldReading {
	var d Decoded
	ev := &d.Event
	var all []FieldReading
	add := func(field Field, value string, fault *Fault) {
		if fault != nil {
			value = ""
		}
		all = append(all, FieldReading{field.String(), f.places[field].name, value, fault})
	}
	if r.envelopeFault != nil {
		all = append(all, FieldReading{FieldEnvelope.String(), r.envelopeFault.Field, "", r.envelopeFault})
	}
	id, fault := f.readID(r, FieldEventID)
	add(FieldEventID, id, fault)
	account, fault := f.readID(r, FieldAccountID)
	add(FieldAccountID, account, fault)
	version, fault := f.readVersion(r)
	add(FieldVersion, strconv.FormatInt(version, 10), fault)
	typeFault := f.readType(r, ev)
	if typeFault == nil && ev.Type == Unknown {
		typeFault = f.unknownType()
	}
	add(FieldEventType, ev.TypeName, typeFault)
	fault = f.readOccurredAt(r, ev)
	add(FieldOccurredAt, time.UnixMicro(ev.OccurredAt).UTC().Format(time.RFC3339Nano), fault)
	if fault = f.readCorrelationID(r, ev); fault != nil || ev.CorrelationID != "" {
		add(FieldCorrelationID, ev.CorrelationID, fault)
	}
	f.explainData(r, ev, add)
	return all
}

// explainData adds the fields of the data that the event's type needs. An unknown type may need all
// of them.
func (f *decoder) explainData(r *reading, ev *Event, add func(field Field, value string, fault *Fault)) {
	if ev.Type == Ignorable {
		return
	}
	if ev.Type == Custom {
		add(FieldData, "", f.readCustomData(r, ev))
		return
	}
	movesMoney := ev.Type == Unknown || ev.Type.MovesMoney()
	if fault := f.dataFault(r); fault != nil {
		add(FieldData, "", fault)
		return
	}
	code, fault := f.dataShape(r, false, !ev.Type.meaning().dataOptional)
	if fault != nil && fault.Field == f.places[FieldData].name {
		add(FieldData, "", fault)
		return
	}
	var currency Currency
	if fault == nil && code != nil {
		currency, fault = f.supportedCurrency(code)
	}
	if fault != nil || code != nil {
		add(FieldCurrency, currency.Code(), fault)
	}
	if !movesMoney {
		return
	}
	amount := ""
	if fault = f.amountShape(r); fault == nil {
		if currency.IsZero() {
			fault = f.readNumber(r)
		} else {
			var minor int64
			if minor, fault = f.readAmount(r, currency); fault == nil {
				amount = FormatAmount(minor, currency)
			}
		}
	}
	add(FieldAmount, amount, fault)
}

func (f *decoder) unknownType() *Fault {
	return &Fault{Class: UnknownEventType, Field: f.places[FieldEventType].name, Reason: "is neither a known event type nor one to ignore"}
}

// FieldPlace says in words where a field is and how it is written there.
type FieldPlace struct{ Field, From, Written string }

// Places lists the places at which a format finds the fields, in the order of Fields. Data is not
// listed, because amount and currency have full paths. For mistakes in the mapping, the error
// contains one or more *MappingError.
func Places(format string, opts Options) ([]FieldPlace, error) {
	if format == FormatAvro || format == FormatProtobuf {
		records, err := NewRecords(opts)
		if err != nil {
			return nil, err
		}
		return records.decoder.list(), nil
	}
	made, err := New(format, opts)
	if err != nil {
		return nil, err
	}
	return made.(opener).list(), nil //nolint:forcetypeassert // all formats are openers
}

func (f *cloudEventsFormat) list() []FieldPlace { return f.structured.list() }
func (f *recordFormat) list() []FieldPlace      { return f.decoder.list() }

func (f *decoder) list() (all []FieldPlace) {
	for _, field := range Fields() {
		p := &f.places[field]
		if field == FieldData || p.kind == nowhere {
			continue
		}
		all = append(all, FieldPlace{field.String(), f.from(field), f.howWritten(field)})
	}
	return all
}

func (f *decoder) from(field Field) string {
	p := &f.places[field]
	switch {
	case p.kind == constant:
		return "constant " + string(p.text)
	case field == FieldEventID && f.envelope.Entries != nil:
		return p.name + " and the index of the entry"
	case field == FieldAmount && f.amount.Form == AmountUnits:
		return p.name + " and " + f.places[memberNanos].name
	}
	return p.name
}

// howWritten returns how a field is written, in the words of a mapping file.
func (f *decoder) howWritten(field Field) string {
	p := &f.places[field]
	switch {
	case field == FieldAmount:
		return f.amount.String()
	case field == FieldOccurredAt:
		return f.declaredTime.String()
	case field == FieldCurrency && f.currency == CurrencyLower:
		return "lower"
	case field == FieldCurrency && f.currency == CurrencyNumeric:
		return strings.TrimSpace("numeric code " + p.written.String())
	case p.kind == joined:
		return "joined"
	case p.written != WrittenUsually:
		return p.written.String()
	case field == FieldVersion:
		return WrittenInteger.String()
	}
	return WrittenText.String()
}

// String returns how amounts are written, in the words of a mapping file.
func (s AmountShape) String() string {
	text, zeros := "", ""
	if s.Text {
		text = " as text"
	}
	if s.DropZeros {
		zeros = ", zeros dropped"
	}
	switch s.Form {
	case AmountNumber:
		return "number" + zeros
	case AmountMinor:
		return "minor units" + text
	case AmountScaled:
		return "scale " + strconv.Itoa(s.Scale) + text
	case AmountUnits:
		return "units and nanos"
	default:
		return "decimal text" + zeros
	}
}
