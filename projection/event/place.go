package event

import (
	"errors"
	"strconv"
	"strings"
	"sync"
)

// place adds all members to the shapes of the documents that contain them. Members that the mapping
// moves are added after the others, so that a conflict is reported for the moved member. Parts of
// joined texts are added last, because a part that is at the place of another field shares the
// member of this field.
func (f *decoder) place(m Mapping) error {
	var mistakes []error
	for _, moved := range []bool{false, true} {
		for field := range memberPart {
			p := &f.places[field]
			p.slot = field
			whole := field == FieldEnvelope && len(p.path) == 0
			if _, is := m.Fields[field]; (is || field == memberNanos) == moved && p.kind == inDocument && !whole {
				mistakes = append(mistakes, f.addPlace(field, p))
			}
		}
	}
	if err := errors.Join(append(mistakes, f.placeParts())...); err != nil {
		return err
	}
	f.placeWritten(m.Fields[FieldVersion].Written)
	return nil
}

func (f *decoder) addPlace(field Field, p *place) error {
	add := f.shapeOf(field, p).add
	if p.record {
		add = f.shapeOf(field, p).addRecord
	}
	if err := add(p.slot, p.path); err != nil {
		return mistakeOf(field, err)
	}
	return nil
}

func (f *decoder) placeParts() error {
	var mistakes []error
	next := memberPart
	for field := range FieldData {
		for i := range f.places[field].parts {
			part := &f.places[field].parts[i]
			if part.kind != inDocument {
				continue
			}
			if part.slot = f.shapeOf(field, part).at(part.path); part.slot != memberNone && !part.record {
				continue
			}
			if next == memberNone {
				return &MappingError{field, "has too many parts: all joined fields together can have " + strconv.Itoa(mostParts)}
			}
			part.slot = next
			next++
			mistakes = append(mistakes, f.addPlace(field, part))
		}
	}
	return errors.Join(mistakes...)
}

// placeWritten sets how a version, a time and an amount are written if they are in the JSON of a
// header or the key. The parameter version is the type that the mapping declares for the version.
func (f *decoder) placeWritten(version Written) {
	if p := &f.places[FieldVersion]; p.inner != nil {
		p.written, p.digits = WrittenInteger, version == WrittenText
	}
	if p := &f.places[FieldOccurredAt]; p.inner != nil && f.declaredTime.Counts() {
		p.written = WrittenInteger
		if f.declaredTime == SecondsWithFraction {
			p.written = writtenNumber
		}
	}
	if p := &f.places[FieldAmount]; p.inner != nil && f.amount.Form != AmountText && !f.amount.Text {
		p.written = writtenNumber
	}
}

func (f *decoder) placeSeries() error {
	e := &f.envelope
	if e.Entries == nil {
		return nil
	}
	f.seriesName = f.places[FieldEnvelope].name
	if !e.Escaped || len(e.Entries) == 0 {
		return nil
	}
	f.seriesName = joinPath(f.seriesName, strings.Join(e.Entries, "."))
	f.series = newShape()
	return f.series.add(FieldEnvelope, e.Entries)
}

// shapeOf returns the shape of the document that contains a place.
func (f *decoder) shapeOf(field Field, p *place) *shape {
	if f.outer != nil && (p.outer || field == FieldEnvelope) {
		return f.outer
	}
	return f.shape
}

// reading is the state of decoding one message. For formats without a schema it is on the stack,
// because clearing the readings of a pool took a tenth of the decoding time. It gets its message
// afterwards, because the compiler would copy a composite literal of this size.
type reading struct {
	*jsonScanner
	message       Message
	found         members
	documentFault *Fault // why the event's document cannot be read
	outerFault    *Fault // why the document around the event cannot be read, if there is one
	dataFault     *Fault // why the data cannot be read
	envelopeFault *Fault // a fault of the message that is not about a field
	signed        *SignedType
	number        decimal // the amount, if it was already read for its sign
	numberRead    bool
}

// readings contains *reading. A reading whose address is passed to a method of an interface cannot
// be on the stack.
var readings = sync.Pool{New: func() any { return new(reading) }}

// newReading returns an empty reading of a message. The caller returns it to the pool.
func newReading(m Message) *reading {
	r := readings.Get().(*reading) //nolint:forcetypeassert // the pool holds nothing else
	*r = reading{}
	r.message = m
	return r
}
