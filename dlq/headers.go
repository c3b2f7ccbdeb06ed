// Package dlq builds, publishes and reads dead letters.
//
// A dead letter is a copy of the consumed record. Its key, value and headers are copied byte for
// byte. Headers under the prefix "__projector.errors." are added. They say why the record failed
// and what its topic, partition and offset were. When a replayed record fails again, these headers
// are replaced and its count of replays grows.
//
// # Publishing
//
// A Publisher makes one attempt per call. The worker of the partition retries without a limit, with
// backoff. A Delivery knows which dead letters all in-sync replicas have acknowledged, so a retry
// sends only the others. A record is too large if the broker refuses it for this reason, or if it
// is larger than topic.MaxBatchBytes. It is first sent alone. If it is still too large, it is sent
// without its value, then without its headers, then without its key. So a large record blocks its
// partition only if the broker refuses even the added headers alone.
package dlq

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection"
	"projector/projection/event"
)

// OwnPrefix starts the key of every header that this project writes. A header with this
// prefix is never part of the original.
const OwnPrefix = "__projector."

// These headers are added to a dead letter. All values are UTF-8 text, and numbers are decimal.
// CONTRIBUTING.md says what a new header needs.
const (
	HeaderClass           = OwnPrefix + "errors.class"
	HeaderMessage         = OwnPrefix + "errors.message" // no amounts, no payload text
	HeaderTopic           = OwnPrefix + "errors.topic"
	HeaderPartition       = OwnPrefix + "errors.partition"
	HeaderOffset          = OwnPrefix + "errors.offset"
	HeaderEntry           = OwnPrefix + "errors.entry"     // index in the array of events, from 0; absent if there is no array
	HeaderTimestamp       = OwnPrefix + "errors.timestamp" // ms since the Unix epoch, at most projection.LastTimestamp
	HeaderGroup           = OwnPrefix + "errors.group"
	HeaderProjection      = OwnPrefix + "errors.projection"
	HeaderAccountID       = OwnPrefix + "errors.account_id"
	HeaderExpectedVersion = OwnPrefix + "errors.expected_version" // the account's version + 1
	HeaderReceivedVersion = OwnPrefix + "errors.received_version"
	HeaderEventID         = OwnPrefix + "errors.event_id"
	HeaderCorrelationID   = OwnPrefix + "errors.correlation_id"
	HeaderFailedAt        = OwnPrefix + "errors.failed_at" // RFC 3339, UTC
	HeaderReplays         = OwnPrefix + "errors.replays"
)

// These headers are added to a dead letter that was cut because it was too large. A digest is
// SHA-256 in lower-case hex.
const (
	HeaderValueSHA256    = OwnPrefix + "errors.value_sha256"
	HeaderValueBytes     = OwnPrefix + "errors.value_bytes"
	HeaderHeadersDropped = OwnPrefix + "errors.headers_dropped" // count of the original's headers
	HeaderKeySHA256      = OwnPrefix + "errors.key_sha256"
	HeaderKeyBytes       = OwnPrefix + "errors.key_bytes"
)

// maxMessageBytes bounds HeaderMessage.
const maxMessageBytes = 512

// Stamp names the consumer group and the projection that wrote a dead letter.
type Stamp struct {
	Group      string
	Projection string
}

// Headers returns the headers of the dead letter. First come the headers of the original, in their
// order and byte for byte, without those under OwnPrefix. A null value stays null and an empty one
// stays empty. Then come the headers that this project adds. The headers of account, event and
// versions are added only if their value is known. Header values share memory with the dead
// letter's record.
func Headers(letter projection.DeadLetter, stamp Stamp, failedAt time.Time) []kgo.RecordHeader {
	kept := originals(letter.Record.Headers)
	return append(kept, ownHeaders(letter, stamp, failedAt)...)
}

// ReplaysOf returns how often a consumed record was replayed. A replay to a topic writes this count
// to a header. The result is 0 if the header is missing or invalid.
func ReplaysOf(headers []event.Header) int {
	for _, h := range headers {
		if h.Key != HeaderReplays {
			continue
		}
		if n, err := strconv.ParseUint(string(h.Value), 10, 31); err == nil {
			return int(n)
		}
	}
	return 0
}

