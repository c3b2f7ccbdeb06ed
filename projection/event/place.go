package event

import (
	"errors"
	"strconv"
	"strings"
)

// place puts all members into the shapes. Members that the mapping moved are second, so that a
// conflict is reported for them. Parts are last, because a part may be the member of a field.
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
	f.placeWritten()
	return nil
}

func (f *decoder) addPlace(field Field, p *place) error {
	if err := f.shapeOf(field, p).add(p.slot, p.path); err != nil {
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
			if part.slot = f.shapeOf(field, part).at(part.path); part.slot != memberNone {
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

// placeWritten sets the type of a version, a time and an amount in the JSON of a header or the key.
func (f *decoder) placeWritten() {
	if p := &f.places[FieldVersion]; p.inner != nil && p.written == WrittenText {
		p.written = WrittenInteger
	}
	if p := &f.places[FieldOccurredAt]; p.inner != nil && f.declaredTime.Counts() {
		p.written = WrittenInteger
	}
	if p := &f.places[FieldAmount]; p.inner != nil && f.declaresAmount() && !f.amount.Text {
		p.written = writtenNumber
	}
}

// placeSeries sets the place of the array of entries.
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

// shapeOf returns the shape of the document that has a place.
func (f *decoder) shapeOf(field Field, p *place) *shape {
	if f.outer != nil && (p.outer || field == FieldEnvelope) {
		return f.outer
	}
	return f.shape
}

// reading is a message while it is decoded. It is on the stack. In a pool, clearing it and writing
// its slices took a tenth of decoding.
type reading struct {
	*jsonScanner
	message       Message
	found         members
	documentFault *Fault // why the event's document cannot be read
	outerFault    *Fault // the same for the document around it, if that is another document
	dataFault     *Fault // why data cannot be read
	envelopeFault *Fault // what else is wrong, outside the fields
	signed        *SignedType
	number        decimal // the amount, if it was read for its sign
	numberRead    bool
}
