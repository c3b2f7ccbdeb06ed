package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/projection/event"
	"projector/readmodel"
)

// RefusedExportError says why nothing of an export is replayed.
type RefusedExportError struct{ Reason string }

// Error implements error.
func (e *RefusedExportError) Error() string { return e.Reason }

func refusedLine(line int, format string, args ...any) error {
	return &RefusedExportError{fmt.Sprintf("line %d: ", line) + fmt.Sprintf(format, args...)}
}

// originals are the dead letters that the lines of an export hold: a correction may change
// what an event says, and not which event it is.
type originals map[dlqPlace]original

type dlqPlace struct {
	topic     string
	partition int32
	offset    int64
}

type original struct {
	line   int
	letter *DeadLetter
}

// add takes in a line. It is refused when it holds another event than it says itself.
func (o originals) add(line int, said dlq.Identity, d *DeadLetter) error {
	if err := sameEvent(line, said, d); err != nil {
		return err
	}
	e := &d.Entry
	place := dlqPlace{d.DLQTopic, e.DLQPartition, e.DLQOffset}
	if first, twice := o[place]; twice {
		return refusedLine(line, "is the dead letter of line %d once more", first.line)
	}
	d.Value = readmodel.ValueDigest(e.Value) // of one that is resolved the value is not kept
	o[place] = original{line, d}
	return nil
}

func sameEvent(line int, identity dlq.Identity, d *DeadLetter) error {
	if d.Decoded.Identity != event.Identified {
		return nil // it is not replayed
	}
	if field := identity.Contradicts(&d.Decoded.Event); field != "" {
		return refusedLine(line, "%s is not that of the dead letter: a correction keeps accountId, eventId and version", field)
	}
	return nil
}

// readEach is up to how many records are read one by one and not with their whole topic.
const readEach = 100

// compare holds the lines against the dead letters themselves, as far as the topic still
// has them, and notes which values were altered.
func (o originals) compare(ctx context.Context, s *Scan) error {
	for record, err := range o.records(ctx, s) {
		if err != nil {
			return err
		}
		here, asked := o[dlqPlace{s.Topic, record.Partition, record.Offset}]
		entry, err := dlq.Parse(record)
		if !asked || err != nil {
			continue
		}
		d := here.letter
		if err := sameEvent(here.line, entry.Identity(), d); err != nil {
			return err
		}
		d.Original = cmp.Or(entry.ValueSHA256, readmodel.ValueDigest(entry.Value)) // the first of one that was cut
	}
	return nil
}

// records are the dead letters of the topic that stand in the file, perhaps with others.
func (o originals) records(ctx context.Context, s *Scan) iter.Seq2[*kgo.Record, error] {
	partitions := map[int32]bool{}
	for place := range o {
		if place.topic == s.Topic {
			partitions[place.partition] = true
		}
	}
	if len(partitions) == 0 {
		return func(func(*kgo.Record, error) bool) {}
	}
	if len(o) > readEach {
		return s.Source.Records(ctx, dlq.Scope{Partitions: slices.Sorted(maps.Keys(partitions))})
	}
	return func(yield func(*kgo.Record, error) bool) {
		for place := range o {
			if place.topic != s.Topic {
				continue
			}
			record, err := s.Source.ReadAt(ctx, place.partition, place.offset)
			if errors.Is(err, dlq.ErrNoRecord) {
				continue
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}
