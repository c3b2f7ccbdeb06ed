package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonFormat is the default wire format, in which a value is one JSON object with all fields.
type jsonFormat struct{ *decoder }

// NewJSON returns the default wire format with the contract's field names. It ignores the options'
// mapping.
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
		data:  []string{"data"},
		at:    func(path []string) (place, error) { return member(path...), nil },
		whole: true,
	}
}

// Decode implements Format. If the JSON is invalid at any place, no member of it is used.
func (f *jsonFormat) Decode(m Message, d *Decoded) {
	var r reading
	r.message = m
	f.open(&r).decode(&r, d)
}

func (f *jsonFormat) open(r *reading) *decoder {
	if r.message.Value == nil {
		return nil
	}
	f.begin(r)
	f.readDocument(r, WithoutSchemaID(r.message.Value), "")
	return f.decoder
}

// jsonScanner finds the members of a document in one pass. Its decoder checks the syntax of the
// whole document, also of members that are ignored. A scanner is reused for many messages.
type jsonScanner struct {
	value   []byte // the document
	source  bytes.Buffer
	decoder jsontext.Decoder
	scratch []byte // the text that was unescaped last
	joined  []byte // joined texts of this message and of earlier ones (see beginJoined)
	values  Values // what a Reader has found
	entries entries
	shared  map[*place]sharedText // texts that all entries of this message have in common
}

const whiteSpace = " \t\r\n"

// maxScratch limits the memory that a scanner keeps between two messages.
const maxScratch = 4 << 10

var (
	errNotObject = errors.New("the value is not a JSON object")
	errTrailing  = errors.New("something other than white space follows the object")
)

// scan sets found to the members of a document that are in the shape sh. The members are slices of
// value. scan returns an error if value is not exactly one valid JSON object.
func (s *jsonScanner) scan(value []byte, sh *shape, found *members) error {
	if scanPlain(value, sh, found) {
		return nil
	}
	return s.scanAny(value, sh, found)
}

// scanAny does the same as scan, but does not try scanPlain first.
func (s *jsonScanner) scanAny(value []byte, sh *shape, found *members) error {
	s.begin(value)
	if s.decoder.PeekKind() != jsontext.KindBeginObject {
		if _, err := s.decoder.ReadToken(); err != nil {
			return err
		}
		return errNotObject
	}
	if err := s.scanObject(sh, found); err != nil {
		return err
	}
	return s.end()
}

// scanText returns the text of a document that is one JSON string. The text is valid until the next
// call of a method of s.
func (s *jsonScanner) scanText(value []byte) ([]byte, error) {
	s.begin(value)
	raw, err := s.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	end := s.decoder.InputOffset()
	if err := s.end(); err != nil {
		return nil, err
	}
	return s.unquote(value[end-int64(len(raw)) : end]), nil
}

func (s *jsonScanner) begin(value []byte) {
	s.value = value
	s.source = *bytes.NewBuffer(value) // the decoder reads a bytes.Buffer without copying it
	s.decoder.Reset(&s.source)
}

// end returns an error if anything other than white space follows the value that was read.
func (s *jsonScanner) end() error {
	if len(bytes.TrimLeft(s.value[s.decoder.InputOffset():], whiteSpace)) > 0 {
		return errTrailing
	}
	return nil
}

// atName reports whether the name of a member is next. It skips commas without checking them,
// because the decoder checks them when it reads on. The decoder's own PeekKind would take three
// times as long.
func (s *jsonScanner) atName() bool {
	for _, c := range s.value[s.decoder.InputOffset():] {
		switch c {
		case ' ', '\t', '\r', '\n', ',':
		default:
			return c == '"'
		}
	}
	return false
}

// release limits the memory that a scanner keeps between messages. A plain message is still referred
// to until the scanner reads another one or until the garbage collector empties the pool. release
// does not remove this reference, because that would take time for each message.
func (s *jsonScanner) release() {
	if cap(s.scratch) > maxScratch {
		s.scratch = nil
	}
	if cap(s.joined) > joinedBytes {
		s.joined = nil
	}
	if s.entries.listed || len(s.entries.raw) > 0 {
		s.entries = s.entries.emptied()
	}
	clear(s.shared)
	if s.value != nil { // otherwise the message would stay in memory as long as scanPlain reads all others
		s.begin(nil)
	}
}

