package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// A scan looks up its records in the read model a chunk at a time, bounded by
// their number and by their size.
const (
	scanRecords = 5000
	scanBytes   = 16 << 20
)

// deadLetter is a record of the DLQ topic and how it stands to the read model.
type deadLetter struct {
	dlqTopic string
	entry    dlq.Entry
	decoded  event.Decoded // what its value decodes to now
	status   dlq.Status
	replays  int // by way of a topic, and to the database
	// corrected: it was read from a file in which somebody has changed it.
	corrected bool
}

// scan streams dead letters.
type scan struct {
	*dlqTools
	selection
	payload bool // keep key, value and headers
	// whole: what is chosen is acted upon, so a partition that cannot be read ends the scan.
	whole    bool
	changed  bool // something has been acted upon already
	unread   unread
	progress *progress
	foreign  int            // records that are no dead letters
	others   map[string]int // dead letters of other projections
	names    map[string]string
}

// each calls fn with every chosen dead letter of the topic, in the topic's order. Partitions
// that cannot be read are kept in unread.
func (s *scan) each(ctx context.Context, fn func(*deadLetter) error) error {
	chunk, size := []*deadLetter{}, 0
	for record, err := range s.records(ctx) {
		var lost *dlq.PartitionError
		if errors.As(err, &lost) && !s.whole {
			s.unread.add(lost)
			continue
		}
		if lost != nil {
			return s.refuse(ctx, lost)
		}
		if err != nil {
			return err
		}
		entry, err := dlq.Parse(record)
		if err != nil {
			s.foreign++
			continue
		}
		d, err := s.take(ctx, s.topic, entry, false)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		chunk, size = append(chunk, d), size+len(d.entry.Value)
		if len(chunk) >= scanRecords || size >= scanBytes {
			if err := s.hand(ctx, chunk, fn); err != nil {
				return err
			}
			chunk, size = chunk[:0], 0
		}
	}
	return s.hand(ctx, chunk, fn)
}

// take decodes an entry, completes what can be read of it now, and keeps it if it
// is chosen, else answers nil: without what nobody will look at.
func (s *scan) take(ctx context.Context, dlqTopic string, entry dlq.Entry, corrected bool) (*deadLetter, error) {
	d := &deadLetter{dlqTopic: dlqTopic, entry: entry, corrected: corrected}
	e := &d.entry
	message := event.Message{Key: e.Key, Value: e.Value, Headers: e.Headers}
	format, err := s.formats.Resolve(ctx, message)
	if err != nil {
		return nil, err
	}
	format.Decode(message, &d.decoded)
	if account, version, known := e.Subject(&d.decoded); known && e.AccountID == "" {
		e.AccountID, e.Received, e.EventID = account, &version, d.decoded.Event.ID
	}
	if of := s.filter.Projection; of != "" && of != e.Projection {
		s.countOther(e.Projection)
		return nil, nil
	}
	if !s.filter.Matches(e) {
		return nil, nil
	}
	s.share(e)
	if s.payload {
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

// share makes the entry use one copy of texts that nearly all entries have: a
// replay holds many entries at once.
func (s *scan) share(e *dlq.Entry) {
	const enough = 1000 // different ones; more are no names
	if s.names == nil {
		s.names = map[string]string{}
	}
	one := func(text string) string {
		if known, found := s.names[text]; found {
			return known
		}
		if len(s.names) < enough {
			s.names[text] = text
		}
		return text
	}
	e.Class, e.Message, e.Topic = event.Class(one(string(e.Class))), one(e.Message), one(e.Topic)
	e.Group, e.Projection = one(e.Group), one(e.Projection)
}

// records streams the topic, or only the places that were named.
func (s *scan) records(ctx context.Context) iter.Seq2[*kgo.Record, error] {
	if len(s.filter.DLQPartitions) > 0 && len(s.filter.DLQOffsets) > 0 {
		return s.places(ctx)
	}
	scope := dlq.Scope{Partitions: s.filter.DLQPartitions}
	if s.progress != nil {
		scope.Progress = func(p dlq.Progress) { s.progress.update(p.Done, p.Total) }
	}
	return s.reader.Records(ctx, scope)
}

func (s *scan) places(ctx context.Context) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		for _, partition := range s.filter.DLQPartitions {
			for _, offset := range s.filter.DLQOffsets {
				record, err := s.reader.ReadAt(ctx, partition, offset)
				if errors.Is(err, dlq.ErrNoRecord) {
					continue
				}
				if !yield(record, err) {
					return
				}
				if err != nil {
					break // of this partition; whoever cannot go on has said so
				}
			}
		}
	}
}

