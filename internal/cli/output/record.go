package output

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
)

// Record is a record in JSON without its value, because some commands do not show values.
type Record struct {
	Headers   []Header `json:"headers"`
	Key       *string  `json:"key"`
	KeyBase64 *string  `json:"key_base64,omitempty"`
}

// Header is a header in JSON. A value that is no text is in base64.
type Header struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 *string `json:"value_base64,omitempty"`
}

// RecordOf converts a Kafka record to its form in JSON without losing a byte.
func RecordOf(record *kgo.Record) Record {
	doc := Record{Headers: []Header{}}
	doc.Key, doc.KeyBase64 = dlq.TextOrBase64(record.Key)
	for _, h := range record.Headers {
		out := Header{Key: h.Key}
		out.Value, out.ValueBase64 = dlq.TextOrBase64(h.Value)
		doc.Headers = append(doc.Headers, out)
	}
	return doc
}

// Payload is the value of a record in JSON. It is null if the record has no value. A value that is no
// text is in base64.
type Payload struct {
	Value       *string `json:"value"`
	ValueBase64 *string `json:"value_base64,omitempty"`
}

// PayloadOf converts the value of a Kafka record to its form in JSON without losing a byte.
func PayloadOf(record *kgo.Record) *Payload {
	text, encoded := dlq.TextOrBase64(record.Value)
	return &Payload{text, encoded}
}

// BytesText formats bytes for the text output.
func BytesText(b []byte) string {
	text, encoded := dlq.TextOrBase64(b)
	switch {
	case text != nil:
		return *text
	case encoded != nil:
		return "base64:" + *encoded
	default:
		return "null"
	}
}
