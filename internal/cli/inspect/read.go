package inspect

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/topic"
	"projector/projection/event"
)

// readEach calls fn for the first records of the spans, at most limit in all. It reads the same
// number of records from each span if possible, because a producer may write to any partition. The
// function lost is called for a partition that cannot be read.
func readEach(
	ctx context.Context, reader *topic.Reader, spans []topic.Span, limit int64,
	fn func(*kgo.Record) error, lost func(*topic.PartitionError),
) error {
	for left := limit; left > 0 && len(spans) > 0; {
		shares := share(spans, left)
		var open []topic.Span // spans that may have more records
		for i := range spans {
			n, err := readSpan(ctx, reader, &spans[i], shares[i], fn)
			left -= n
			var gone *topic.PartitionError
			switch {
			case errors.As(err, &gone):
				lost(gone)
				continue
			case err != nil:
				return err
			}
			if spans[i].From < spans[i].To {
				open = append(open, spans[i])
			}
		}
		spans = open
	}
	return nil
}

// readSpan calls fn for at most limit records of a span. Then it moves the start of the span to the
// offset after these records.
func readSpan(ctx context.Context, reader *topic.Reader, span *topic.Span, limit int64, fn func(*kgo.Record) error) (n int64, err error) {
	if limit == 0 {
		return 0, nil
	}
	for record, err := range reader.Range(ctx, *span) {
		if err == nil {
			err = fn(record)
		}
		if err != nil {
			return n, err
		}
		span.From = record.Offset + 1
		if n++; n == limit {
			return n, nil
		}
	}
	span.From = span.To
	return n, nil
}

// share divides n records among spans as evenly as possible. No span gets more records than it has
// offsets. The first spans get the records that remain.
func share(spans []topic.Span, n int64) []int64 {
	shares := make([]int64, len(spans))
	for n > 0 {
		var open []int // the spans with offsets left
		each := n
		for i, s := range spans {
			if left := s.To - s.From - shares[i]; left > 0 {
				open, each = append(open, i), min(each, left)
			}
		}
		if len(open) == 0 {
			break
		}
		open = open[:min(int64(len(open)), n)]
		each = min(each, n/int64(len(open)))
		for _, i := range open {
			shares[i] += each
		}
		n -= each * int64(len(open))
	}
	return shares
}

func decodeAll(record *kgo.Record, message event.Message, format event.Format) []*decoded {
	var all []*decoded
	event.DecodeEach(format, message, func(entry int32) *event.Decoded {
		d := &decoded{record: record, entry: entry}
		all = append(all, d)
		return &d.Decoded
	})
	for _, d := range all {
		message.Entry = d.entry
		d.fields = event.Explain(format, message)
	}
	return all
}

// decoded is a record, or one of its entries, with the decoded event.
type decoded struct {
	record *kgo.Record
	entry  int32 // see event.Message
	event.Decoded
	fields []event.FieldReading
}

// isFar reports whether an event's time is more than ten years from that of its record. A wrong
// unit is the usual cause. For example, seconds that are read as milliseconds give a date in
// January 1970.
func (d *decoded) isFar() bool {
	const years = 10 * 365 * 24 * time.Hour
	return d.outcome() == isEvent && time.UnixMicro(d.Event.OccurredAt).Sub(d.record.Timestamp).Abs() > years
}

// faults returns all faults of a record that would be a dead letter, each with its class and its
// reason. For other records it returns nil.
func (d *decoded) faults() []string {
	var all []string
	if d.Fault != nil {
		all = append(all, string(d.Fault.Class)+": "+d.Fault.Error())
	}
	for i := range d.fields {
		if fault := d.fields[i].Fault; fault != nil && d.Fault != nil {
			if reason := string(fault.Class) + ": " + fault.Error(); !slices.Contains(all, reason) {
				all = append(all, reason)
			}
		}
	}
	return all
}

// These are the outcomes of records that would not become dead letters.
const (
	isEvent     = "event"
	isTombstone = "tombstone"
	isIgnored   = "ignored"
)

// outcome returns the class of the dead letter that the record would become, or one of the outcomes
// above.
func (d *decoded) outcome() string {
	switch {
	case d.Fault != nil:
		return string(d.Fault.Class)
	case d.Tombstone:
		return isTombstone
	case d.Skip || d.Event.Type == event.Ignorable:
		return isIgnored
	default:
		return isEvent
	}
}

const ignoredType = "its type is ignored by --ignore-event-types, the mapping or the projection file"

// message returns the reason for the outcome, or "".
func (d *decoded) message() string {
	switch {
	case d.Fault != nil:
		return d.Fault.Error()
	case d.Tombstone:
		return "has no value (a tombstone): it is skipped"
	case d.Skip:
		return ignoredType + ", and its ids or its version cannot be read: it has no effect"
	case d.Event.Type == event.Ignorable:
		return ignoredType + ": it only advances the version"
	default:
		return ""
	}
}

// version returns the event's version, or nil if it cannot be read.
func (d *decoded) version() *int64 {
	if d.Identity != event.Identified && d.Event.Version == 0 {
		return nil
	}
	return &d.Event.Version
}