// hand completes a chunk from the read model and hands on what is chosen of it.
func (s *scan) hand(ctx context.Context, chunk []*deadLetter, fn func(*deadLetter) error) error {
	if len(chunk) == 0 {
		return nil
	}
	if err := s.assess(ctx, s.letters(0), chunk); err != nil {
		return err
	}
	for _, d := range chunk {
		if !s.includes(d.status) {
			continue
		}
		if err := fn(d); err != nil {
			return err
		}
	}
	return nil
}

// assess gives each its status. All of a chunk are of one DLQ topic and one projection.
func (t *dlqTools) assess(ctx context.Context, letters readmodel.Letters, chunk []*deadLetter) error {
	ctx, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	subjects := make([]readmodel.Subject, len(chunk))
	places := make([]readmodel.DeadLetterPlace, len(chunk))
	for i, d := range chunk {
		e := &d.entry
		places[i] = readmodel.DeadLetterPlace{
			Partition: e.DLQPartition, Offset: e.DLQOffset,
			Original: projection.Place{Topic: storable(e.Topic), Partition: e.Partition, Offset: e.Offset},
		}
		subjects[i] = d.subject()
	}
	standings, err := letters.Standings(ctx, subjects)
	if err != nil {
		return err
	}
	history, err := readmodel.LoadHistory(ctx, t.pool, chunk[0].dlqTopic, places)
	if err != nil {
		return err
	}
	for i, d := range chunk {
		done := history[[2]int64{int64(d.entry.DLQPartition), d.entry.DLQOffset}]
		d.replays = d.entry.Replays + done.Replays
		d.status = dlq.Discarded
		if !done.Discarded || d.corrected {
			d.status = d.entry.StatusOf(&d.decoded, standings[i])
		}
	}
	return nil
}

// subject is the event the dead letter is about; its ids are empty when they are not
// known.
func (d *deadLetter) subject() readmodel.Subject {
	account, version, _ := d.entry.Subject(&d.decoded)
	return readmodel.Subject{
		AccountID: account, Version: version, EventID: cmp.Or(d.decoded.Event.ID, d.entry.EventID),
		FailedAt: d.entry.FailedAt, Decoded: &d.decoded,
	}
}

func (s *scan) countOther(name string) {
	if s.others == nil {
		s.others = map[string]int{}
	}
	const enough = 100 // different ones; more are no names
	if _, known := s.others[name]; !known && len(s.others) >= enough {
		name = "…"
	}
	s.others[strings.Clone(name)]++
}

// finish tells of records that are no dead letters, or not of this projection, and of
// partitions that could not be read: then it answers an incompleteError.
func (s *scan) finish(std *streams) error {
	if s.foreign > 0 {
		_, _ = fmt.Fprintf(std.err, "%d records of topic %s are no dead letters and were passed over\n", s.foreign, s.topic)
	}
	for _, name := range slices.Sorted(maps.Keys(s.others)) {
		_, _ = fmt.Fprintf(std.err, "%d dead letters are of projection %s, see --projection\n", s.others[name], printable(name))
	}
	s.unread.topic = s.topic
	return s.unread.explain(std.err)
}
