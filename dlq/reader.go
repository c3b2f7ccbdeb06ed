package dlq

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrNoRecord is returned when there is no record at a place of a DLQ topic:
// never was, not yet, no more, or it is a control record.
var ErrNoRecord = errors.New("no record there")

// Reader reads a DLQ topic. It keeps no state between calls.
type Reader struct {
	client *kgo.Client
	adm    *kadm.Client
	topic  string
	pause  time.Duration // between two tries
}

// NewReader reads topic through client, which needs neither consumer nor group
// options. The caller keeps and closes the client.
func NewReader(client *kgo.Client, topic string) *Reader {
	return &Reader{client: client, adm: kadm.NewClient(client), topic: topic, pause: defaultPause}
}

// Scope says what to read.
type Scope struct {
	// Partitions of the DLQ topic; nil means all. Unknown ones are empty.
	Partitions []int32
	// Progress, when not nil, is called after each fetch.
	Progress func(Progress)
}

// Progress counts offsets, not records: some offsets hold no record to read.
type Progress struct {
	Done  int64
	Total int64
}

// Records streams the committed records of the topic, one partition after the
// other, each in offset order, from its first to its last stable offset as they
// stood when the iteration began. It holds one fetch at a time. A topic that
// does not exist is an empty one. An error ends the iteration; it comes with a
// nil record.
//
// A record shares memory with those fetched beside it: what is kept should be
// copied.
func (r *Reader) Records(ctx context.Context, scope Scope) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		ranges, err := r.ranges(ctx, scope.Partitions)
		if err != nil {
			yield(nil, err)
			return
		}
		progress := &tally{report: scope.Progress}
		for _, span := range ranges {
			progress.total += span.end - span.next
		}
		for _, span := range ranges {
			if !r.readRange(ctx, span, progress, yield) {
				return
			}
		}
	}
}

// ReadAt returns the record at one place, or ErrNoRecord.
func (r *Reader) ReadAt(ctx context.Context, partition int32, offset int64) (*kgo.Record, error) {
	ranges, err := r.ranges(ctx, []int32{partition})
	if err != nil {
		return nil, err
	}
	for _, span := range ranges {
		if offset < span.next || offset >= span.end {
			continue
		}
		one := offsetRange{partition: partition, next: offset, end: offset + 1}
		for record, err := range r.rangeRecords(ctx, one) {
			return record, err
		}
	}
	return nil, fmt.Errorf("topic %q partition %d offset %d: %w", r.topic, partition, offset, ErrNoRecord)
}

func (r *Reader) rangeRecords(ctx context.Context, span offsetRange) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		r.readRange(ctx, span, &tally{}, yield)
	}
}

// offsetRange is what is left to read of a partition: next to end, end excluded.
type offsetRange struct {
	partition int32
	next, end int64
	full      bool // see Span
}

// ranges lists what there is to read, by partition. The end is the last stable
// offset: behind it a transaction is open, and waiting for it may take for ever.
func (r *Reader) ranges(ctx context.Context, only []int32) ([]offsetRange, error) {
	starts, err := r.listed(ctx, r.adm.ListStartOffsets)
	if err != nil {
		return nil, err
	}
	ends, err := r.listed(ctx, r.adm.ListCommittedOffsets)
	if err != nil {
		return nil, err
	}
	var ranges []offsetRange
	for partition, start := range starts {
		end, known := ends[partition]
		if !known || only != nil && !slices.Contains(only, partition) {
			continue
		}
		ranges = append(ranges, offsetRange{partition: partition, next: start.Offset, end: max(start.Offset, end.Offset)})
	}
	slices.SortFunc(ranges, func(a, b offsetRange) int { return int(a.partition) - int(b.partition) })
	return ranges, nil
}

type lister func(context.Context, ...string) (kadm.ListedOffsets, error)

// listed returns offsets by partition; none for a topic that does not exist.
func (r *Reader) listed(ctx context.Context, list lister) (map[int32]kadm.ListedOffset, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	all, err := list(ctx, r.topic)
	if err == nil {
		err = all.Error()
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list offsets of topic %q: %w", r.topic, r.explain(err))
	}
	return all[r.topic], nil
}

// explain names the grant that a reader lacks.
func (r *Reader) explain(err error) error {
	if unauthorized(err) {
		return fmt.Errorf("missing ACL: READ on topic %s: %w", r.topic, err)
	}
	return err
}

// readRange yields the records of one range and reports whether to go on.
func (r *Reader) readRange(ctx context.Context, span offsetRange, progress *tally, yield func(*kgo.Record, error) bool) bool {
	f := fetcher{reader: r, span: span}
	for f.span.next < f.span.end {
		before := f.span.next
		records, err := f.fetch(ctx)
		if err != nil {
			yield(nil, fmt.Errorf("read topic %q partition %d at offset %d: %w", r.topic, span.partition, before, r.explain(err)))
			return false
		}
		for _, record := range records {
			if record.Offset < span.end && !yield(record, nil) {
				return false
			}
		}
		progress.add(min(f.span.next, span.end) - before)
	}
	return true
}

// tally adds up progress.
type tally struct {
	done, total int64
	report      func(Progress)
}

func (t *tally) add(offsets int64) {
	t.done += offsets
	if t.report != nil {
		t.report(Progress{Done: t.done, Total: t.total})
	}
}
