// Package topic reads ranges of records of any topic: a whole topic, a part of one
// partition, or one record.
//
// The package joins no consumer group and commits nothing. It sends fetch requests itself, one
// partition after the other. A consumer does not report the offsets of compacted and aborted
// records. At the end of a range, a consumer would therefore wait for a record that never comes.
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

	"projector/projection"
)

// ErrNoRecord is returned if an offset has no record. The record was deleted, compacted, aborted or
// not written yet, or it is a control record.
var ErrNoRecord = errors.New("no record there")

// Reader reads a topic. A Reader has no state between calls.
type Reader struct {
	client   *kgo.Client
	adm      *kadm.Client
	topic    string
	pause    time.Duration // between two attempts
	patience time.Duration // how long to retry a partition without a reachable leader
	within   time.Duration // the deadline of one fetch, retries included
	unpack   decompressor
}

// NewReader returns a Reader of topic. The client needs no options for consuming or groups. The
// caller closes the client.
func NewReader(client *kgo.Client, topic string) *Reader {
	return &Reader{client: client, adm: kadm.NewClient(client), topic: topic, pause: defaultPause, patience: answerTimeout, within: answerTimeout, unpack: usual}
}

// Accept returns a Reader that reads batches up to a number of bytes, decompressed.
func (r *Reader) Accept(bytes int) *Reader {
	other := *r
	other.unpack = bounded(bytes)
	return &other
}

// Scope says which partitions to read.
type Scope struct {
	// Partitions are the partitions to read. nil means all. A partition that does not exist has no
	// records.
	Partitions []int32
	// Progress is called after each fetch, unless it is nil. It counts offsets and not records,
	// because some offsets have no record.
	Progress func(done, total int64)
}

// Records streams the committed records of the topic, one partition after the other, each in offset
// order. Each log is read from its start to its last stable offset. Both offsets are determined
// when the iteration starts. The method holds one fetch in memory at a time. A topic that does not
// exist has no records.
//
// An error comes with a nil record. After a *PartitionError, the iteration continues with the next
// partition. Any other error ends the iteration. The errors of partitions whose start and end
// cannot be read come before all records.
//
// A record shares memory with the other records of its fetch. A caller that stores a record must
// copy it.
func (r *Reader) Records(ctx context.Context, scope Scope) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		spans, lost, err := r.spans(ctx, scope.Partitions)
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
		for _, span := range spans {
			progress.total += span.To - span.From
		}
		for _, span := range spans {
			if !r.readSpan(ctx, span, progress, yield) {
				return
			}
		}
	}
}

// ReadAt returns the record at an offset. It returns ErrNoRecord if there is no record, and a
// *PartitionError if the partition cannot be read.
func (r *Reader) ReadAt(ctx context.Context, partition int32, offset int64) (*kgo.Record, error) {
	spans, lost, err := r.spans(ctx, []int32{partition})
	if err != nil {
		return nil, err
	}
	for _, err := range lost {
		return nil, err
	}
	for _, span := range spans {
		if offset < span.From || offset >= span.To {
			continue
		}
		one := Span{Partition: partition, From: offset, To: offset + 1}
		for record, err := range r.Range(ctx, one) {
			return record, err
		}
	}
	return nil, fmt.Errorf("topic %q partition %d offset %d: %w", r.topic, partition, offset, ErrNoRecord)
}

// spans returns the offsets to read. If the parameter only is not nil, it lists the partitions to
// read, otherwise all partitions are read. It also returns the errors of those partitions that
// cannot be read.
func (r *Reader) spans(ctx context.Context, only []int32) (spans []Span, lost []*PartitionError, err error) {
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
			spans = append(spans, Span{Partition: e.Partition, From: e.Start, To: e.End})
		}
	}
	return spans, lost, nil
}

// explain adds the missing ACL to the error if a broker has refused a request.
func (r *Reader) explain(err error) error {
	if refused, is := errors.AsType[*kerr.Error](err); is && Unauthorized(err) {
		return fmt.Errorf("missing ACL: READ on topic %s: %w", r.topic, refused)
	}
	return err
}

