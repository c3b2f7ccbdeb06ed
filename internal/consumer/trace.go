package consumer

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection"
)

// Trace follows single records of a partition to the transaction they end in. The
// worker's goroutine calls it, but for Pick. Its methods must not wait and cannot
// fail: a record is projected whether or not it is followed.
type Trace interface {
	// Pick appends those of the records that are followed. The decoder calls it.
	Pick(picked, records []*kgo.Record) []*kgo.Record
	// Judging begins to follow what was picked of the chunk that is judged next.
	Judging(picked []*kgo.Record)
	// Flushing is told, once a flush, that what stands before next is to be made durable.
	Flushing(next int64)
	// Context is ctx with what the worker is about to do on behalf of followed records.
	Context(ctx context.Context) context.Context
	// Flushed is told what has become durable: everything before next.
	Flushed(next int64, c *projection.Changes)
	// Dropped is told that what is not durable is given up, and why: it will be read again.
	Dropped(reason error)
}

// trace is what follows the records of a partition.
func (c *Consumer) trace(partition int32) Trace {
	if c.cfg.Trace == nil {
		return untraced{}
	}
	return c.cfg.Trace(partition)
}

// untraced follows nothing.
type untraced struct{}

func (untraced) Pick(picked, _ []*kgo.Record) []*kgo.Record { return picked }

func (untraced) Judging([]*kgo.Record) {}

func (untraced) Flushing(int64) {}

func (untraced) Context(ctx context.Context) context.Context { return ctx }

func (untraced) Flushed(int64, *projection.Changes) {}

func (untraced) Dropped(error) {}
