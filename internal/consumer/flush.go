package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"projector/dlq"
	"projector/errclass"
	"projector/internal/failpoint"
	"projector/internal/pace"
	"projector/internal/retry"
	"projector/projection"
)

// flush is what is made durable together.
type flush struct {
	next    projection.NextOffset
	events  int
	changes projection.Changes // a copy: a written projection has no changes left
	begun   time.Time

	// Of its last attempt to write.
	took time.Duration
	done int // events written when it ended, as far as known
}

// flush makes what is pending durable: dead letters first, then one transaction,
// then the committer is told. A write that fails is not repeated as it is: what is
// pending is given up, and read again in smaller pieces.
func (w *worker) flush() error {
	if w.flushedAll() {
		return nil
	}
	f := w.beginFlush()
	err := w.publish(f)
	if err == nil {
		err = w.write(f)
	}
	if err != nil {
		return w.flushFailed(f, err)
	}
	w.flushed(f)
	return nil
}

// flushLast flushes once, because the worker is to stop. What cannot be flushed will be
// read again by the next owner.
func (w *worker) flushLast() {
	if w.flushedAll() {
		return
	}
	f := w.beginFlush()
	ctx, cancel := context.WithTimeout(w.trace.Context(w.ctx), w.c.cfg.DrainWithin)
	defer cancel()
	err := w.publishOnce(ctx, f)
	if err == nil {
		err = w.proj.Write(ctx, f.next, &f.changes)
	}
	if errors.Is(err, projection.ErrFenced) && w.wasWritten(ctx) {
		return
	}
	if err != nil {
		w.log.Warn("stopped with records not written: they will be read again", "reason", errclass.Safe(err))
		return
	}
	w.flushed(f)
}

// beginFlush returns what is to be made durable, with its dead letters addressed.
func (w *worker) beginFlush() *flush {
	f := &flush{next: w.next, events: w.proj.Pending().Events, changes: *w.proj.Changes(), begun: time.Now()}
	w.address(&f.changes)
	w.trace.Flushing(f.next.Offset)
	return f
}

// flushedAll reports that everything judged is durable, the position too.
func (w *worker) flushedAll() bool {
	return w.proj.Pending().Events == 0 && w.next.Offset == w.status.position.Load()
}

// address prepares the dead letters for publishing. Those that were acknowledged
// before the batch was judged again are not sent again.
func (w *worker) address(c *projection.Changes) {
	switch {
	case len(c.Letters) == 0 && w.delivery == nil:
	case w.delivery == nil:
		w.delivery = dlq.NewDelivery(c.Letters, time.Now())
	default:
		w.delivery = w.delivery.Rejudged(c.Letters, time.Now())
	}
}

// publish publishes the flush's dead letters. It is repeated as it is: what is
// acknowledged is remembered, so that each attempt has less to do.
func (w *worker) publish(f *flush) error {
	if w.delivery == nil || w.delivery.Pending() == 0 {
		return nil
	}
	return w.retry("kafka", "publish dead letters", func(ctx context.Context) error {
		return w.publishOnce(ctx, f)
	})
}

func (w *worker) publishOnce(ctx context.Context, f *flush) error {
	if w.delivery == nil || w.delivery.Pending() == 0 {
		return nil
	}
	if err := w.proj.Verify(ctx, &f.changes); err != nil {
		return retry.Stop(err) // PostgreSQL's, as if the write had failed
	}
	err := w.c.cfg.DeadLetters.Deliver(ctx, w.delivery)
	if kafkaUnknownTopic(err) {
		err = errors.Join(err, w.c.cfg.DeadLetters.EnsureTopic(ctx))
	}
	if err == nil {
		failpoint.Here(failpoint.DLQAcknowledged)
	}
	return err
}