func (s *jsonScanner) scanObject(sh *shape, found *members) error {
	if _, err := s.decoder.ReadToken(); err != nil { // "{"
		return err
	}
	start := s.decoder.InputOffset() - 1
	hint := 0
	for s.atName() {
		raw, err := s.decoder.ReadValue()
		if err != nil {
			return err
		}
		m := sh.next(raw, hint)
		if m != nil {
			hint++
		} else {
			m, hint = sh.find(s.unquote(raw), hint)
		}
		switch {
		case m == nil:
			_, err = s.decoder.ReadValue() // checks that the value is valid JSON
		case m.inner != nil && s.decoder.PeekKind() == jsontext.KindBeginObject:
			err = s.scanObject(m.inner, found)
		case m.inner != nil && s.decoder.PeekKind() == jsontext.KindBeginArray:
			m.inner.meetsArray(found)
			err = s.scanMember(m.field, found)
		default:
			err = s.scanMember(m.field, found)
		}
		if err != nil {
			return err
		}
	}
	if _, err := s.decoder.ReadToken(); err != nil { // reads "}" or returns an error
		return err
	}
	if sh.self != memberNone {
		found[sh.self] = value{raw: s.value[start:s.decoder.InputOffset()]}
	}
	return nil
}

// scanMember reads the value of a member, and stores it if the member is a field.
func (s *jsonScanner) scanMember(field Field, found *members) error {
	raw, err := s.decoder.ReadValue()
	if err != nil {
		return err
	}
	if field != memberNone {
		// The stored value is a slice of s.value, because the decoder's slice is valid only until
		// the next read.
		end := s.decoder.InputOffset()
		found[field] = value{raw: s.value[end-int64(len(raw)) : end]}
	}
	return nil
}

// text returns the text of a JSON string, and the bytes of any other value. The result is valid
// until the next call of a method of s.
func (s *jsonScanner) text(v *value) []byte {
	switch {
	case v.begins() != '"':
		return v.raw
	case v.verbatim:
		return v.raw[1 : len(v.raw)-1]
	}
	return s.unquote(v.raw)
}

// unquote returns a JSON string without quotes and escapes. The result is valid until the next call
// of a method of s.
func (s *jsonScanner) unquote(raw []byte) []byte {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	// There can be no error, because the scan has checked the string.
	s.scratch, _ = jsontext.AppendUnquote(s.scratch[:0], raw)
	return s.scratch
}

// keep returns a text as a string. It does not copy a text that shares its memory with raw. Copies
// of three texts for each event took a fifth of the decoding time and made nearly all the garbage.
func keep(raw, text []byte) string {
	if shareMemory(raw, text) {
		return unsafe.String(&text[0], len(text)) //nolint:gosec // a message never changes, see Format
	}
	return string(text)
}

// shareMemory reports whether a text is raw itself or raw without its quotes.
func shareMemory(raw, text []byte) bool {
	return len(text) > 0 && len(raw) > 0 && (&text[0] == &raw[0] || len(raw) > 1 && &text[0] == &raw[1])
}

// WithoutSchemaID returns the JSON object, array, text or integer of a value or key after a zero byte
// and the four bytes of a schema's id. The serializers for JSON Schema write these bytes. All other
// values, such as those in Avro, are returned unchanged. No JSON and no valid text begins with a
// zero byte. A longer number than a 64-bit integer is returned unchanged, because it may be a text
// in Avro: a text of 24 to 28 digits begins with its length, which is a byte with the value of a
// digit.
func WithoutSchemaID(value []byte) []byte {
	const header, mostDigits = 5, 19
	if len(value) <= header || value[0] != 0 {
		return value
	}
	inner := value[header:]
	first, last := inner[0], inner[len(inner)-1]
	isInteger := len(inner) <= mostDigits && isDigits(inner)
	if first == '{' && last == '}' || first == '[' && last == ']' || first == '"' && last == '"' && len(inner) > 1 || isInteger {
		return inner
	}
	return value
}

// syntaxFault says why the value of a field is not exactly one valid JSON object. It contains the
// byte offset, but never a part of the value.
func syntaxFault(field string, value []byte, err error) *Fault {
	return malformed(field, syntaxReason(value, err))
}

func syntaxReason(value []byte, err error) string {
	var offset int64
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		offset = syntactic.ByteOffset
	}
	switch {
	case len(value) == 0:
		return "the value is empty"
	case value[0] == 0:
		return "the value begins with a zero byte, as values do whose schema is in a registry (--format=avro or protobuf)"
	case bytes.HasPrefix(value, []byte("\xef\xbb\xbf")):
		return "the value begins with a byte order mark"
	case errors.Is(err, errNotObject), errors.Is(err, errTrailing):
		return err.Error()
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Sprintf("a key occurs twice in one JSON object, at byte %d", offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the JSON text ends too early"
	case !utf8.Valid(value):
		return "the JSON text contains invalid UTF-8"
	case offset >= 0 && offset < int64(len(value)) && value[offset] == '\\':
		return fmt.Sprintf("a string has an invalid escape or a lone surrogate, at byte %d", offset)
	default:
		return fmt.Sprintf("the value is not valid JSON, or more than 10,000 levels deep, at byte %d", offset)
	}
}