// readSpan yields the records of one span. It returns false if the iteration should end.
func (r *Reader) readSpan(ctx context.Context, span Span, progress *tally, yield func(*kgo.Record, error) bool) bool {
	f := fetcher{reader: r, span: span, patience: r.patience, silent: progress.silent, partition: kadm.PartitionDetail{Leader: -1}}
	if progress.lost {
		f.patience = 0
	}
	for f.span.From < f.span.To {
		before := f.span.From
		records, err := f.fetch(ctx)
		if err != nil {
			progress.note(f.partition.Leader, err)
			others, err := f.failure(ctx, before, err)
			return yield(nil, err) && others
		}
		for _, record := range records {
			if record.Offset < span.To && !yield(record, nil) {
				return false
			}
		}
		progress.add(min(f.span.From, span.To) - before)
	}
	return true
}

// failure returns the error of a failed fetch. The result others reports whether the other
// partitions can still be read.
func (f *fetcher) failure(ctx context.Context, at int64, err error) (others bool, failure error) {
	ended := ctx.Err() != nil
	if Unauthorized(err) || ended && errors.Is(err, ctx.Err()) {
		return false, fmt.Errorf("read topic %q partition %d at offset %d: %w", f.reader.topic, f.span.Partition, at, f.reader.explain(err))
	}
	return !ended, f.reader.unreadable(f.partition, f.span.Partition, err)
}

// tally counts progress over all partitions.
type tally struct {
	done, total int64
	report      func(done, total int64)
	// lost is set after the leader of a partition could not be reached. The reader waits only for the
	// leader of the first such partition. A broker that is down usually leads many partitions, and
	// the waits would add up.
	lost bool
	// silent are the leaders that have not answered in time. The reader does not wait again for one
	// of them, because a frozen broker usually leads many partitions, too.
	silent map[int32]error
}

func (t *tally) note(leader int32, err error) {
	t.lost = t.lost || !isUseless(err)
	if errors.Is(err, context.DeadlineExceeded) && leader >= 0 {
		if t.silent == nil {
			t.silent = map[int32]error{}
		}
		t.silent[leader] = err
	}
}

func (t *tally) add(offsets int64) {
	t.done += offsets
	if t.report != nil {
		t.report(t.done, t.total)
	}
}

// Span is a range of offsets of one partition, from From up to, but not including, To.
type Span struct {
	Partition int32
	From, To  int64
	// Full means that there are records up to To, so a broker without data is an error. Otherwise,
	// compaction may have removed the last records.
	Full bool
	few  bool // only the first records are needed
}

// Range streams the committed records of a span in offset order. Range holds one fetch in memory at
// a time. It skips records that retention has deleted. An error comes with a nil record and ends
// the iteration.
//
// A record shares memory with the other records of its fetch. A caller that stores a record must
// copy it.
func (r *Reader) Range(ctx context.Context, span Span) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) { r.readSpan(ctx, span, &tally{}, yield) }
}

// Age returns the age of the first committed record of a span, or ErrNoRecord. The age is nil if
// the time of the record is not known.
func (r *Reader) Age(ctx context.Context, span Span) (age *time.Duration, err error) {
	span.few = true
	for record, err := range r.Range(ctx, span) {
		if err != nil {
			return nil, err
		}
		if at := TimestampOf(record); at > 0 {
			age = new(max(0, time.Since(time.UnixMilli(at))))
		}
		return age, nil
	}
	return nil, fmt.Errorf("topic %q partition %d offsets %d to %d: %w", r.topic, span.Partition, span.From, span.To-1, ErrNoRecord)
}

// TimestampOf returns the time of a record in milliseconds since the Unix epoch. See
// projection.NoTimestamp and projection.LastTimestamp for the exceptions. The client converts
// Kafka's milliseconds to nanoseconds. This conversion overflows for times after 2262 or before
// 1677, and the original time is lost. This function recognises an overflow if the result is not a
// whole number of milliseconds. Only one overflow in 15,625 is not recognised.
func TimestampOf(r *kgo.Record) int64 {
	switch {
	case r.Timestamp.IsZero(): // the message format of Kafka 0.9 has no timestamp
		return projection.NoTimestamp
	case r.Timestamp.Nanosecond()%int(time.Millisecond) != 0:
		return projection.LastTimestamp
	}
	return r.Timestamp.UnixMilli()
}
