package projection

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"projector/projection/event"
)

// Record is one consumed Kafka record with its coordinates. Byte
// slices are owned by the Record from its fetch on and never changed.
type Record struct {
	event.Message
	Topic     string
	Partition int32
	// LeaderEpoch is Kafka's count of the partition's leaders when the record was appended;
	// NoEpoch: not known.
	LeaderEpoch int32
	Offset      int64
	Timestamp   int64 // milliseconds since the Unix epoch; see NoTimestamp and LastTimestamp
	// Replays is how often the record has been replayed from the DLQ.
	Replays int
}

const (
	// NoTimestamp is the time of a record that has none, as in Kafka.
	NoTimestamp = -1
	// LastTimestamp, in the year 2262, is any time beyond what the Kafka client can
	// represent. Usually a producer has written nanoseconds instead of milliseconds.
	LastTimestamp = math.MaxInt64 / 1_000_000
)

// RecordRef names a record by its place.
type RecordRef struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Ref is the place of the record.
func (r *Record) Ref() RecordRef { return RecordRef{r.Topic, r.Partition, r.Offset} }

// Bytes is about how much memory key, value and headers take.
func (r *Record) Bytes() int {
	const header = 40
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += header + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// Next is the offset after the record.
func (r *Record) Next() NextOffset { return NextOffset{r.Offset + 1, r.LeaderEpoch} }

// DeadLetter is a record that will not be applied now, and why.
type DeadLetter struct {
	Record  Record
	Class   event.Class
	Message string // the reason, without amounts and payload text

	// Identified: account, event id and version could be read. Otherwise each of the
	// texts is set that could be read, and Received when it is not 0.
	Identified    bool
	AccountID     string
	EventID       string
	CorrelationID string
	Received      int64  // the event's version
	Expected      *int64 // the account's version + 1; nil: not known, or no version is looked at
}

// NewDeadLetter is the dead letter of a record. It holds nothing of the fetch the record
// came in.
func NewDeadLetter(rec Record, d *event.Decoded, class event.Class, message string) DeadLetter {
	rec, kept := Keep(rec, d)
	ev := &kept.Event
	return DeadLetter{
		Record: rec, Class: class, Message: message, Identified: d.Identity == event.Identified,
		AccountID: ev.AccountID, EventID: ev.ID, CorrelationID: ev.CorrelationID, Received: ev.Version,
	}
}

// Keep copies a record that outlives its fetch, so that it does not hold the memory of the
// whole fetch.
func Keep(rec Record, d *event.Decoded) (Record, event.Decoded) {
	rec.Key, rec.Value, rec.Headers = bytes.Clone(rec.Key), bytes.Clone(rec.Value), slices.Clone(rec.Headers)
	for i := range rec.Headers {
		rec.Headers[i].Value = bytes.Clone(rec.Headers[i].Value)
	}
	kept := *d
	ev := &kept.Event
	ev.ID, ev.AccountID, ev.CorrelationID = strings.Clone(ev.ID), strings.Clone(ev.AccountID), strings.Clone(ev.CorrelationID)
	return rec, kept
}

// DecodedRecord is a record and its decoded event.
type DecodedRecord struct {
	Record  Record
	Decoded event.Decoded
	// Reprocessed: the record was processed before, or another one in its place; see
	// Account.Apply.
	Reprocessed bool
	// Discarded: a person has discarded the record of this place. It has no effect.
	Discarded bool
	// More: further entries of the same record follow. A position passes the record only with the
	// last of them.
	More bool
}

// AppendDecoded decodes a record and appends its event, or one for each entry.
func AppendDecoded(list []DecodedRecord, record Record, format event.Format) []DecodedRecord {
	if series, is := format.(event.Series); is {
		return appendSeries(list, record, series)
	}
	list = append(list, DecodedRecord{Record: record})
	format.Decode(record.Message, &list[len(list)-1].Decoded)
	return list
}

func appendSeries(list []DecodedRecord, record Record, series event.Series) []DecodedRecord {
	begin := len(list)
	series.DecodeEach(record.Message, func(entry int32) *event.Decoded {
		record.Entry = entry
		list = append(list, DecodedRecord{Record: record, More: true})
		return &list[len(list)-1].Decoded
	})
	if len(list) > begin {
		list[len(list)-1].More = false
	}
	return list
}

// Through returns the position after records were processed. from is the position before. The
// last record is not passed if entries of it are left.
func Through(records []DecodedRecord, from NextOffset) NextOffset {
	for i := len(records) - 1; i >= 0; i-- {
		if !records[i].More {
			return records[i].Record.Next()
		}
	}
	return from
}
