package projection

import (
	"bytes"
	"math"
	"slices"

	"projector/projection/event"
)

// Record is one consumed Kafka record with its topic, partition and offset. Its byte slices are
// never changed after the fetch.
type Record struct {
	event.Message
	Topic     string
	Partition int32
	// LeaderEpoch is Kafka's leader epoch when the record was appended. It is NoEpoch if it is not
	// known.
	LeaderEpoch int32
	Offset      int64
	Timestamp   int64 // milliseconds since the Unix epoch; see NoTimestamp and LastTimestamp
	// Replays is how often the record has been replayed from the DLQ.
	Replays int
}

const (
	// NoTimestamp is the timestamp of a record without one, as in Kafka.
	NoTimestamp = -1
	// LastTimestamp is in the year 2262. It replaces any later time, because the Kafka client
	// cannot represent later times. Usually the producer of such a record has written nanoseconds
	// instead of milliseconds.
	LastTimestamp = math.MaxInt64 / 1_000_000
)

// NoPartition is used for a record that did not come from a topic.
const NoPartition int32 = -1

// RecordRef identifies a record by its topic, partition and offset.
type RecordRef struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Ref returns the topic, partition and offset of the record.
func (r *Record) Ref() RecordRef { return RecordRef{r.Topic, r.Partition, r.Offset} }

// Bytes returns the approximate memory for key, value and headers.
func (r *Record) Bytes() int {
	const header = 40
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += header + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// Next returns the offset after the record.
func (r *Record) Next() NextOffset { return NextOffset{r.Offset + 1, r.LeaderEpoch} }

// DeadLetter is a record that is not applied now, together with the reason.
type DeadLetter struct {
	Record  Record
	Class   event.Class
	Message string // the reason, without amounts and payload text

	// Identified means that account, event id and version could be read. If it is false, AccountID,
	// EventID and Received are set only as far as they could be read.
	Identified    bool
	AccountID     string
	EventID       string
	CorrelationID string
	Received      int64  // the event's version
	Expected      *int64 // the account's version + 1; nil if not known, if versions are ignored, or after LastVersion
}

// NewDeadLetter returns the dead letter for a record. The record and its event must be those that
// Keep returned.
func NewDeadLetter(rec Record, d *event.Decoded, decision Decision) DeadLetter {
	ev := &d.Event
	return DeadLetter{
		Record: rec, Class: decision.Class, Message: decision.Message, Identified: d.Identity == event.Identified,
		AccountID: ev.AccountID, EventID: ev.ID, CorrelationID: ev.CorrelationID, Received: ev.Version,
	}
}

// Keep copies a record and the texts in its decoded event, so that they do not refer to the memory
// of the fetch.
func Keep(rec Record, d *event.Decoded) (Record, event.Decoded) {
	rec.Key, rec.Value, rec.Headers = bytes.Clone(rec.Key), bytes.Clone(rec.Value), slices.Clone(rec.Headers)
	for i := range rec.Headers {
		rec.Headers[i].Value = bytes.Clone(rec.Headers[i].Value)
	}
	kept := *d
	kept.Keep()
	return rec, kept
}

// DecodedRecord is a record and its decoded event.
type DecodedRecord struct {
	Record  Record
	Decoded event.Decoded
	// Reprocessed means that a record at this offset was processed before. See Account.Apply.
	Reprocessed bool
	// Discarded means that a person has discarded the record. The record has no effect.
	Discarded bool
	// More means that more entries of the same record follow. The position passes the record only
	// after its last entry.
	More bool
}

// AppendDecoded decodes a record and appends the result to list. If the record has several entries,
// AppendDecoded appends one element for each entry.
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

// Through returns the position after the records were processed. The parameter previous is the
// position before them. The position does not pass the last record if more of its entries follow.
func Through(records []DecodedRecord, previous NextOffset) NextOffset {
	for i := len(records) - 1; i >= 0; i-- {
		if !records[i].More {
			return records[i].Record.Next()
		}
	}
	return previous
}
