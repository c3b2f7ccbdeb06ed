package topic

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

// ErrNoRecord is returned if an offset has no record: it was deleted or compacted, is not
// written yet, or holds a control record.
var ErrNoRecord = errors.New("no record there")

// Reader reads a topic. It keeps no state between calls.
type Reader struct {
	client   *kgo.Client
	adm      *kadm.Client
	topic    string
	pause    time.Duration // between two tries
	patience time.Duration // with a partition whose leader is away
}

// NewReader reads topic through client, which needs neither consumer nor group
// options. The caller keeps and closes the client.
func NewReader(client *kgo.Client, topic string) *Reader {
	return &Reader{client: client, adm: kadm.NewClient(client), topic: topic, pause: defaultPause, patience: answerTimeout}
}

// Scope says what to read.
type Scope struct {
	// Partitions of the topic; nil means all. Unknown ones are empty.
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
// were when the iteration began. It holds one fetch at a time. A topic that
// does not exist is an empty one. An error comes with a nil record. It ends the
// iteration unless it is a *PartitionError: the partition is left there, and the
// iteration goes on with the next one. Partitions that cannot be read from the start
// come before all records.
//
// A record shares memory with the others of its fetch: copy what you store.
func (r *Reader) Records(ctx context.Context, scope Scope) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		ranges, lost, err := r.ranges(ctx, scope.Partitions)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, err := range lost {
			if !yield(nil, err) {
				return
			}
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

// ReadAt returns the record at an offset. It returns ErrNoRecord if there is none, and a
// *PartitionError if the partition cannot be read.
func (r *Reader) ReadAt(ctx context.Context, partition int32, offset int64) (*kgo.Record, error) {
	ranges, lost, err := r.ranges(ctx, []int32{partition})
	if err != nil {
		return nil, err
	}
	for _, err := range lost {
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
	few       bool // only the first records are wanted
}

// ranges lists what there is to read, by partition, and which partitions cannot be read.
func (r *Reader) ranges(ctx context.Context, only []int32) (ranges []offsetRange, lost []*PartitionError, err error) {
	all, _, err := r.Extents(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range all.Partitions {
		switch {
		case only != nil && !slices.Contains(only, e.Partition):
		case e.Err != nil:
			lost = append(lost, e.Err)
		default:
			ranges = append(ranges, offsetRange{partition: e.Partition, next: e.Start, end: e.End})
		}
	}
	return ranges, lost, nil
}

// explain names the grant that a reader lacks.
func (r *Reader) explain(err error) error {
	var refused *kerr.Error
	if Unauthorized(err) && errors.As(err, &refused) {
		return fmt.Errorf("missing ACL: READ on topic %s: %w", r.topic, refused)
	}
	return err
}

// readRange yields the records of one range and reports whether to go on.
func (r *Reader) readRange(ctx context.Context, span offsetRange, progress *tally, yield func(*kgo.Record, error) bool) bool {
	f := fetcher{reader: r, span: span, patience: r.patience, partition: kadm.PartitionDetail{Leader: -1}}
	if progress.lost {
		f.patience = 0
	}
	for f.span.next < f.span.end {
		before := f.span.next
		records, err := f.fetch(ctx)
		if err != nil {
			others, err := f.failure(ctx, before, err)
			progress.lost = true
			return yield(nil, err) && others
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

// failure returns the error of a failed fetch. others reports whether the other partitions can
// still be read.
func (f *fetcher) failure(ctx context.Context, at int64, err error) (others bool, failure error) {
	ended := ctx.Err() != nil
	if Unauthorized(err) || ended && errors.Is(err, ctx.Err()) {
		return false, fmt.Errorf("read topic %q partition %d at offset %d: %w", f.reader.topic, f.span.partition, at, f.reader.explain(err))
	}
	return !ended, f.reader.unreadable(f.partition, f.span.partition, err)
}

// tally adds up progress over the partitions that are read one after the other.
type tally struct {
	done, total int64
	report      func(Progress)
	// lost: a partition could not be read to its end. The reader waits for the leader of the
	// first such partition, and not again for each of the next: a broker that is away leads
	// many partitions.
	lost bool
}

func (t *tally) add(offsets int64) {
	t.done += offsets
	if t.report != nil {
		t.report(Progress{Done: t.done, Total: t.total})
	}
}

// Span is a stretch of one partition: from From, which is part of it, to To, which
// is not.
type Span struct {
	Partition int32
	From, To  int64
	// Full: it is known that the log has reached To. If a broker says that the log ends earlier,
	// that is an error and not the end.
	Full bool
}

// Range streams the committed records of a stretch, in offset order, and holds one
// fetch at a time. What retention has removed is passed over. An error ends the
// iteration; it comes with a nil record. passed, which may be nil, is called after each
// fetch with the offset up to which all records were yielded. It reaches span.To when only
// control records are left.
//
// A record shares memory with the others of its fetch: copy what you store.
func (r *Reader) Range(ctx context.Context, span Span, passed func(next int64)) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		next := span.From
		progress := &tally{}
		if passed != nil {
			progress.report = func(p Progress) { passed(next + p.Done) }
		}
		r.readRange(ctx, offsetRange{partition: span.Partition, next: span.From, end: span.To, full: span.Full}, progress, yield)
	}
}

// First is the first committed record of a stretch, or ErrNoRecord.
func (r *Reader) First(ctx context.Context, span Span) (*kgo.Record, error) {
	one := offsetRange{partition: span.Partition, next: span.From, end: span.To, full: span.Full, few: true}
	for record, err := range r.rangeRecords(ctx, one) {
		return record, err
	}
	return nil, fmt.Errorf("topic %q partition %d offsets %d to %d: %w", r.topic, span.Partition, span.From, span.To-1, ErrNoRecord)
}
