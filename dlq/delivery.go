package dlq

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/pace"
	"projector/projection"
	"projector/projection/event"
)

// Delivery is the dead letters of one batch and what of them the brokers have
// acknowledged. It lives as long as its batch is retried. One goroutine at a
// time may use it.
type Delivery struct {
	items []*item
	// aside are dead letters of an earlier decision that are not in this batch: when a batch
	// is processed again, it may be smaller.
	aside map[letterID]*item
}

// NewDelivery holds dead letters for publishing. failedAt is written to each.
func NewDelivery(letters []projection.DeadLetter, failedAt time.Time) *Delivery {
	d := &Delivery{items: make([]*item, len(letters)), aside: map[letterID]*item{}}
	for i, letter := range letters {
		d.items[i] = &item{letter: letter, failedAt: failedAt}
	}
	return d
}

// DecidedAgain returns the delivery of the same batch, or of a part of it, after it was
// decided again. A dead letter that was there before, of the same record with the same
// class, keeps what is known of it: acknowledged it is not sent again, on its way it
// is waited for. The old delivery must not be used any more.
func (d *Delivery) DecidedAgain(letters []projection.DeadLetter, failedAt time.Time) *Delivery {
	next := NewDelivery(letters, failedAt)
	next.aside = d.aside
	for _, it := range d.items {
		next.aside[idOf(it.letter)] = it
	}
	for i, it := range next.items {
		id := idOf(it.letter)
		if before, known := next.aside[id]; known {
			if before.idle() {
				before.letter = it.letter
			}
			next.items[i] = before
			delete(next.aside, id)
		}
	}
	return next
}

// Done returns, once the batch is durable, the dead letters that may come again: those of an
// earlier decision, and those of a record that the position, next, has not passed, because entries
// of it are left; nil when there are none. Only the caller knows when they cannot come any more: an event may have
// been parked, so offsets do not show it.
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
		_ = it.collect() // the attempt that finds it again returns the error
		if !it.acked {
			n++
		}
	}
	return n
}

// letterID identifies a dead letter: an event may be dead-lettered once for each class.
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

// item is one dead letter on its way.
type item struct {
	letter   projection.DeadLetter
	failedAt time.Time
	acked    bool
	refused  bool    // as too large, alone or in company
	cut      Cut     // what the next attempt leaves out
	flight   *flight // nil when nothing of it is on its way
}

// flight is one produced record. err is set before done is closed.
type flight struct {
	done chan struct{}
	err  error
}

// launch produces the item through client without waiting. Not the caller's
// context but the client's own time-out bounds how long the record is buffered:
// a cancelled context would fail all records of that partition, those of other
// batches too. acked is called with the record as written, before the flight ends.
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

// wait blocks until the item's flight has ended or ctx has. It returns why the
// item was not acknowledged, and nil when it was or is too large.
func (it *item) wait(ctx context.Context) error {
	if it.flight == nil {
		return nil
	}
	select {
	case <-it.flight.done:
		return it.collect()
	case <-ctx.Done():
		if err := it.collect(); err != nil || it.flight == nil {
			return err // both at once: an acknowledgement counts
		}
		return context.Cause(ctx)
	}
}

// collect takes the outcome of a flight that has ended, without blocking.
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

// idle reports that the item has to be sent and is not on its way.
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

// refused returns the items that are still to be delivered and were too large.
func refused(items []*item) []*item {
	var large []*item
	for _, it := range items {
		if it.idle() && it.refused {
			large = append(large, it)
		}
	}
	return large
}
