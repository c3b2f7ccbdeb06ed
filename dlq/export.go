package dlq

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"projector/projection/event"
)

// exported is one line of an export: a dead letter in JSON, for a person or a
// script to correct. Key, value and each header stand there as text when they are
// UTF-8, else in base64; null is null.
type exported struct {
	DLQTopic     string      `json:"dlq_topic"`
	DLQPartition int32       `json:"dlq_partition"`
	DLQOffset    int64       `json:"dlq_offset"`
	Class        event.Class `json:"class"`
	Message      string      `json:"message"`
	AccountID    string      `json:"account_id,omitempty"`
	EventID      string      `json:"event_id,omitempty"`
	Expected     *int64      `json:"expected_version"`
	Received     *int64      `json:"received_version"`
	Topic        string      `json:"topic"`
	Partition    int32       `json:"partition"`
	Offset       int64       `json:"offset"`
	Timestamp    int64       `json:"timestamp"`
	FailedAt     string      `json:"failed_at"`
	Replays      int         `json:"replays"`
	Group        string      `json:"group"`
	Projection   string      `json:"projection"`
	Truncated    bool        `json:"truncated,omitempty"`

	Key         *string          `json:"key"`
	KeyBase64   *string          `json:"key_base64,omitempty"`
	Value       *string          `json:"value"`
	ValueBase64 *string          `json:"value_base64,omitempty"`
	Headers     []exportedHeader `json:"headers"`
	// SHA256 is the digest of key, value and headers as they were: what differs from
	// it was corrected.
	SHA256 string `json:"sha256"`
}

type exportedHeader struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 *string `json:"value_base64,omitempty"`
}

// Export writes an entry of a DLQ topic as one line of JSON.
func Export(w io.Writer, dlqTopic string, e *Entry) error {
	line := exported{
		DLQTopic: dlqTopic, DLQPartition: e.DLQPartition, DLQOffset: e.DLQOffset,
		Class: e.Class, Message: e.Message, AccountID: e.AccountID, EventID: e.EventID,
		Expected: e.Expected, Received: e.Received,
		Topic: e.Topic, Partition: e.Partition, Offset: e.Offset, Timestamp: e.Timestamp,
		FailedAt: e.FailedAt.Format(time.RFC3339Nano), Replays: e.Replays,
		Group: e.Group, Projection: e.Projection, Truncated: e.Truncated,
		Headers: []exportedHeader{}, SHA256: digestOf(e.Key, e.Value, e.Headers),
	}
	line.Key, line.KeyBase64 = TextOrBase64(e.Key)
	line.Value, line.ValueBase64 = TextOrBase64(e.Value)
	for _, h := range e.Headers {
		out := exportedHeader{Key: validKey(h.Key)}
		out.Value, out.ValueBase64 = TextOrBase64(h.Value)
		line.Headers = append(line.Headers, out)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}

// Exported is an entry read back from an export.
type Exported struct {
	Entry
	DLQTopic string
	Line     int // of the file, from 1
	// Corrected: key, value or headers are not those of the dead letter any more.
	Corrected bool
	// Original is the event the dead letter is about, as far as the line says so.
	Original Identity

	expected *int64
}

// Identity says which event a dead letter is about; empty and nil are what is not known.
type Identity struct {
	AccountID string
	EventID   string
	Version   *int64
}

// Identity is the event the entry is about.
func (e *Entry) Identity() Identity { return Identity{e.AccountID, e.EventID, e.Received} }

// Contradicts names the field in which an event is another one than i; empty when it is
// the same, as far as is known.
func (i Identity) Contradicts(ev *event.Event) string {
	switch {
	case i.AccountID != "" && i.AccountID != ev.AccountID:
		return "accountId"
	case i.EventID != "" && i.EventID != ev.ID:
		return "eventId"
	case i.Version != nil && *i.Version != ev.Version:
		return "version"
	default:
		return ""
	}
}

// ExpectedOf is the version that was expected of the account when the event failed; nil
// when that is not known, as of an account that a correction has put in another's place.
func (e *Exported) ExpectedOf(account string) *int64 {
	if account != e.Original.AccountID {
		return nil
	}
	return e.expected
}

// maxLine bounds a line of an export.
const maxLine = 1 << 30

// ReadExport reads back what Export wrote, as somebody may have corrected it. The
// error names the line and the field and never repeats their text.
func ReadExport(r io.Reader) iter.Seq2[Exported, error] {
	return func(yield func(Exported, error) bool) {
		lines := newLines(r)
		for lines.next() {
			e, err := parseExported(lines.text)
			if err != nil {
				yield(Exported{}, fmt.Errorf("line %d: %w", lines.number, err))
				return
			}
			e.Line = lines.number
			if !yield(e, nil) {
				return
			}
		}
		if lines.err != nil {
			yield(Exported{}, fmt.Errorf("line %d: %w", lines.number+1, lines.err))
		}
	}
}

func parseExported(text []byte) (Exported, error) {
	var line exported
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&line); err != nil {
		return Exported{}, safeJSONError(err)
	}
	if line.Topic == "" || line.SHA256 == "" {
		return Exported{}, errors.New("is no line of an export: topic or sha256 is missing")
	}
	failedAt, err := time.Parse(time.RFC3339Nano, line.FailedAt)
	if err != nil {
		return Exported{}, errors.New("field failed_at: is not an RFC 3339 time")
	}
	e := Exported{DLQTopic: line.DLQTopic, Entry: Entry{
		DLQPartition: line.DLQPartition, DLQOffset: line.DLQOffset, Class: line.Class, Message: line.Message,
		AccountID: line.AccountID, EventID: line.EventID, Expected: line.Expected, Received: line.Received,
		Topic: line.Topic, Partition: line.Partition, Offset: line.Offset, Timestamp: line.Timestamp,
		FailedAt: failedAt, Replays: line.Replays,
		Group: line.Group, Projection: line.Projection, Truncated: line.Truncated,
	}, expected: line.Expected}
	e.Original = e.Identity()
	if err := line.readMessage(&e.Entry); err != nil {
		return Exported{}, err
	}
	e.Corrected = digestOf(e.Key, e.Value, e.Headers) != line.SHA256
	if e.Corrected {
		// The message is whole again, and is about what it says itself.
		e.Truncated, e.AccountID, e.EventID, e.Expected, e.Received = false, "", "", nil, nil
	}
	return e, nil
}

