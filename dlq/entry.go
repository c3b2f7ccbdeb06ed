package dlq

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection"
	"projector/projection/event"
)

// ErrTruncated is returned when the whole original record is needed, but the dead letter was cut
// because it was too large.
var ErrTruncated = errors.New("the dead letter does not hold the whole original record")

// Entry is one record of a DLQ topic, read back. Key, Value and header values
// share memory with the record it was parsed from. The fields with a name in JSON are a part of a
// line of an export.
type Entry struct {
	DLQPartition int32 `json:"dlq_partition"`
	DLQOffset    int64 `json:"dlq_offset"`

	Class   event.Class `json:"class"` // the header's text; a later release may have written a class that is unknown here
	Message string      `json:"message"`

	// These fields are empty or nil if they could not be read when the event failed.
	AccountID     string `json:"account_id,omitempty"`
	EventID       string `json:"event_id,omitempty"`
	CorrelationID string `json:"-"`
	Expected      *int64 `json:"expected_version"` // the account's version + 1 when it failed
	Received      *int64 `json:"received_version"` // the event's version

	// These fields say where the original record is in its source topic.
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp"` // milliseconds since the Unix epoch
	// Event is the number of the event within the record, as in event.Message.Entry.
	Event int32 `json:"-"`

	FailedAt   time.Time `json:"-"` // UTC
	Replays    int       `json:"replays"`
	Group      string    `json:"group"`
	Projection string    `json:"projection"`

	// These fields are the original message. Headers does not contain headers under OwnPrefix.
	Key     []byte         `json:"-"`
	Value   []byte         `json:"-"`
	Headers []event.Header `json:"-"`

	// Truncated reports that the value, the headers or the key were left out. A digest is SHA-256
	// in lower-case hex. It is empty if its part was not left out.
	Truncated      bool   `json:"truncated,omitempty"`
	ValueSHA256    string `json:"-"`
	ValueBytes     int64  `json:"-"`
	HeadersDropped int    `json:"-"`
	KeySHA256      string `json:"-"`
	KeyBytes       int64  `json:"-"`
}

// Parse reads a record of a DLQ topic. The error names the header that is missing or invalid, but
// never contains the header's text. A record that another program wrote to the topic also gives
// such an error.
func Parse(record *kgo.Record) (Entry, error) {
	entry := Entry{
		DLQPartition: record.Partition,
		DLQOffset:    record.Offset,
		Key:          record.Key,
		Value:        record.Value,
	}
	own := fields{}
	for _, h := range record.Headers {
		if !strings.HasPrefix(h.Key, OwnPrefix) {
			entry.Headers = append(entry.Headers, event.Header{Key: h.Key, Value: h.Value})
			continue
		}
		own.add(h)
	}
	entry.read(&own)
	if own.err != nil {
		return Entry{}, own.err
	}
	return entry, nil
}

func (e *Entry) read(own *fields) {
	e.Class = event.Class(own.name(HeaderClass))
	e.Message = own.text(HeaderMessage)
	e.Topic = own.name(HeaderTopic)
	e.Partition = int32(own.number(HeaderPartition, 0, maxInt32)) //nolint:gosec // within the limits given
	e.Offset = own.number(HeaderOffset, 0, maxInt64)
	e.Timestamp = own.number(HeaderTimestamp, minInt64, maxInt64)
	e.Group = own.text(HeaderGroup)
	e.Projection = own.text(HeaderProjection)
	e.FailedAt = own.time(HeaderFailedAt)
	e.Replays = int(own.number(HeaderReplays, 0, maxInt32))
	e.readIdentity(own)
	e.readCut(own)
}

func (e *Entry) readIdentity(own *fields) {
	if own.has(HeaderEntry) {
		e.Event = int32(own.number(HeaderEntry, 0, maxInt32-1)) + 1 //nolint:gosec // within the limits given
	}
	if own.has(HeaderAccountID) {
		e.AccountID = own.text(HeaderAccountID)
	}
	if own.has(HeaderEventID) {
		e.EventID = own.text(HeaderEventID)
	}
	if own.has(HeaderCorrelationID) {
		e.CorrelationID = own.text(HeaderCorrelationID)
	}
	if own.has(HeaderExpectedVersion) {
		e.Expected = new(own.number(HeaderExpectedVersion, minInt64, maxInt64))
	}
	if own.has(HeaderReceivedVersion) {
		e.Received = new(own.number(HeaderReceivedVersion, minInt64, maxInt64))
	}
}

