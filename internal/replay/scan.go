package replay

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
)

// A scan queries the read model for one chunk of records at a time. These constants limit the
// number and the size of the records of a chunk.
const (
	ChunkRecords = 5000
	chunkBytes   = 16 << 20
)

// askWithin is the deadline for the queries of one chunk to the read model.
const askWithin = 25 * time.Second

// Selection selects dead letters.
type Selection struct {
	Filter   dlq.Filter
	Statuses []dlq.Status // nil means all
}

// Scan reads dead letters, with their status, one chunk after the other.
type Scan struct {
	Topic   string // topic of the dead letters
	Source  Source
	Store   Store
	Formats event.Resolver
	Selection
	Payload bool // read key, value and headers too
	// AllowNotInTopic accepts lines of an export that are missing in the topic.
	AllowNotInTopic bool
	// KeepOriginals stores the topic's record for each line of an export.
	KeepOriginals bool
	// Lost is called with each partition that cannot be read. If Lost is nil, such a partition ends
	// the scan with an IncompleteError. A caller that uses the result to change something must
	// leave Lost nil.
	Lost     func(*topic.PartitionError)
	Progress func(done, total int64) // counts offsets of the topic; may be nil

	Foreign int            // number of records that are not dead letters
	Matched int            // number of dead letters that the filter selects, with any status
	Others  map[string]int // number of dead letters of other projections, by projection name
}

// IncompleteError is returned if a selected partition cannot be read.
type IncompleteError struct {
	Lost   *topic.PartitionError
	Others []int32 // selected partitions that can still be read
}

func (e *IncompleteError) Error() string { return e.Lost.Error() }

func (e *IncompleteError) Unwrap() error { return e.Lost }

// Each calls fn with every selected dead letter of the topic, in the order in which the records are
// read.
func (s *Scan) Each(ctx context.Context, fn func(*DeadLetter) error) error {
	chunk, size := []*DeadLetter{}, 0
	for record, err := range s.records(ctx) {
		if lost, is := errors.AsType[*topic.PartitionError](err); is {
			if s.Lost == nil {
				return &IncompleteError{lost, s.readable(ctx, lost.Partition)}
			}
			s.Lost(lost)
			continue
		}
		if err != nil {
			return err
		}
		entry, err := dlq.Parse(record)
		if err != nil {
			s.Foreign++
			continue
		}
		d, err := s.Read(ctx, s.Topic, entry)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		chunk, size = append(chunk, d), size+d.bytes()
		if len(chunk) >= ChunkRecords || size >= chunkBytes {
			if err := s.deliver(ctx, chunk, fn); err != nil {
				return err
			}
			chunk, size = chunk[:0], 0
		}
	}
	return s.deliver(ctx, chunk, fn)
}

// Read decodes an entry. If the message contains an event, the entry gets its ids and its version,
// because this event would be applied. The headers may contain others, for example because the
// mapping has changed since. Read returns nil if the entry is not selected.
func (s *Scan) Read(ctx context.Context, dlqTopic string, entry dlq.Entry) (*DeadLetter, error) {
	d := &DeadLetter{DLQTopic: dlqTopic, Entry: entry}
	e := &d.Entry
	if err := s.decode(ctx, e.Original(), &d.Decoded); err != nil {
		return nil, err
	}
	if ev := &d.Decoded.Event; d.Decoded.Identity == event.Identified {
		if e.AccountID != ev.AccountID {
			e.Expected = nil // this is the next version of another account
		}
		if e.Received == nil || *e.Received != ev.Version {
			e.Received = new(ev.Version)
		}
		e.AccountID, e.EventID = ev.AccountID, ev.ID
	}
	if of := s.Filter.Projection; of != "" && of != e.Projection {
		s.countOther(e.Projection)
		return nil, nil
	}
	if !s.Filter.Matches(e) {
		return nil, nil
	}
	s.Matched++
	share(e)
	if s.Payload {
		e.Key, e.Value = bytes.Clone(e.Key), bytes.Clone(e.Value)
		e.Headers = slices.Clone(e.Headers)
		for i := range e.Headers {
			e.Headers[i].Value = bytes.Clone(e.Headers[i].Value)
		}
	} else {
		e.Key, e.Value, e.Headers = nil, nil, nil
	}
	return d, nil
}

