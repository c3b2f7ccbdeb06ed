package event

import (
	"errors"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// These are the names of the formats whose values follow a schema.
const (
	FormatAvro     = "avro"
	FormatProtobuf = "protobuf"
)

// Records decodes events whose values follow a schema. For each schema, a Reader finds the fields
// in a value.
type Records struct{ decoder *decoder }

// NewRecords returns Records for values with the field names of the default format, or with those
// of the options' mapping.
func NewRecords(opts Options) (*Records, error) {
	if len(opts.CustomTypes) > 0 {
		return nil, ErrNoJSON
	}
	l := contractLayout()
	l.typed = true
	f, err := newDecoder(opts, l)
	if err != nil {
		return nil, err
	}
	return &Records{f}, nil
}

// ErrNoJSON is returned for a custom projection, because its data must be JSON.
var ErrNoJSON = errors.New("values that follow a schema have no data in JSON, which a custom projection reads")

// Branch says what a Reader reads at one place of a value.
type Branch struct {
	// Field is the field at this place. It is valid only if HasField is true.
	Field    Field
	HasField bool
	// Record is the field whose value is the full name of the record or message type at this place.
	// It is valid only if HasRecord is true.
	Record    Field
	HasRecord bool
	// Members are the fields and records to read inside this place.
	Members []Member
	// Entries says what a Reader reads in each entry of the array at this place. It is nil if no
	// array is read.
	Entries *Branch
}

// Member says what a Reader reads in the member Name of a record or a map.
type Member struct {
	Name string
	Branch
}

// Tree returns what a Reader has to read in a value.
func (r *Records) Tree() Branch {
	f := r.decoder
	shape := f.shape
	if f.outer != nil {
		shape = f.outer
	}
	tree := branchOf(shape.self, shape)
	if f.envelope.Entries != nil && !f.envelope.Escaped {
		entry := branchOf(f.shape.self, f.shape)
		tree.setEntries(&entry)
	}
	return tree
}

func (b *Branch) setEntries(entry *Branch) {
	if b.HasField && b.Field == FieldEnvelope {
		b.Entries = entry
	}
	for i := range b.Members {
		b.Members[i].setEntries(entry)
	}
}

func branchOf(field Field, s *shape) Branch {
	b := Branch{Field: field, HasField: field != memberNone}
	if s != nil {
		b.Record, b.HasRecord = s.record, s.record != memberNone
		for _, m := range s.members {
			b.Members = append(b.Members, Member{m.name, branchOf(m.field, m.inner)})
		}
	}
	return b
}

// Reader reads the values of one schema. It is safe for concurrent use.
type Reader interface {
	// Read sets the fields that it finds in value. The reason says why value cannot be read,
	// without its content. The reason is "" if value was read to its end.
	Read(value []byte, found *Values) (reason string)
}

// Format returns a format that decodes messages with the given Reader.
func (r *Records) Format(reader Reader) Format {
	f := &recordFormat{r, reader}
	if r.decoder.envelope.Entries != nil {
		return &seriesFormat{f}
	}
	return f
}

type recordFormat struct {
	*Records
	reader Reader
}

// Decode implements Format.
func (f *recordFormat) Decode(m Message, d *Decoded) {
	r := newReading(m)
	f.open(r).decode(r, d)
	readings.Put(r)
}

func (f *recordFormat) open(r *reading) *decoder {
	if r.message.Value == nil {
		return nil
	}
	f.decoder.begin(r)
	r.values = Values{found: &r.found, digits: r.values.digits[:0], message: &r.found, entries: &r.entries}
	reason := f.reader.Read(r.message.Value, &r.values)
	if reason == "" && r.values.invalid {
		reason = "the value contains text that is not UTF-8"
	}
	if reason != "" {
		r.unreadable(malformed("", reason))
	}
	if f.decoder.envelope.isApart() {
		f.decoder.readApart(r)
	}
	return f.decoder
}

// Values contains what a Reader finds in one value. A field that is not set is missing in the
// value.
type Values struct {
	found   *members
	digits  []byte // digits of the numbers in found
	invalid bool   // a text is not UTF-8

	message *members // members of the value around the entries
	entries *entries
}

// These are the JSON texts that replace values which were read with a schema.
var (
	jsonNull     = []byte("null")
	jsonTrue     = []byte("true")
	jsonFalse    = []byte("false")
	jsonEmpty    = []byte(`""`)
	jsonFraction = []byte("0.5")
	jsonObject   = []byte("{}")
	jsonOther    = []byte("[]")
)

// Clear removes what was set for a field.
func (v *Values) Clear(f Field) {
	v.found[f] = value{}
	if f == FieldEnvelope {
		*v.entries = v.entries.emptied()
	}
}

// List marks the field as the array of entries.
func (v *Values) List(f Field) {
	v.Other(f)
	v.entries.listed = true
}

// BeginEntry begins the next entry of the array. All fields that are set before EndEntry belong to
// this entry.
func (v *Values) BeginEntry() {
	if n := len(v.entries.typed); n == MostEntries { // the entries will be refused, so the last one is not needed
		v.entries.excess = true
		v.entries.typed = v.entries.typed[:n-1]
	}
	v.entries.typed = append(v.entries.typed, members{})
	v.found = &v.entries.typed[len(v.entries.typed)-1]
}

// EndEntry ends the entry that BeginEntry has begun.
func (v *Values) EndEntry() { v.found = v.message }

// Null sets a field to null.
func (v *Values) Null(f Field) { v.found[f] = value{raw: jsonNull} }

// Text sets a field to a text. The text must not change while the message is used.
func (v *Values) Text(f Field, text string) {
	if text == "" {
		v.found[f] = value{raw: jsonEmpty}
		return
	}
	v.invalid = v.invalid || !utf8.ValidString(text)
	//nolint:gosec // G103: nobody writes to it
	v.found[f] = value{kind: plain, raw: unsafe.Slice(unsafe.StringData(text), len(text))}
}

// Integer sets a field to an integer.
func (v *Values) Integer(f Field, n int64) {
	start := len(v.digits)
	v.digits = strconv.AppendInt(v.digits, n, 10)
	v.found[f] = value{raw: v.written(start)}
}

// Unsigned sets a field to an integer that is not negative.
func (v *Values) Unsigned(f Field, n uint64) {
	start := len(v.digits)
	v.digits = strconv.AppendUint(v.digits, n, 10)
	v.found[f] = value{raw: v.written(start)}
}

// Fraction sets a field to a float, without its value.
func (v *Values) Fraction(f Field) { v.found[f] = value{raw: jsonFraction, kind: inexact} }

// Boolean sets a field to true or false.
func (v *Values) Boolean(f Field, is bool) {
	v.found[f] = value{raw: jsonFalse}
	if is {
		v.found[f] = value{raw: jsonTrue}
	}
}

// Instant sets a field to a time in microseconds since the Unix epoch.
func (v *Values) Instant(f Field, micros int64) {
	v.Integer(f, micros)
	v.found[f].kind = instant
}

// Object sets a field to a record or a map, without its content.
func (v *Values) Object(f Field) { v.found[f] = value{raw: jsonObject} }

// RecordAt sets the fields of a place at which there is a record or a message. The parameter name
// is the full name of its type.
func (v *Values) RecordAt(b *Branch, name string) {
	if b.HasField {
		v.Object(b.Field)
	}
	if b.HasRecord {
		v.Text(b.Record, name)
	}
}

// Other sets a field to a value of a type that no field may have.
func (v *Values) Other(f Field) { v.found[f] = value{raw: jsonOther} }

// Array notes that there is an array at the place of b. Fields whose path leads into the array get
// the kind inArray.
func (v *Values) Array(b *Branch) {
	v.inArray(b)
	if b.HasField {
		v.Other(b.Field)
	}
}

func (v *Values) inArray(b *Branch) {
	if b.HasField {
		v.found[b.Field] = value{kind: inArray}
	}
	if b.HasRecord {
		v.found[b.Record] = value{kind: inArray}
	}
	for i := range b.Members {
		v.inArray(&b.Members[i].Branch)
	}
}

// Decimal sets a field to an exact number. The number is a big-endian two's complement integer. The
// parameter scale says how many of its last digits are the fraction. Zeros at the end of the
// fraction are left out, because a schema has one scale for all values. Only an amount can be a
// decimal.
func (v *Values) Decimal(f Field, unscaled []byte, scale int) {
	if f != FieldAmount || len(unscaled) == 0 || scale < 0 {
		v.Other(f)
		return
	}
	start := len(v.digits)
	var fits bool
	if v.digits, fits = appendDecimal(v.digits, unscaled, scale); !fits {
		v.found[f] = value{kind: exact, raw: tooLarge}
		return
	}
	v.found[f] = value{kind: exact, raw: v.written(start)}
}

// written returns the digits that were appended after start.
func (v *Values) written(start int) []byte { return v.digits[start:len(v.digits):len(v.digits)] }

// tooLarge replaces a number that exceeds a limit of appendDecimal. It exceeds every valid amount,
// so it is refused.
var tooLarge = []byte("100000000000000000000")
