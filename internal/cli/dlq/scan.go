package dlq

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/internal/cli/unread"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// A scan looks up its records in the read model a chunk at a time, bounded by
// their number and by their size.
const (
	ScanRecords = 5000
	scanBytes   = 16 << 20
)

// DeadLetter is a record of the DLQ topic and how it stands to the read model.
type DeadLetter struct {
	dlqTopic string
	Entry    dlq.Entry
	decoded  event.Decoded // what its value decodes to now
	status   dlq.Status
	replays  int // by way of a topic, and to the database
	// corrected: it was read from a file in which somebody has changed it.
	corrected bool
}

// Scan streams dead letters.
type Scan struct {
	*Tools
	selection
	payload bool // keep key, value and headers
	// whole: what is chosen is acted upon, so a partition that cannot be read ends the scan.
	whole    bool
	changed  bool // something has been acted upon already
	unread   unread.Partitions
	progress *output.Progress
	Foreign  int            // records that are no dead letters
	others   map[string]int // dead letters of other projections
	names    map[string]string
}

// Each calls fn with every chosen dead letter of the topic, in the topic's order. Partitions
// that cannot be read are kept in unread.
func (s *Scan) Each(ctx context.Context, fn func(*DeadLetter) error) error {
	chunk, size := []*DeadLetter{}, 0
	for record, err := range s.records(ctx) {
		var lost *dlq.PartitionError
		if errors.As(err, &lost) && !s.whole {
			s.unread.Add(lost)
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
			s.Foreign++
			continue
		}
		d, err := s.take(ctx, s.topic, entry, false)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		chunk, size = append(chunk, d), size+len(d.Entry.Value)
		if len(chunk) >= ScanRecords || size >= scanBytes {
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
func (s *Scan) take(ctx context.Context, dlqTopic string, entry dlq.Entry, corrected bool) (*DeadLetter, error) {
	d := &DeadLetter{dlqTopic: dlqTopic, Entry: entry, corrected: corrected}
	e := &d.Entry
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
func (s *Scan) share(e *dlq.Entry) {
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
func (s *Scan) records(ctx context.Context) iter.Seq2[*kgo.Record, error] {
	if len(s.filter.DLQPartitions) > 0 && len(s.filter.DLQOffsets) > 0 {
		return s.places(ctx)
	}
	scope := dlq.Scope{Partitions: s.filter.DLQPartitions}
	if s.progress != nil {
		scope.Progress = func(p dlq.Progress) { s.progress.Update(p.Done, p.Total) }
	}
	return s.reader.Records(ctx, scope)
}

func (s *Scan) places(ctx context.Context) iter.Seq2[*kgo.Record, error] {
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
func (s *Scan) hand(ctx context.Context, chunk []*DeadLetter, fn func(*DeadLetter) error) error {
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
func (t *Tools) assess(ctx context.Context, letters readmodel.Letters, chunk []*DeadLetter) error {
	ctx, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
	defer cancel()
	subjects := make([]readmodel.Subject, len(chunk))
	places := make([]readmodel.DeadLetterPlace, len(chunk))
	for i, d := range chunk {
		e := &d.Entry
		places[i] = readmodel.DeadLetterPlace{
			Partition: e.DLQPartition, Offset: e.DLQOffset,
			Original: projection.Place{Topic: connect.Storable(e.Topic), Partition: e.Partition, Offset: e.Offset},
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
		done := history[[2]int64{int64(d.Entry.DLQPartition), d.Entry.DLQOffset}]
		d.replays = d.Entry.Replays + done.Replays
		d.status = dlq.Discarded
		if !done.Discarded || d.corrected {
			d.status = d.Entry.StatusOf(&d.decoded, standings[i])
		}
	}
	return nil
}

// subject is the event the dead letter is about; its ids are empty when they are not
// known.
func (d *DeadLetter) subject() readmodel.Subject {
	account, version, _ := d.Entry.Subject(&d.decoded)
	return readmodel.Subject{
		AccountID: account, Version: version, EventID: cmp.Or(d.decoded.Event.ID, d.Entry.EventID),
		FailedAt: d.Entry.FailedAt, Decoded: &d.decoded,
	}
}

func (s *Scan) countOther(name string) {
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
func (s *Scan) finish(std *output.Streams) error {
	if s.Foreign > 0 {
		_, _ = fmt.Fprintf(std.Err, "%d records of topic %s are no dead letters and were passed over\n", s.Foreign, s.topic)
	}
	for _, name := range slices.Sorted(maps.Keys(s.others)) {
		_, _ = fmt.Fprintf(std.Err, "%d dead letters are of projection %s, see --projection\n", s.others[name], output.Printable(name))
	}
	s.unread.Topic = s.topic
	return s.unread.Explain(std.Err)
}

// refuse says why nothing is done to a part of what was chosen, and how to choose that part.
// Each dead letter would be dealt with rightly by itself. But one that is not seen may come
// before it (of two events for one version the first counts), and whoever is told that all
// is done does not look again.
func (s *Scan) refuse(ctx context.Context, lost *dlq.PartitionError) error {
	done := "nothing was changed"
	if s.changed {
		done = "only what is listed was changed"
	}
	text := fmt.Sprintf("%s. The selection is incomplete without it, so %s", lost.SafeText(), done)
	if others := s.readable(ctx, lost.Partition); len(others) > 0 {
		text += "; to go on with the others: --dlq-partition " + unread.NumbersText(others)
	}
	return exit.Refuse(text)
}

// readable are the partitions that are chosen and can be read.
func (s *Scan) readable(ctx context.Context, without int32) []int32 {
	all, _, err := s.reader.Extents(ctx)
	if err != nil {
		return nil
	}
	var others []int32
	for _, e := range all.Partitions {
		chosen := len(s.filter.DLQPartitions) == 0 || slices.Contains(s.filter.DLQPartitions, e.Partition)
		if chosen && e.Err == nil && e.Partition != without {
			others = append(others, e.Partition)
		}
	}
	return others
}

// nothing is what is said when there was nothing: not when it is not known.
func (s *Scan) nothing(text string) string {
	if len(s.unread.Lost) > 0 {
		return ""
	}
	return text
}

func (s *Scan) export(ctx context.Context, w io.Writer) (int, error) {
	out, n := bufio.NewWriter(w), 0
	err := s.Each(ctx, func(d *DeadLetter) error {
		n++
		return dlq.Export(out, s.topic, &d.Entry)
	})
	if err != nil {
		return 0, err
	}
	return n, out.Flush()
}