// decode decodes a message. The texts of the event are copied, because a replay keeps many events
// in memory. Otherwise each of them would keep a whole response of a broker.
func (s *Scan) decode(ctx context.Context, message event.Message, into *event.Decoded) error {
	format, err := s.Formats.Resolve(ctx, message)
	if err == nil {
		format.Decode(message, into)
		into.Keep()
	}
	return err
}

// bytes returns the size of the parts of a dead letter that may be large.
func (d *DeadLetter) bytes() int {
	record := projection.Record{Message: d.Entry.Original()}
	return record.Bytes() + len(d.Entry.CorrelationID) + len(d.Decoded.Event.CorrelationID) + len(d.Decoded.Event.Data)
}

// share makes equal texts of different entries share memory, because a replay has many entries in
// memory.
func share(e *dlq.Entry) {
	one := func(text string) string { return unique.Make(text).Value() }
	e.Class, e.Message, e.Topic = event.Class(one(string(e.Class))), one(e.Message), one(e.Topic)
	e.Group, e.Projection = one(e.Group), one(e.Projection)
}

func (s *Scan) countOther(name string) {
	if s.Others == nil {
		s.Others = map[string]int{}
	}
	const enough = 100 // with more different texts, they are probably not names of projections
	if _, known := s.Others[name]; !known && len(s.Others) >= enough {
		name = "…"
	}
	s.Others[strings.Clone(name)]++
}

// records streams the records of the topic, or only those at the selected partitions and offsets.
func (s *Scan) records(ctx context.Context) iter.Seq2[*kgo.Record, error] {
	if len(s.Filter.DLQPartitions) > 0 && len(s.Filter.DLQOffsets) > 0 {
		return readAt(ctx, s.Source, s.places)
	}
	return s.Source.Records(ctx, topic.Scope{Partitions: s.Filter.DLQPartitions, Progress: s.Progress})
}

// places yields each combination of the selected partitions and offsets.
func (s *Scan) places(yield func(int32, int64) bool) {
	for _, partition := range s.Filter.DLQPartitions {
		for _, offset := range s.Filter.DLQOffsets {
			if !yield(partition, offset) {
				return
			}
		}
	}
}

// readAt returns the records at some partitions and offsets of a topic. After an error it skips the
// rest of that partition.
func readAt(ctx context.Context, from Source, places iter.Seq2[int32, int64]) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		lost := map[int32]bool{}
		for partition, offset := range places {
			if lost[partition] {
				continue
			}
			record, err := from.ReadAt(ctx, partition, offset)
			if errors.Is(err, topic.ErrNoRecord) {
				continue
			}
			if !yield(record, err) {
				return
			}
			lost[partition] = err != nil
		}
	}
}

// deliver sets the status of each dead letter of a chunk, and calls fn with the selected ones.
func (s *Scan) deliver(ctx context.Context, chunk []*DeadLetter, fn func(*DeadLetter) error) error {
	if len(chunk) == 0 {
		return nil
	}
	if err := Assess(ctx, s.Store, chunk); err != nil {
		return err
	}
	for _, d := range chunk {
		if s.Statuses != nil && !slices.Contains(s.Statuses, d.Status) {
			continue
		}
		if err := fn(d); err != nil {
			return err
		}
	}
	return nil
}

// readable returns the selected partitions that can be read, except one partition.
func (s *Scan) readable(ctx context.Context, lost int32) []int32 {
	all, _, err := s.Source.Extents(ctx)
	if err != nil {
		return nil
	}
	var others []int32
	for _, e := range all.Partitions {
		chosen := len(s.Filter.DLQPartitions) == 0 || slices.Contains(s.Filter.DLQPartitions, e.Partition)
		if chosen && e.Err == nil && e.Partition != lost {
			others = append(others, e.Partition)
		}
	}
	return others
}
