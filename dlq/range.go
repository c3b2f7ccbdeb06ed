package dlq

import (
	"context"
	"fmt"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Span is a stretch of one partition: from From, which is part of it, to To, which
// is not.
type Span struct {
	Partition int32
	From, To  int64
	// Full: the log has been as long as this, so that brokers which say it ends before
	// are wrong. That is an error then, and not the end.
	Full bool
}

// Range streams the committed records of a stretch, in offset order, and holds one
// fetch at a time. What retention has removed is passed over. An error ends the
// iteration; it comes with a nil record. passed, which may be nil, is told after
// each fetch behind which offset everything has been handed over: it reaches
// span.To when nothing but control records is left.
//
// A record shares memory with those fetched beside it: what is kept should be
// copied.
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
	for record, err := range r.Range(ctx, span, nil) {
		return record, err
	}
	return nil, fmt.Errorf("topic %q partition %d offsets %d to %d: %w", r.topic, span.Partition, span.From, span.To-1, ErrNoRecord)
}
