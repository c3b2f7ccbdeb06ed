package event

import (
	"bytes"
	"errors"
	"io"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonMember is the raw JSON text of one object member, a part of the message's
// value; it is empty when the object lacks the member.
type jsonMember []byte

func (m jsonMember) absent() bool   { return len(m) == 0 }
func (m jsonMember) isNull() bool   { return len(m) > 0 && m[0] == 'n' }
func (m jsonMember) isString() bool { return len(m) > 0 && m[0] == '"' }
func (m jsonMember) isObject() bool { return len(m) > 0 && m[0] == '{' }
func (m jsonMember) isNumber() bool {
	return len(m) > 0 && (m[0] == '-' || m[0] >= '0' && m[0] <= '9')
}

// jsonEnvelope holds the members of an event that count, unjudged.
type jsonEnvelope struct {
	eventID, eventType, accountID, version, occurredAt, correlationID jsonMember

	data    jsonMember
	payload jsonPayload // the members of data, when it is an object
}

// member returns the place for the member of that name, nil for one that is ignored.
func (e *jsonEnvelope) member(name []byte) *jsonMember {
	switch string(name) {
	case "eventId":
		return &e.eventID
	case "eventType":
		return &e.eventType
	case "accountId":
		return &e.accountID
	case "version":
		return &e.version
	case "occurredAt":
		return &e.occurredAt
	case "correlationId":
		return &e.correlationID
	case "data":
		return &e.data
	}
	return nil
}

// jsonPayload holds the members of data that count, unjudged.
type jsonPayload struct {
	amount, currency jsonMember
}

// member returns the place for the member of that name, nil for one that is ignored.
func (p *jsonPayload) member(name []byte) *jsonMember {
	switch string(name) {
	case "amount":
		return &p.amount
	case "currency":
		return &p.currency
	}
	return nil
}

// jsonScanner cuts a message into members in one pass over its tokens. The decoder
// underneath refuses whatever breaks the grammar anywhere, nested members that are
// ignored included. It is reused from message to message and serves one at a time.
type jsonScanner struct {
	value   []byte // the message
	source  bytes.Buffer
	decoder jsontext.Decoder
	scratch []byte // holds the one text that had to be unescaped last
}

// maxScratch bounds what a scanner keeps of an unusually long escaped text.
const maxScratch = 4 << 10

var (
	errNotObject = errors.New("the value is not a JSON object")
	errTrailing  = errors.New("something other than white space follows the object")
)

// scan reads value into e. Without an error e's members are parts of value and
// value is one JSON object that keeps the grammar.
func (s *jsonScanner) scan(value []byte, e *jsonEnvelope) error {
	s.value = value
	s.source = *bytes.NewBuffer(value) // the decoder reads a bytes.Buffer in place
	s.decoder.Reset(&s.source)
	if s.decoder.PeekKind() != jsontext.KindBeginObject {
		if _, err := s.decoder.ReadToken(); err != nil {
			return err
		}
		return errNotObject
	}
	if err := s.scanEnvelope(e); err != nil {
		return err
	}
	if _, err := s.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// release bounds what a scanner keeps between messages. The last message itself
// stays referenced until the next one, or until a garbage collection empties the
// pool the scanner rests in: letting go of it at once would cost more.
func (s *jsonScanner) release() {
	if cap(s.scratch) > maxScratch {
		s.scratch = nil
	}
}

// scanEnvelope reads the object that comes next.
func (s *jsonScanner) scanEnvelope(e *jsonEnvelope) error {
	if _, err := s.decoder.ReadToken(); err != nil { // "{"
		return err
	}
	for s.decoder.PeekKind() == jsontext.KindString {
		name, err := s.name()
		if err != nil {
			return err
		}
		place := e.member(name)
		if place == &e.data {
			err = s.scanData(e)
		} else {
			err = s.scanMember(place)
		}
		if err != nil {
			return err
		}
	}
	_, err := s.decoder.ReadToken() // "}", or what ended the loop instead
	return err
}

// scanData reads the value of data, and when it is an object its members.
func (s *jsonScanner) scanData(e *jsonEnvelope) error {
	if s.decoder.PeekKind() != jsontext.KindBeginObject {
		return s.scanMember(&e.data)
	}
	if _, err := s.decoder.ReadToken(); err != nil { // "{"
		return err
	}
	start := s.decoder.InputOffset() - 1
	for s.decoder.PeekKind() == jsontext.KindString {
		name, err := s.name()
		if err != nil {
			return err
		}
		if err := s.scanMember(e.payload.member(name)); err != nil {
			return err
		}
	}
	if _, err := s.decoder.ReadToken(); err != nil { // "}"
		return err
	}
	e.data = s.value[start:s.decoder.InputOffset()]
	return nil
}

// name reads a member's name. It is valid until the next call of s.
func (s *jsonScanner) name() ([]byte, error) {
	raw, err := s.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	return s.text(jsonMember(raw)), nil
}

// scanMember reads a value into place; with a nil place it only checks the grammar.
func (s *jsonScanner) scanMember(place *jsonMember) error {
	raw, err := s.decoder.ReadValue()
	if err != nil {
		return err
	}
	if place != nil {
		// Cut from our own slice: the decoder's is promised for one step only.
		end := s.decoder.InputOffset()
		*place = s.value[end-int64(len(raw)) : end]
	}
	return nil
}

// view is the text of a member as a string. Where the text is a part of the
// message it is not copied: three copies an event were a fifth of decoding, and
// nearly all the garbage.
func view(m jsonMember, text []byte) string {
	if len(text) > 0 && &text[0] == &m[1] {
		return unsafe.String(&text[0], len(text)) //nolint:gosec // a message never changes, see Format
	}
	return string(text)
}

// text returns what a JSON string says, without quotes and escapes. It is valid
// until the next call of s.
func (s *jsonScanner) text(m jsonMember) []byte {
	quoted := m[1 : len(m)-1]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted
	}
	// No error: the scan has checked the string.
	s.scratch, _ = jsontext.AppendUnquote(s.scratch[:0], []byte(m))
	return s.scratch
}