func (e *Entry) readCut(own *fields) {
	if own.has(HeaderValueSHA256) || own.has(HeaderValueBytes) {
		e.Truncated = true
		e.ValueSHA256 = own.digest(HeaderValueSHA256)
		e.ValueBytes = own.number(HeaderValueBytes, 0, maxInt64)
	}
	if own.has(HeaderHeadersDropped) {
		e.Truncated = true
		e.HeadersDropped = int(own.number(HeaderHeadersDropped, 0, maxInt32))
	}
	if own.has(HeaderKeySHA256) || own.has(HeaderKeyBytes) {
		e.Truncated = true
		e.KeySHA256 = own.digest(HeaderKeySHA256)
		e.KeyBytes = own.number(HeaderKeyBytes, 0, maxInt64)
	}
}

// Original returns the message of the original record.
func (e *Entry) Original() event.Message {
	return event.Message{Key: e.Key, Value: e.Value, Headers: e.Headers, Entry: e.Event}
}

// Republish returns the original as a record to produce to topic. Key, value and headers are
// unchanged. One header is added: the count of replays, so that the next dead letter of this event
// continues the count. It returns ErrTruncated if a part of the original is lost.
func (e Entry) Republish(topic string) (*kgo.Record, error) {
	if e.Truncated {
		return nil, ErrTruncated
	}
	return &kgo.Record{
		Topic:   topic,
		Key:     e.Key,
		Value:   e.Value,
		Headers: append(originals(e.Headers), number(HeaderReplays, int64(e.Replays)+1)),
	}, nil
}

// Status says what has to happen to a dead letter now. Its values are part of the public interface.
type Status string

// Only Discarded is set by a person. StatusOf computes the other statuses.
const (
	// Open means that a person has to decide. There are three causes. First, the event's account or
	// version cannot be read. Second, another event with the same version was applied. Third, the
	// event has the account's next version, but it cannot be applied, or it is unknown whether it
	// can be applied.
	Open Status = "open"
	// Ready means that the event has the next version of its account and would be applied now.
	Ready Status = "ready"
	// Waiting means that an earlier event of the account is missing.
	Waiting Status = "waiting"
	// Resolved means that the account's version is now at least the event's version.
	Resolved Status = "resolved"
	// Discarded means that a person decided to do nothing about the event.
	Discarded Status = "discarded"
)

// Statuses lists all statuses, for validating filters.
func Statuses() []Status { return []Status{Open, Ready, Waiting, Resolved, Discarded} }

// Subject returns the account and version of the dead letter's event. If the decoded message d is
// event.Identified, both come from d. Otherwise both come from the entry, which has them if they
// could be read when the event failed. The result ok is false if neither the message nor the entry
// has them.
func (e *Entry) Subject(d *event.Decoded) (account string, version int64, ok bool) {
	switch {
	case d.Identity == event.Identified:
		return d.Event.AccountID, d.Event.Version, true
	case e.AccountID != "" && e.EventID != "" && e.Received != nil:
		return e.AccountID, *e.Received, true
	default:
		return "", 0, false
	}
}

// StatusOf returns the status of an entry that was not discarded. The parameter d is the entry's
// message, decoded now. The parameter s is the read model's state of the account and version that
// Subject returns.
//
// A version conflict stays open until it is discarded, because another event with the same version
// was applied. An event that PostgreSQL refused is open, not ready, when it has the account's next
// version. Only a replay shows whether it can be applied now.
func (e *Entry) StatusOf(d *event.Decoded, s projection.ReplayStatus) Status {
	_, _, known := e.Subject(d)
	switch {
	case !known || e.Class == event.VersionConflict:
		return Open
	case s.Passed:
		return Resolved
	case s.Waiting:
		return Waiting
	case e.Truncated || d.Identity != event.Identified || e.Class == event.RejectedByDatabase:
		return Open
	case s.Decision.Outcome == projection.DeadLettered:
		return Open
	}
	return Ready
}

// Filter chooses dead letters by their fields. An empty field of the filter excludes nothing.
type Filter struct {
	Classes       []event.Class
	Projection    string
	Group         string
	Account       string
	Since, Until  time.Time // of FailedAt, both included
	Partitions    []int32   // of the source topic
	Offsets       []int64
	DLQPartitions []int32
	DLQOffsets    []int64
}

// Matches reports whether the filter chooses the entry.
func (f *Filter) Matches(e *Entry) bool {
	return among(f.Classes, e.Class) &&
		isOr(f.Projection, e.Projection) && isOr(f.Group, e.Group) && isOr(f.Account, e.AccountID) &&
		(f.Since.IsZero() || !e.FailedAt.Before(f.Since)) &&
		(f.Until.IsZero() || !e.FailedAt.After(f.Until)) &&
		among(f.Partitions, e.Partition) && among(f.Offsets, e.Offset) &&
		among(f.DLQPartitions, e.DLQPartition) && among(f.DLQOffsets, e.DLQOffset)
}

func isOr(chosen, value string) bool { return chosen == "" || chosen == value }

func among[T comparable](chosen []T, value T) bool {
	return len(chosen) == 0 || slices.Contains(chosen, value)
}
