package event

import (
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Series is a Format for messages with an array in which each entry is an event.
type Series interface {
	Format
	// DecodeEach decodes the events of a message in order. For each event it calls add with the
	// number of the entry, and decodes the event into the result of add. It calls add(0) once if
	// the message is a tombstone or its entries cannot be found.
	DecodeEach(m Message, add func(entry int32) *Decoded)
}

// DecodeEach decodes all events of a message. If f is not a Series, the message has one event.
func DecodeEach(f Format, m Message, add func(entry int32) *Decoded) {
	if series, is := f.(Series); is {
		series.DecodeEach(m, add)
		return
	}
	f.Decode(m, add(0))
}

// MostEntries limits the entries of a message, because each dead letter and each parked event of an
// entry contains the whole message. A parked event is stored until the missing earlier events
// arrive.
const MostEntries = 1000

// These are the reasons why the entries of a message cannot be read.
const (
	reasonNotArray   = "is not an array, as the mapping declares"
	reasonNoEntries  = "has no entries"
	reasonManyEntry  = "has more than 1000 entries"
	reasonWhichEntry = "has several entries, each an event, and this record does not say which is meant: " +
		"have the consumers read it again (projector position set), or rebuild"
	reasonNoSuchEntry = "has no entry of this number"
)

var (
	errNotArray    = errors.New(reasonNotArray)
	errManyEntries = errors.New(reasonManyEntry)
)

type seriesFormat struct{ opener }

var _ Series = (*seriesFormat)(nil)

// Decode implements Format. It decodes the entry with the number m.Entry.
func (s *seriesFormat) Decode(m Message, d *Decoded) {
	r := newReading(m)
	s.open(r).decode(r, d)
	readings.Put(r)
}

// open implements opener for the entry with the number r.message.Entry.
func (s *seriesFormat) open(r *reading) *decoder {
	f := s.opener.open(r)
	if f == nil || !f.isSplit(r) {
		return f
	}
	switch entry := r.message.Entry; {
	case entry <= 0:
		r.documentFault = malformed(f.seriesName, reasonWhichEntry)
	case int(entry) > r.entries.n():
		r.documentFault = malformed(f.seriesName, reasonNoSuchEntry)
	default:
		f.readEntry(r, entry)
	}
	return f
}

// DecodeEach implements Series.
func (s *seriesFormat) DecodeEach(m Message, add func(entry int32) *Decoded) {
	m.Entry = 0
	r := newReading(m)
	defer readings.Put(r)
	f := s.opener.open(r)
	if f == nil {
		*add(0) = Decoded{Tombstone: true}
		return
	}
	defer f.end(r)
	n := int32(0)
	if f.isSplit(r) {
		n = int32(r.entries.n()) //nolint:gosec // G115: at most MostEntries
	}
	for whole, entry := *r, min(n, 1); entry <= n; entry++ {
		d := add(entry)
		*d = Decoded{}
		if *r = whole; entry > 0 {
			f.readEntry(r, entry)
		}
		f.validate(r, d)
	}
}

// isSplit reports whether the entries of a message could be found. If they could not,
// r.documentFault contains the reason afterwards.
func (f *decoder) isSplit(r *reading) bool {
	if r.documentFault == nil && r.entries.n() == 0 { // no document with entries was found
		r.documentFault = malformed(f.seriesName, reasonMissing)
	}
	return r.documentFault == nil
}

// readEntry adds the members of an entry to those of the document around it.
func (f *decoder) readEntry(r *reading, entry int32) {
	r.message.Entry = entry
	if len(r.entries.typed) > 0 {
		r.add(&r.entries.typed[entry-1])
		return
	}
	raw := r.entries.raw[entry-1]
	if raw[0] != '{' {
		r.documentFault = malformed(f.seriesName+"[]", reasonNotObject)
		return
	}
	f.readInner(r, raw)
}

// entryID returns the event id of an entry, which is the record's id, a slash and the index of the
// entry. The first index is 0.
func entryID(record []byte, entry int32) []byte {
	id := append(make([]byte, 0, len(record)+len("/999")), record...)
	return strconv.AppendInt(append(id, '/'), int64(entry-1), 10)
}

// split finds the entries in a document.
func (f *decoder) split(r *reading, document []byte) *Fault {
	if f.series != nil {
		var found members
		if err := r.scan(document, f.series, &found); err != nil {
			return syntaxFault(f.places[FieldEnvelope].name, document, err)
		}
		switch m := &found[FieldEnvelope]; {
		case m.absent():
			return (&place{name: f.seriesName}).missingValue(m)
		case m.isNull():
			return malformed(f.seriesName, reasonNull)
		default:
			document = m.raw
		}
	}
	switch err := r.scanArray(document); {
	case errors.Is(err, errNotArray), errors.Is(err, errManyEntries):
		return malformed(f.seriesName, err.Error())
	case err != nil:
		return syntaxFault(f.seriesName, document, err)
	case r.entries.n() == 0:
		return malformed(f.seriesName, reasonNoEntries)
	}
	return nil
}

// checkEntries returns a fault if the entries that a Reader has found cannot be read.
func (f *decoder) checkEntries(r *reading) *Fault {
	switch m := &r.found[FieldEnvelope]; {
	case m.absent():
		return f.places[FieldEnvelope].missingValue(m)
	case m.isNull():
		return malformed(f.seriesName, reasonNull)
	case !r.entries.listed:
		return malformed(f.seriesName, reasonNotArray)
	case r.entries.excess:
		return malformed(f.seriesName, reasonManyEntry)
	case r.entries.n() == 0:
		return malformed(f.seriesName, reasonNoEntries)
	}
	return nil
}

// entries contains the entries of a message, each of which is an event.
type entries struct {
	raw   [][]byte  // as JSON
	typed []members // as a Reader has read them

	listed bool // a Reader has found the array
	excess bool // the Reader has found more than MostEntries
}

func (e *entries) n() int { return max(len(e.raw), len(e.typed)) }

// emptied returns an empty list of entries that reuses the memory of e.
func (e *entries) emptied() entries {
	const mostTyped = 32
	clear(e.raw)
	clear(e.typed)
	if cap(e.typed) > mostTyped {
		e.typed = nil
	}
	return entries{raw: e.raw[:0], typed: e.typed[:0]}
}

// scanArray sets s.entries to the entries of an array. The entries are slices of value.
func (s *jsonScanner) scanArray(value []byte) error {
	s.begin(value)
	if s.decoder.PeekKind() != jsontext.KindBeginArray {
		return errNotArray
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return err
	}
	for s.decoder.PeekKind() != jsontext.KindEndArray {
		raw, err := s.decoder.ReadValue()
		switch {
		case err != nil:
			return err
		case len(s.entries.raw) == MostEntries:
			return errManyEntries
		}
		end := s.decoder.InputOffset()
		s.entries.raw = append(s.entries.raw, value[end-int64(len(raw)):end])
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return err
	}
	return s.end()
}