func originals(headers []event.Header) []kgo.RecordHeader {
	const added = 16
	kept := make([]kgo.RecordHeader, 0, len(headers)+added)
	for _, h := range headers {
		if !strings.HasPrefix(h.Key, OwnPrefix) {
			kept = append(kept, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
	}
	return kept
}

// ownHeaders returns the headers that every dead letter gets, whole or cut.
func ownHeaders(letter projection.DeadLetter, stamp Stamp, failedAt time.Time) []kgo.RecordHeader {
	record := letter.Record
	headers := []kgo.RecordHeader{
		text(HeaderClass, string(letter.Class)),
		text(HeaderMessage, clip(letter.Message)),
		text(HeaderTopic, record.Topic),
		number(HeaderPartition, int64(record.Partition)),
		number(HeaderOffset, record.Offset),
		number(HeaderTimestamp, record.Timestamp),
		text(HeaderGroup, stamp.Group),
		text(HeaderProjection, stamp.Projection),
	}
	headers = append(headers, identity(letter)...)
	return append(headers,
		text(HeaderFailedAt, failedAt.UTC().Format(time.RFC3339Nano)),
		number(HeaderReplays, int64(replays(record))),
	)
}

// replays returns the larger of the caller's count and the count in the record's header. A caller
// that did not read the header must not reset the count.
func replays(record projection.Record) int {
	return min(max(record.Replays, ReplaysOf(record.Headers), 0), math.MaxInt32)
}

// identity returns the headers that identify the event: its index in the record, and the
// fields that could be read.
func identity(letter projection.DeadLetter) (headers []kgo.RecordHeader) {
	add := func(known bool, header kgo.RecordHeader) {
		if known {
			headers = append(headers, header)
		}
	}
	add(letter.Record.Entry > 0, number(HeaderEntry, int64(letter.Record.Entry)-1))
	add(letter.AccountID != "", text(HeaderAccountID, letter.AccountID))
	if letter.Expected != nil {
		add(true, number(HeaderExpectedVersion, *letter.Expected))
	}
	add(letter.Identified || letter.Received != 0, number(HeaderReceivedVersion, letter.Received))
	add(letter.EventID != "", text(HeaderEventID, letter.EventID))
	add(letter.CorrelationID != "", text(HeaderCorrelationID, letter.CorrelationID))
	return headers
}

func text(key, value string) kgo.RecordHeader {
	return kgo.RecordHeader{Key: key, Value: []byte(strings.ToValidUTF8(value, "\uFFFD"))}
}

func number(key string, value int64) kgo.RecordHeader {
	return kgo.RecordHeader{Key: key, Value: strconv.AppendInt(nil, value, 10)}
}

// clip bounds a message to maxMessageBytes without splitting a character.
func clip(message string) string {
	const ellipsis = "…"
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxMessageBytes {
		return message
	}
	end := maxMessageBytes - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}

// Cut says which parts of the original are left out because the whole dead letter is too large for
// the topic. Each step leaves out one more part.
type Cut uint8

// These are the steps of cutting, in order.
const (
	Whole          Cut = iota
	WithoutValue       // the value is replaced by its digest and length
	WithoutHeaders     // the original's headers are replaced by their count, too
	WithoutKey         // the key is replaced by its digest and length, too
)

// maxIdentityBytes bounds the ids of a dead letter whose original headers were left out. The event
// contract limits account and event ids to 200 bytes. The producer chooses the correlation id, so
// it may be too long for any topic.
const maxIdentityBytes = 1024

// Record returns the dead letter to publish to topic. Key and value are shared with the original,
// not copied. A nil value stays nil, and an empty value stays empty.
func Record(letter projection.DeadLetter, stamp Stamp, topic string, failedAt time.Time) *kgo.Record {
	return &kgo.Record{
		Topic:   topic,
		Key:     letter.Record.Key,
		Value:   letter.Record.Value,
		Headers: Headers(letter, stamp, failedAt),
	}
}

// Truncated returns the dead letter without the parts that the parameter cut names. A part that the
// original does not have is not marked as left out.
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

// String names the parts that are left out.
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
