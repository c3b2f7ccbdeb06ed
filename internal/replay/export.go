package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/topic"
	"projector/projection/event"
	"projector/readmodel"
)

// EachOfFile calls fn with every selected dead letter of an export file. It ends with an
// ExportError if a line cannot be read, and with a RefusedExportError if the export is refused.
func (s *Scan) EachOfFile(ctx context.Context, file io.Reader, fn func(*DeadLetter) error) error {
	x, err := s.readExport(ctx, file)
	if err != nil {
		return err
	}
	if err := x.compare(ctx, s); err != nil {
		return err
	}
	var chunk []*DeadLetter
	for _, line := range x.lines {
		d := line.letter
		if len(chunk) > 0 && (len(chunk) >= ChunkRecords || chunk[0].DLQTopic != d.DLQTopic) {
			if err := s.deliver(ctx, chunk, fn); err != nil {
				return err
			}
			chunk = chunk[:0]
		}
		chunk = append(chunk, d)
	}
	return s.deliver(ctx, chunk, fn)
}

func (s *Scan) readExport(ctx context.Context, file io.Reader) (*export, error) {
	x := &export{places: map[dlqPlace]*exportLine{}}
	empty := true
	for exported, err := range dlq.ReadExport(file) {
		empty = false
		if err := s.refusal(&exported, err); err != nil {
			return nil, err
		}
		d, err := s.Read(ctx, exported.DLQTopic, exported.Entry)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		d.Corrected = exported.Corrected
		if err := x.add(exported.Line, &exported.Before, d); err != nil {
			return nil, err
		}
		d.Entry.Expected = exported.ExpectedOf(d.Entry.AccountID)
	}
	if empty {
		return nil, &ExportError{errors.New("is empty; write it with `projector dlq export --file=FILE`")}
	}
	return x, nil
}

// refusal returns the error that ends the scan, or nil if the line of the export is accepted. The
// parameter err is the error of reading the line.
func (s *Scan) refusal(line *dlq.Exported, err error) error {
	of := s.Filter.Projection
	switch {
	case errors.As(err, new(*dlq.AmbiguousValueError)):
		return &RefusedExportError{err.Error()}
	case err != nil:
		return &ExportError{err}
	case of != "" && of != line.Projection:
		return refusedLine(line.Line, "is a dead letter of projection %s and not of %s: replay it with --projection=%[1]s", line.Projection, of)
	default:
		return nil
	}
}

// ExportError says which part of an export cannot be read.
type ExportError struct{ Err error }

func (e *ExportError) Error() string { return fmt.Sprintf("read the export: %v", e.Err) }

func (e *ExportError) Unwrap() error { return e.Err }

// RefusedExportError is the reason why a whole export is refused.
type RefusedExportError struct{ Reason string }

func (e *RefusedExportError) Error() string { return e.Reason }

func refusedLine(line int, format string, args ...any) error {
	return &RefusedExportError{fmt.Sprintf("line %d: ", line) + fmt.Sprintf(format, args...)}
}

// export has the dead letters of an export file. A correction may change the content of an event,
// but not its account, id and version.
type export struct {
	lines  []*exportLine // in the order of the file
	places map[dlqPlace]*exportLine
}

type dlqPlace struct {
	topic     string
	partition int32
	offset    int64
}

type exportLine struct {
	number  int
	letter  *DeadLetter
	inTopic bool
}

// add adds a line. It refuses a line whose value contains another event than the line's ids name.
// It also refuses a second line for the same dead letter.
func (x *export) add(line int, before *dlq.Entry, d *DeadLetter) error {
	if err := sameEvent(line, before, d); err != nil {
		return err
	}
	e := &d.Entry
	place := dlqPlace{d.DLQTopic, e.DLQPartition, e.DLQOffset}
	if first, twice := x.places[place]; twice {
		return refusedLine(line, "is the dead letter of line %d once more", first.number)
	}
	// The digest is computed now, because the value of a resolved dead letter is dropped later.
	d.Value = readmodel.ValueDigest(e.Value)
	added := &exportLine{number: line, letter: d}
	x.lines, x.places[place] = append(x.lines, added), added
	return nil
}

