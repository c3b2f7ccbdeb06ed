package dlq

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"time"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"projector/projection/event"
)

// Exported is an entry read back from an export.
type Exported struct {
	Entry
	DLQTopic string
	Line     int // line number in the file, from 1
	// Corrected reports that the key, the value or the headers differ from those of the dead
	// letter.
	Corrected bool
	// Before describes the event before any correction. It comes from the fields of the line and has
	// no message.
	Before Entry
}

// Contradicts returns the name of the first known id of e that has another value in the event. It
// returns "" if there is no such id.
func (e *Entry) Contradicts(ev *event.Event) string {
	switch {
	case e.AccountID != "" && e.AccountID != ev.AccountID:
		return "accountId"
	case e.EventID != "" && e.EventID != ev.ID:
		return "eventId"
	case e.Received != nil && *e.Received != ev.Version:
		return "version"
	default:
		return ""
	}
}

// SameMessage reports whether two entries hold the same key, value and headers.
func (e *Entry) SameMessage(other *Entry) bool {
	return MessageDigest(e.Key, e.Value, e.Headers) == MessageDigest(other.Key, other.Value, other.Headers)
}

// PlaceDiffers compares the class and the source (topic, partition, offset and entry) of a line of
// an export with those of e. It returns the name of the first field that differs, or "" if none
// does.
func (e *Entry) PlaceDiffers(line *Entry) string {
	switch {
	case e.Class != line.Class:
		return "class"
	case e.Topic != line.Topic:
		return "topic"
	case e.Partition != line.Partition:
		return "partition"
	case e.Offset != line.Offset:
		return "offset"
	case e.Event != line.Event:
		return "entry"
	default:
		return ""
	}
}

// ExpectedOf returns the version that the account expected when the event failed. It returns nil if
// that version is not known, for example because a correction changed the account id.
func (e *Exported) ExpectedOf(account string) *int64 {
	if account != e.Before.AccountID {
		return nil
	}
	return e.Before.Expected
}

// maxLine bounds a line of an export.
const maxLine = 1 << 30

// ReadExport reads the lines of an export, which a person may have corrected. It skips empty lines.
// The error names the line and the field and never contains their text.
func ReadExport(r io.Reader) iter.Seq2[Exported, error] {
	return func(yield func(Exported, error) bool) {
		lines, number := bufio.NewScanner(r), 0
		lines.Buffer(make([]byte, 0, 64<<10), maxLine)
		for lines.Scan() {
			number++
			text := lines.Bytes()
			if number == 1 {
				text = bytes.TrimPrefix(text, []byte("\ufeff")) // the byte order mark of some editors
			}
			if text = bytes.TrimSpace(text); len(text) == 0 {
				continue
			}
			e, err := parseExported(text)
			if err != nil {
				yield(Exported{}, fmt.Errorf("line %d: %w", number, err))
				return
			}
			e.Line = number
			if !yield(e, nil) {
				return
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = errors.New("is too long")
		}
		if err != nil {
			yield(Exported{}, fmt.Errorf("line %d: %w", number+1, err))
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
	if err := checkStrictly(text); err != nil {
		return Exported{}, err
	}
	if line.Topic == "" || line.SHA256 == "" {
		return Exported{}, errors.New("is no line of an export: topic or sha256 is missing")
	}
	failedAt, err := time.Parse(time.RFC3339Nano, line.FailedAt)
	if err != nil {
		return Exported{}, errors.New("field failed_at: is not an RFC 3339 time")
	}
	e := Exported{DLQTopic: line.DLQTopic, Entry: line.Entry}
	e.FailedAt = failedAt
	if line.Index != nil {
		if *line.Index < 0 || *line.Index == math.MaxInt32 {
			return Exported{}, errors.New("field entry: is not an index")
		}
		e.Event = *line.Index + 1
	}
	e.Before = e.Entry
	if err := line.readMessage(&e.Entry); err != nil {
		return Exported{}, err
	}
	e.Corrected = MessageDigest(e.Key, e.Value, e.Headers) != line.SHA256
	if e.Corrected {
		// The corrected message is complete. These fields describe the event before the correction,
		// so they may be wrong now.
		e.Truncated, e.AccountID, e.EventID, e.Expected, e.Received = false, "", "", nil, nil
	}
	return e, nil
}

// checkStrictly returns an error for a line that encoding/json accepts although a part of it would
// have no effect. That package ignores the case of a field's name.
func checkStrictly(text []byte) error {
	if !jsontext.Value(text).IsValid() {
		return errors.New("has a field twice, text that is not UTF-8, or something after its object")
	}
	if strict.Unmarshal(text, new(exported), strict.RejectUnknownMembers(true)) != nil {
		return errors.New("has a field whose name differs from that of an export in upper and lower case")
	}
	return nil
}

// readMessage reads the key, the headers and the value.
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
	e.Value, err = fromTextOrBase64("value", l.Value, l.ValueBase64)
	return err
}

// AmbiguousValueError says that a line has a text and the same in base64, and that the two differ.
type AmbiguousValueError struct{ field string }

func (e *AmbiguousValueError) Error() string {
	if e.field == "headers" {
		return "value and value_base64 of a header say different things: take out the one that was not corrected"
	}
	return fmt.Sprintf("%s and %[1]s_base64 say different things: take out the one that was not corrected", e.field)
}

// fromTextOrBase64 returns the bytes of a field. If the line has the text and the same in base64,
// the two must be equal.
func fromTextOrBase64(field string, text, encoded *string) ([]byte, error) {
	if encoded == nil {
		if text == nil {
			return nil, nil
		}
		return []byte(*text), nil
	}
	b, err := base64.StdEncoding.DecodeString(*encoded)
	switch {
	case err != nil:
		return nil, fmt.Errorf("field %s_base64: is not base64", field)
	case text != nil && string(b) != *text:
		return nil, &AmbiguousValueError{field}
	}
	return b, nil
}

// safeJSONError returns an error that says where the JSON is invalid, without its text.
func safeJSONError(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind):
		value, _, _ := strings.Cut(kind.Value, " ") // "number 1.5"
		return fmt.Errorf("field %s: must not be a %s", strings.TrimPrefix(kind.Field, "Entry."), value)
	case errors.As(err, &syntax):
		return fmt.Errorf("is not JSON, at byte %d", syntax.Offset)
	default:
		return errors.New("is no line of an export: it is cut off, or has a field of another name")
	}
}
