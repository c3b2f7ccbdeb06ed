package dlq

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/pace"
	"projector/projection"
	"projector/projection/event"
)

// Delivery holds the dead letters of one batch and knows which of them the brokers have
// acknowledged. It is used until the transaction of the batch is committed. One goroutine at a time
// may use it.
type Delivery struct {
	items []*item
	// aside holds dead letters that an earlier attempt at the batch produced and the latest attempt
	// did not. They are needed because a smaller part of the batch may be processed next, and a
	// later part may produce them again.
	aside map[letterID]*item
}

// NewDelivery returns a Delivery of the given dead letters. The time failedAt is written to each of
// them.
func NewDelivery(letters []projection.DeadLetter, failedAt time.Time) *Delivery {
	d := &Delivery{items: make([]*item, len(letters)), aside: map[letterID]*item{}}
	for i, letter := range letters {
		d.items[i] = &item{letter: letter, failedAt: failedAt}
	}
	return d
}

// DecidedAgain returns the delivery for the same batch, or for a part of it, after the batch was
// processed again. The parameter letters contains the dead letters that the new attempt produced. A
// dead letter of the same event and class keeps its status. If it was acknowledged, it is not sent
// again. If it is being sent, Deliver waits for it. If the log has lost its end meanwhile, another
// record may have the same offset, so the key, the value and the headers are compared, too. The old
// delivery must not be used any more.
func (d *Delivery) DecidedAgain(letters []projection.DeadLetter, failedAt time.Time) *Delivery {
	next := NewDelivery(letters, failedAt)
	next.aside = d.aside
	for _, it := range d.items {
		next.aside[idOf(it.letter)] = it
	}
	for i, it := range next.items {
		id := idOf(it.letter)
		if before, known := next.aside[id]; known && before.isOf(&it.letter.Record) {
			if before.idle() {
				before.letter = it.letter
			}
			next.items[i] = before
			delete(next.aside, id)
		}
	}
	return next
}

// Done is called when the transaction of the batch is committed. It returns a Delivery of the dead
// letters that a later batch may produce again, or nil if there are none. These are the dead
// letters that only an earlier attempt produced. The result also includes the dead letters of
// records at or after the position next, because such a record still has unprocessed entries. Only
// the caller knows when to drop these dead letters. The offset of the position is not enough for
// that, because an event that waits for an earlier version may be processed again later.
func (d *Delivery) Done(next projection.RecordRef) *Delivery {
	for _, it := range d.items {
		r := it.letter.Record.Ref()
		if r.Topic == next.Topic && r.Partition == next.Partition && r.Offset >= next.Offset {
			d.aside[idOf(it.letter)] = it
		}
	}
	if len(d.aside) == 0 {
		return nil
	}
	return &Delivery{aside: d.aside}
}

// Len returns how many dead letters there are, acknowledged or not.
func (d *Delivery) Len() int { return len(d.items) }

// Pending returns how many dead letters have not been acknowledged yet.
func (d *Delivery) Pending() int {
	n := 0
	for _, it := range d.items {
		_ = it.collect() // the next attempt sends it again and returns the error
		if !it.acked {
			n++
		}
	}
	return n
}

// letterID identifies a dead letter. The class is part of it, because an event may be dead-lettered
// once for each class.
type letterID struct {
	topic     string
	partition int32
	offset    int64
	entry     int32
	class     event.Class
}

func idOf(letter projection.DeadLetter) letterID {
	r := letter.Record
	return letterID{r.Topic, r.Partition, r.Offset, r.Entry, letter.Class}
}

// item is one dead letter to publish.
type item struct {
	letter   projection.DeadLetter
	failedAt time.Time
	acked    bool
	refused  bool    // it, or its batch, was refused as too large
	cut      Cut     // the parts that the next attempt leaves out
	flight   *flight // nil when it is not being sent
}

// flight is one produced record. err is set before done is closed.
type flight struct {
	done chan struct{}
	err  error
}

// isOf reports whether the item is a dead letter of this record, and not of another record that had
// the same offset before.
func (it *item) isOf(r *projection.Record) bool {
	own := &it.letter.Record
	return bytes.Equal(own.Key, r.Key) && bytes.Equal(own.Value, r.Value) &&
		slices.EqualFunc(own.Headers, r.Headers, func(a, b event.Header) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) })
}

// launch produces the item through client without waiting. The client's own time-out bounds how
// long the record is buffered. The caller's context is not used, because its cancellation would
// make the client fail all records of that partition, also those of other batches. If the brokers
// acknowledge the record, the function acked is called before flight.done is closed.
func (it *item) launch(client *kgo.Client, record *kgo.Record, acked func(*kgo.Record)) {
	f := &flight{done: make(chan struct{})}
	it.flight = f
	client.TryProduce(context.Background(), record, func(written *kgo.Record, err error) {
		f.err = err
		if err == nil {
			acked(written)
		}
		close(f.done)
	})
}

// wait blocks until the item is no longer being sent or ctx has ended. It returns nil if the item
// was acknowledged or refused as too large. Otherwise it returns the error.
func (it *item) wait(ctx context.Context) error {
	if it.flight == nil {
		return nil
	}
	select {
	case <-it.flight.done:
		return it.collect()
	case <-ctx.Done():
		if err := it.collect(); err != nil || it.flight == nil {
			return err // if both ended at once, an acknowledgement counts
		}
		return context.Cause(ctx)
	}
}

// collect stores the outcome in the item if the item is no longer being sent. It does not block.
func (it *item) collect() error {
	if it.flight == nil {
		return nil
	}
	select {
	case <-it.flight.done:
	default:
		return nil
	}
	err := it.flight.err
	it.flight = nil
	switch {
	case err == nil:
		it.acked = true
	case errclass.TooLarge(err):
		it.refused = true
		err = nil
	}
	return err
}

// idle reports whether the item still has to be sent and is not being sent.
func (it *item) idle() bool { return !it.acked && it.flight == nil }

// waitAll waits for every item and returns the first error. When ctx ends it
// returns at once.
func waitAll(ctx context.Context, items []*item) error {
	var first error
	for _, it := range items {
		err := it.wait(ctx)
		if err == nil {
			pace.Answered(ctx, 1)
		}
		if first == nil {
			first = err
		}
		if err != nil && ctx.Err() != nil {
			return first
		}
	}
	return first
}

// refused returns the items that were refused as too large and are not delivered yet.
func refused(items []*item) []*item {
	var large []*item
	for _, it := range items {
		if it.idle() && it.refused {
			large = append(large, it)
		}
	}
	return large
}
