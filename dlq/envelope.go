package dlq

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection"
)

// Cut is how much of the original had to be left out of a dead letter because
// the whole was too large for the topic. Each step leaves out one part more.
type Cut uint8

// The steps of cutting, in order.
const (
	Whole          Cut = iota
	WithoutValue       // the value is replaced by its digest and length
	WithoutHeaders     // the original's headers are replaced by their count, too
	WithoutKey         // the key is replaced by its digest and length, too
)

// maxIdentityBytes bounds the ids that stay on a record without headers. The
// contract bounds account and event ids to 200 bytes; a correlation id is the
// producer's, and one larger than this would keep the record too large for ever.
const maxIdentityBytes = 1024

// Record returns the dead letter to publish to topic. Key and value are the
// original's: nil stays nil, empty stays empty. They are shared, not copied.
func Record(letter projection.DeadLetter, stamp Stamp, topic string, failedAt time.Time) *kgo.Record {
	return &kgo.Record{
		Topic:   topic,
		Key:     letter.Record.Key,
		Value:   letter.Record.Value,
		Headers: Headers(letter, stamp, failedAt),
	}
}

// Truncated returns the dead letter with what cut names left out. A part the
// original does not have is not marked as left out: nothing of it was lost.
func Truncated(letter projection.DeadLetter, stamp Stamp, topic string, failedAt time.Time, cut Cut) *kgo.Record {
	record := Record(letter, stamp, topic, failedAt)
	if cut >= WithoutHeaders {
		dropHeaders(record, letter, stamp, failedAt)
	}
	if cut >= WithoutValue && record.Value != nil {
		record.Headers = append(record.Headers, digest(HeaderValueSHA256, HeaderValueBytes, record.Value)...)
		record.Value = nil
	}
	if cut >= WithoutKey && record.Key != nil {
		record.Headers = append(record.Headers, digest(HeaderKeySHA256, HeaderKeyBytes, record.Key)...)
		record.Key = nil
	}
	return record
}

func dropHeaders(record *kgo.Record, letter projection.DeadLetter, stamp Stamp, failedAt time.Time) {
	own := ownHeaders(letter, stamp, failedAt)
	dropped := len(record.Headers) - len(own)
	own = slices.DeleteFunc(own, func(h kgo.RecordHeader) bool { return len(h.Value) > maxIdentityBytes })
	if dropped > 0 {
		own = append(own, number(HeaderHeadersDropped, int64(dropped)))
	}
	record.Headers = own
}

func digest(sumKey, bytesKey string, dropped []byte) []kgo.RecordHeader {
	sum := sha256.Sum256(dropped)
	return []kgo.RecordHeader{
		text(sumKey, hex.EncodeToString(sum[:])),
		number(bytesKey, int64(len(dropped))),
	}
}

// String says what is left out.
func (c Cut) String() string {
	switch c {
	case Whole:
		return "nothing"
	case WithoutValue:
		return "value"
	case WithoutHeaders:
		return "value, headers"
	default:
		return "value, headers, key"
	}
}