// write makes one attempt. It may take as long as it is answered now and then, but with
// more than one event no longer than without any answer: then less is written at a time.
func (w *worker) write(f *flush) error {
	if w.drain.Err() != nil {
		return errDrained // flushLast has a time of its own
	}
	patience := w.c.cfg.Retry.Attempt
	attempt := pace.Begin(w.trace.Context(w.ctx), patience)
	ctx := attempt.Context()
	if f.events > 1 && patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	err := attempt.End(w.proj.Write(ctx, f.next, &f.changes))
	f.took = attempt.Took()
	if rows := f.changes.NumRows(); err != nil && rows > 0 {
		f.done = int(int64(f.events) * int64(attempt.Done()) / int64(rows))
	}
	if err != nil {
		w.unsettled = &unsettled{
			flush: flush{next: f.next, changes: summary(&f.changes), begun: f.begun},
			from:  projection.Stood{Next: w.status.position.Load(), Fence: w.status.fence.Load()}, reason: err,
		}
	}
	return err
}

// flushFailed decides how to go on after a flush that must not be repeated as it is.
func (w *worker) flushFailed(f *flush, err error) error {
	if w.drain.Err() != nil && !final(err) {
		return errDrained
	}
	w.size.Failed(f.events, f.done, f.took)
	w.failedTo = max(w.failedTo, f.next.Offset, w.status.position.Load()+1) // healing moves no offset
	switch {
	case refused(err):
		return w.isolate(f, err)
	case (errors.Is(err, projection.ErrFenced) || errors.Is(err, projection.ErrStale)) && w.overtaken+1 < overtakenFreely:
		w.overtaken++
		w.log.Info("deciding again", "reason", err.Error())
	default:
		w.overtaken++
		w.pause = w.writing().Failed(err)
	}
	return errRejudge
}

// overtakenFreely is how often in a row records are decided again at once. A repair or
// a change of owners needs one or two; more means that something keeps rows from
// being written as they are sent.
const overtakenFreely = 3

// writing are the flushes that have failed since the last that succeeded.
func (w *worker) writing() *retry.Outage {
	if w.outage == nil {
		w.outage = w.c.cfg.Retry.Outage(&retryObserver{w: w, obstacle: notWritten, dependency: "postgres", operation: "write a batch"})
	}
	return w.outage
}

// isolate narrows the search for the event that PostgreSQL refuses, with less events a
// flush until it is alone. Then it is judged as refused.
func (w *worker) isolate(f *flush, err error) error {
	if f.events > 1 {
		w.log.Debug("PostgreSQL refused a batch, trying a part of it", "reason", errclass.Safe(err), "events", f.events)
		return errRejudge
	}
	w.log.Warn("PostgreSQL refuses an event, dead-lettering it", "reason", errclass.Safe(err))
	if !w.proj.Reject("PostgreSQL refused the row: " + errclass.Safe(err)) {
		return fmt.Errorf("an event judged as refused is still refused: %w", err)
	}
	return errRejudge
}

// flushed takes note of a flush that succeeded.
func (w *worker) flushed(f *flush) {
	w.unsettled = nil
	w.size.Wrote(f.events, f.took)
	w.flushTook = f.took
	w.durable(f)
	w.since = time.Time{}
	w.status.oldest.Store(0)
	w.status.position.Store(f.next.Offset)
	w.status.moved.Store(time.Now().UnixMilli())
	w.c.committer.mark(w.partition, f.next.Offset)
	w.reportLag()
}

// durable reports what has become durable, and ends an outage.
func (w *worker) durable(f *flush) {
	w.overtaken = 0
	w.report(&f.changes, time.Since(f.begun))
	w.trace.Flushed(f.next.Offset, &f.changes)
	if w.delivery != nil {
		w.delivery = w.delivery.Done(f.next.Offset)
	}
	w.writing().Over()
	w.failedTo = 0
}

// report counts what a flush has made durable.
func (w *worker) report(c *projection.Changes, took time.Duration) {
	obs, topic := w.c.cfg.Observer, w.c.cfg.Topic
	for _, o := range projection.Outcomes() {
		if n := c.Outcomes[o]; n > 0 {
			obs.Consumed(topic, w.partition, o.String(), n)
		}
	}
	for i := range c.Letters {
		obs.DeadLettered(topic, string(c.Letters[i].Class), 1)
	}
	obs.Healed(c.Healed)
	obs.ParkOverflow(len(c.Overflows))
	obs.Batch(took, c.Records)
	obs.Progress(time.Now())
}
