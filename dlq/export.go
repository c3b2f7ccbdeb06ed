package dlq

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"projector/projection/event"
)

// exported is one line of an export: a dead letter in JSON, for a person or a script to correct.
// Key, value and header values are text if they are UTF-8, otherwise base64. A null value is
// written as JSON null.
type exported struct {
	DLQTopic string `json:"dlq_topic"`
	Entry
	Index    *int32 `json:"entry,omitempty"` // the index of HeaderEntry
	FailedAt string `json:"failed_at"`

	Key         *string          `json:"key"`
	KeyBase64   *string          `json:"key_base64,omitempty"`
	Value       *string          `json:"value"`
	ValueBase64 *string          `json:"value_base64,omitempty"`
	Headers     []exportedHeader `json:"headers"`
	// SHA256 is the digest of key, value and headers before any correction. If the message of a
	// line has another digest, the line was corrected.
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
		DLQTopic: dlqTopic, Entry: *e, FailedAt: e.FailedAt.Format(time.RFC3339Nano),
		Headers: []exportedHeader{}, SHA256: MessageDigest(e.Key, e.Value, e.Headers),
	}
	if e.Event > 0 {
		line.Index = new(e.Event - 1)
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

// TextOrBase64 returns b as text if it is UTF-8, else in base64, for use in JSON. Both are
// nil if b is nil.
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

// MessageDigest returns the SHA-256 of a message, in lower-case hex. In the hashed bytes, the
// length of each key and value is before its bytes. The length of null is -1.
func MessageDigest(key, value []byte, headers []event.Header) string {
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

// validKey returns a header's key with invalid UTF-8 replaced, for use in JSON.
func validKey(key string) string { return strings.ToValidUTF8(key, "\uFFFD") }
