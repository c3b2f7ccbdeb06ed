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
		whole:  true,
	}
}

// Decode implements Format. If the JSON is invalid anywhere, no field of it is used, not
// even those before the error.
func (f *jsonFormat) Decode(m Message, d *Decoded) {
	*d = Decoded{}
	if m.Value == nil {
		d.Tombstone = true
		return
	}
	r := &reading{jsonScanner: f.scanner(), message: m}
	f.readDocument(r, m.Value, "")
	f.validate(r, d)
	f.end(r)
}

// jsonScanner cuts a document into members in one pass over its tokens. The decoder
// underneath refuses whatever breaks the grammar anywhere, nested members that are
// ignored included. It is reused from message to message and serves one at a time.
type jsonScanner struct {
	value   []byte // the document
	source  bytes.Buffer
	decoder jsontext.Decoder
	scratch []byte // holds the one text that had to be unescaped last
	joined  []byte // holds texts that were put together, of this and earlier messages; see beginJoined
	entries entries
}

// whiteSpace is JSON's.
const whiteSpace = " \t\r\n"

// maxScratch bounds what a scanner keeps of an unusually long escaped text.
const maxScratch = 4 << 10

var (
	errNotObject = errors.New("the value is not a JSON object")
	errTrailing  = errors.New("something other than white space follows the object")
)

// scan reads the members of a document that sh looks for into found. Without an
// error they are parts of value, and value is one JSON object that keeps the grammar.
func (s *jsonScanner) scan(value []byte, sh *shape, found *members) error {
	if scanPlain(value, sh, found) {
		return nil
	}
	return s.scanAny(value, sh, found)
}

// scanAny is scan for any document.
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

// scanText reads a document that is one JSON string and returns what it says. The
// text is valid until the next call of s.
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
	s.source = *bytes.NewBuffer(value) // the decoder reads a bytes.Buffer in place
	s.decoder.Reset(&s.source)
}

// end checks that only white space follows the value that was read.
func (s *jsonScanner) end() error {
	if len(bytes.TrimLeft(s.value[s.decoder.InputOffset():], whiteSpace)) > 0 {
		return errTrailing
	}
	return nil
}

// atName reports whether a member's name comes next. It only looks: the decoder
// refuses a comma too many or too few when it reads on. Asking the decoder costs
// three times as much, and it is asked for every member.
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

// release bounds the memory of a scanner between messages. The scanner refers to the last
// message until the next one, or until a garbage collection empties its pool: dropping the
// reference at once would cost more.
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
}

// scanObject reads the object that comes next.
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
			_, err = s.decoder.ReadValue() // only the grammar counts
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
	if _, err := s.decoder.ReadToken(); err != nil { // "}", or what ended the loop instead
		return err
	}
	if sh.self != memberNone {
		found[sh.self] = value{raw: s.value[start:s.decoder.InputOffset()]}
	}
	return nil
}

// scanMember reads a value that is a field, or that only could have held some.
func (s *jsonScanner) scanMember(field Field, found *members) error {
	raw, err := s.decoder.ReadValue()
	if err != nil {
		return err
	}
	if field != memberNone {
		// Cut from our own slice: the decoder's is promised for one step only.
		end := s.decoder.InputOffset()
		found[field] = value{raw: s.value[end-int64(len(raw)) : end]}
	}
	return nil
}

// text returns what a value says that is a string; of anything else it returns the JSON. It
// is valid until the next call of s.
func (s *jsonScanner) text(v *value) []byte {
	switch {
	case v.begins() != '"':
		return v.raw
	case v.verbatim:
		return v.raw[1 : len(v.raw)-1]
	}
	return s.unquote(v.raw)
}

// unquote returns what a JSON string says, without quotes and escapes. It is valid
// until the next call of s.
func (s *jsonScanner) unquote(raw []byte) []byte {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	// No error: the scan has checked the string.
	s.scratch, _ = jsontext.AppendUnquote(s.scratch[:0], raw)
	return s.scratch
}

// keep returns a text as a string. Where the text is a part of raw it is not
// copied: three copies an event were a fifth of decoding, and nearly all the garbage.
func keep(raw, text []byte) string {
	if len(text) > 0 && len(raw) > 0 && (&text[0] == &raw[0] || &text[0] == &raw[1]) {
		return unsafe.String(&text[0], len(text)) //nolint:gosec // a message never changes, see Format
	}
	return string(text)
}

// syntaxFault says why a value is not one well-formed JSON object. It names the
// place by its byte offset and never quotes the value or a key of it.
func syntaxFault(value []byte, err error) *Fault {
	return &Fault{Class: MalformedPayload, Reason: syntaxReason(value, err)}
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
		return fmt.Sprintf("the value is not valid JSON, at byte %d", offset)
	}
}