func sameEvent(line int, before *dlq.Entry, d *DeadLetter) error {
	if d.Decoded.Identity != event.Identified {
		return nil // a line without an event is refused later or becomes poison
	}
	if field := before.Contradicts(&d.Decoded.Event); field != "" {
		return refusedLine(line, "%s is not that of the dead letter: a correction keeps accountId, eventId and version", field)
	}
	return nil
}

// compare compares the lines with the dead letters in the topic. The digest in the export file is
// not used, because a person may have changed it.
func (x *export) compare(ctx context.Context, s *Scan) error {
	for record, err := range x.records(ctx, s) {
		if err != nil {
			return err
		}
		line, asked := x.places[dlqPlace{s.Topic, record.Partition, record.Offset}]
		entry, err := dlq.Parse(record)
		if !asked || err != nil {
			continue
		}
		if err := line.compare(&entry); err != nil {
			return err
		}
		if err := line.keepOriginal(ctx, s, &entry); err != nil {
			return err
		}
	}
	for _, line := range x.lines {
		if err := line.check(s); err != nil {
			return err
		}
	}
	return nil
}

// compare compares a line with the topic's record at the same partition and offset. It refuses the
// line if it differs in more than the key, the value and the headers.
func (l *exportLine) compare(original *dlq.Entry) error {
	d := l.letter
	if field := original.PlaceDiffers(&d.Entry); field != "" {
		return refusedLine(l.number, "%s is not that of the dead letter: a correction changes key, value and headers only", field)
	}
	if err := sameEvent(l.number, original, d); err != nil {
		return err
	}
	l.inTopic, d.Corrected = true, !original.SameMessage(&d.Entry)
	d.OtherFrame = dlq.MessageDigest(original.Key, nil, original.Headers) != dlq.MessageDigest(d.Entry.Key, nil, d.Entry.Headers)
	// A truncated dead letter has the digest in a header.
	d.Original = cmp.Or(original.ValueSHA256, readmodel.ValueDigest(original.Value))
	return nil
}

func (l *exportLine) keepOriginal(ctx context.Context, s *Scan, e *dlq.Entry) error {
	if !s.KeepOriginals {
		return nil
	}
	message := e.Original()
	message.Key, message.Value = bytes.Clone(e.Key), bytes.Clone(e.Value)
	l.letter.InTopic = &Original{Value: message.Value}
	return s.decode(ctx, message, &l.letter.InTopic.Decoded)
}

// check refuses a line that is missing in the topic, unless Scan.AllowNotInTopic is set. It also
// refuses a correction that contains no event.
func (l *exportLine) check(s *Scan) error {
	d := l.letter
	if !l.inTopic {
		e := &d.Entry
		switch {
		case s.AllowNotInTopic:
			d.Corrected, d.NotInTopic = true, true
		case d.DLQTopic != s.Topic:
			return refusedLine(l.number, "is a dead letter of topic %s, and the DLQ topic is %s: name it with --dlq-topic, or apply the line as altered with --not-in-topic", d.DLQTopic, s.Topic)
		default:
			return refusedLine(l.number, "topic %s has no dead letter at %d/%d: apply the line as altered with --not-in-topic", s.Topic, e.DLQPartition, e.DLQOffset)
		}
	}
	if d.Corrected && d.Decoded.Identity != event.Identified {
		return refusedLine(l.number, "is no longer an event: %s", d.noEvent())
	}
	return nil
}

// readEach is the largest number of lines for which the record of each line is read alone. If the
// file has more lines, all records of their partitions are read.
const readEach = 100

// records returns the topic's records at the partitions and offsets that the export file names. It
// may return other records too.
func (x *export) records(ctx context.Context, s *Scan) iter.Seq2[*kgo.Record, error] {
	partitions := map[int32]bool{}
	for place := range x.places {
		if place.topic == s.Topic {
			partitions[place.partition] = true
		}
	}
	if len(partitions) == 0 {
		return func(func(*kgo.Record, error) bool) {}
	}
	if len(x.places) > readEach {
		return s.Source.Records(ctx, topic.Scope{Partitions: slices.Sorted(maps.Keys(partitions))})
	}
	return readAt(ctx, s.Source, func(yield func(int32, int64) bool) {
		for place := range x.places {
			if place.topic == s.Topic && !yield(place.partition, place.offset) {
				return
			}
		}
	})
}
