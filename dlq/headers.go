package dlq

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection"
	"projector/projection/event"
)

// OwnPrefix starts every header key that belongs to this project. Headers under
// it never count as the original's.
const OwnPrefix = "__projector."

// The headers added to a dead letter. All values are UTF-8 text, numbers are
// decimal.
const (
	HeaderClass           = OwnPrefix + "errors.class"
	HeaderMessage         = OwnPrefix + "errors.message" // no amounts, no payload text
	HeaderTopic           = OwnPrefix + "errors.topic"
	HeaderPartition       = OwnPrefix + "errors.partition"
	HeaderOffset          = OwnPrefix + "errors.offset"
	HeaderTimestamp       = OwnPrefix + "errors.timestamp" // ms since the Unix epoch; projection.LastTimestamp: beyond what the client can tell
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

// The headers of a dead letter that had to be cut because it was too large. A
// digest is SHA-256 in lower-case hex.
const (
	HeaderValueSHA256    = OwnPrefix + "errors.value_sha256"
	HeaderValueBytes     = OwnPrefix + "errors.value_bytes"
	HeaderHeadersDropped = OwnPrefix + "errors.headers_dropped" // count of the original's headers
	HeaderKeySHA256      = OwnPrefix + "errors.key_sha256"
	HeaderKeyBytes       = OwnPrefix + "errors.key_bytes"
)

// maxMessageBytes bounds HeaderMessage: a reason is a sentence.
const maxMessageBytes = 512

// Stamp says who dead-lettered: the consumer group and the projection.
type Stamp struct {
	Group      string
	Projection string
}

// Headers returns the headers of the dead letter: the original's in their order,
// byte for byte (a null value stays null, an empty one empty) without those
// under OwnPrefix, then ours. Identity headers are there only when the letter
// has an account. Header values are shared with the letter's record.
func Headers(letter projection.DeadLetter, stamp Stamp, failedAt time.Time) []kgo.RecordHeader {
	kept := originals(letter.Record.Headers)
	return append(kept, ownHeaders(letter, stamp, failedAt)...)
}

// ReplaysOf returns how often a consumed record has been replayed, by the header
// that a replay to a topic leaves on it: 0 when there is none or it is garbled.
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

// ownHeaders are the headers we add to every dead letter, whole or cut.
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

// replays is the larger of what the caller counted and what the record itself
// carries: a caller that did not look at the header must not reset the count.
func replays(record projection.Record) int {
	return min(max(record.Replays, ReplaysOf(record.Headers), 0), math.MaxInt32)
}

// identity is what could be read of the event.
func identity(letter projection.DeadLetter) (headers []kgo.RecordHeader) {
	add := func(known bool, header kgo.RecordHeader) {
		if known {
			headers = append(headers, header)
		}
	}
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