// readMessage reads key, headers and value.
func (l *exported) readMessage(e *Entry) (err error) {
	if e.Key, err = fromTextOrBase64("key", l.Key, l.KeyBase64); err != nil {
		return err
	}
	for _, h := range l.Headers {
		value, err := fromTextOrBase64("headers", h.Value, h.ValueBase64)
		if err != nil {
			return err
		}
		e.Headers = append(e.Headers, event.Header{Key: h.Key, Value: value})
	}
	if e.Value, err = fromTextOrBase64("value", l.Value, l.ValueBase64); err != nil {
		return err
	}
	if l.Value == nil || l.ValueBase64 == nil {
		return nil
	}
	other, err := fromTextOrBase64("value", nil, l.ValueBase64)
	if err != nil {
		return err
	}
	if !bytes.Equal(e.Value, other) {
		return &AmbiguousValueError{}
	}
	return nil
}

// AmbiguousValueError says that value and value_base64 of a line are not the same.
type AmbiguousValueError struct{}

// Error implements error.
func (*AmbiguousValueError) Error() string {
	return "value and value_base64 say different things: take out the one that was not corrected"
}

// TextOrBase64 gives bytes the form in which JSON can carry them: as text where they
// are UTF-8, else encoded; null is null.
func TextOrBase64(b []byte) (text, encoded *string) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		return new(string(b)), nil
	default:
		return nil, new(base64.StdEncoding.EncodeToString(b))
	}
}

func fromTextOrBase64(field string, text, encoded *string) ([]byte, error) {
	switch {
	case text != nil:
		return []byte(*text), nil
	case encoded == nil:
		return nil, nil
	}
	b, err := base64.StdEncoding.DecodeString(*encoded)
	if err != nil {
		return nil, fmt.Errorf("field %s_base64: is not base64", field)
	}
	return b, nil
}

// digestOf is the SHA-256, in lower-case hex, of a message: each part with its
// length before it, -1 for null.
func digestOf(key, value []byte, headers []event.Header) string {
	sum := sha256.New()
	part := func(b []byte) {
		n := int64(len(b))
		if b == nil {
			n = -1
		}
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(n))
		sum.Write(length[:])
		sum.Write(b)
	}
	part(key)
	part(value)
	for _, h := range headers {
		part([]byte(validKey(h.Key)))
		part(h.Value)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// validKey is a header's key as JSON can carry it.
func validKey(key string) string { return strings.ToValidUTF8(key, "\uFFFD") }

// safeJSONError tells where JSON is wrong without its text.
func safeJSONError(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind):
		return fmt.Errorf("field %s: must not be a %s", kind.Field, kind.Value)
	case errors.As(err, &syntax):
		return fmt.Errorf("is not JSON, at byte %d", syntax.Offset)
	default:
		return errors.New("is no line of an export: it is cut off, or has a field of another name")
	}
}

// lines reads a file line by line and passes over empty ones.
type lines struct {
	scanner *bufio.Scanner
	number  int
	text    []byte
	err     error
}

func newLines(r io.Reader) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &lines{scanner: s}
}

func (l *lines) next() bool {
	for l.scanner.Scan() {
		l.number++
		if l.text = bytes.TrimSpace(l.scanner.Bytes()); len(l.text) > 0 {
			return true
		}
	}
	l.err = l.scanner.Err()
	if errors.Is(l.err, bufio.ErrTooLong) {
		l.err = errors.New("is too long")
	}
	return false
}
