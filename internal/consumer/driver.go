package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"projector/dlq"
	"projector/errclass"
	"projector/internal/failpoint"
	"projector/internal/retry"
	"projector/internal/session"
	"projector/projection"
)

var _ session.Driver = (*worker)(nil)

// Read implements session.Driver. It returns session.ErrAgain if the partition is paused, or its
// position is set, before a read has succeeded. For example, the schema of a parked event may be
// missing for as long as the schema registry does not answer.
func (w *worker) Read(_ context.Context, operation string, fn func(context.Context) error) error {
	return w.retryUntil(w.unchanged, "postgres", operation, fn)
}

// Publish implements session.Driver. It retries until all dead letters are acknowledged, except in
// the last flush. A dead letter that is already acknowledged is not sent again, even if the batch
// is processed again.
func (w *worker) Publish(ctx context.Context, next int64, letters []projection.DeadLetter, verify func(context.Context) error) error {
	switch {
	case len(letters) == 0 && w.delivery == nil:
	case w.delivery == nil:
		w.delivery = dlq.NewDelivery(letters, time.Now())
	default:
		w.delivery = w.delivery.DecidedAgain(letters, time.Now())
	}
	w.deliveredTo = max(w.deliveredTo, next)
	if w.delivery != nil {
		// Other partitions must not wait while the brokers acknowledge this partition's dead
		// letters.
		w.queue.delayed()
	}
	publish := func(ctx context.Context) error { return w.publish(ctx, verify) }
	switch {
	case w.delivery == nil || w.delivery.Pending() == 0:
	case w.last:
		return publish(ctx)
	default:
		err := w.retryUntil(w.unchanged, "kafka", "publish dead letters", publish)
		if errors.Is(err, session.ErrAgain) {
			err = projection.ErrFenced // the partition is paused, or its position is set
		}
		if err != nil {
			return err
		}
	}
	if w.drain.Err() != nil && !w.last {
		return errDrained // flushLast publishes again, with its own deadline
	}
	return nil
}

func (w *worker) publish(ctx context.Context, verify func(context.Context) error) error {
	if err := verify(ctx); err != nil {
		// The error is not retried here, because the session handles it like the error of a failed
		// write.
		return retry.Stop(err)
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

// flush writes everything pending to PostgreSQL and handles the outcome. It returns
// session.ErrAgain if the worker must claim the partition again.
func (w *worker) flush() error {
	if w.session.Durable() {
		return nil
	}
	w.trace.Flushing(w.session.Next().Offset)
	r := w.session.Flush(w.context())
	switch r.Outcome {
	case session.Written:
		w.written(&r)
		if r.Open {
			return session.ErrAgain // the next claim will show that the partition is stopped
		}
	case session.Refused:
		// The dead letter itself is logged in the line of its class.
		w.log.Debug("PostgreSQL refused a batch, trying a part of it, or dead-lettering it", "reason", errclass.Safe(r.Err), "events", r.Events)
		return session.ErrAgain
	case session.Overtaken:
		w.log.Info("deciding again", "reason", errclass.Safe(r.Err))
		return session.ErrAgain
	case session.Failed:
		if w.drain.Err() != nil && !final(r.Err) {
			return errDrained
		}
		w.pause = w.flushOutage().Failed(r.Err)
		return session.ErrAgain
	case session.Stuck:
		return r.Err
	case session.Nothing, session.Confirmed, session.Dropped: // only a claim returns Confirmed and Dropped
	}
	return nil
}

// written updates the worker after a successful flush. It also passes the new offset to the
// committer.
func (w *worker) written(r *session.Report) {
	w.counted(r)
	w.queue.durable(r.Next.Offset)
	w.status.position.Store(r.Next.Offset)
	w.status.moved.Store(time.Now().UnixMilli())
	w.c.committer.mark(w.partition, r.Next.Offset)
	w.reportLag()
	w.flushOutage().Over()
	w.goesOn()
}

// counted reports the result of a successful flush to the metrics, the log and the trace.
func (w *worker) counted(r *session.Report) {
	f, topic := &r.Flushed, w.c.cfg.Topic
	w.c.cfg.Observer.Flushed(w.partition, f, r.Took)
	w.c.letters.add(f.DeadLetters)
	for _, e := range f.Skipped {
		w.c.cfg.Log.Warn("an event came for a version that was skipped on purpose, and has no effect",
			"account", e.AccountID, "version", e.Version, "topic", topic, "partition", w.partition, "offset", e.Record.Offset)
	}
	w.trace.Flushed(r.Next.Offset, f)
	w.delivered(r.Next.Offset)
}

// claimOnce claims the partition in the database. The claim may show that an earlier flush, whose
// answer was lost, is durable. In that case, claimOnce reports that flush now. The flush's offset
// is not committed here, because the claimed position is at least as high as this offset.
func (w *worker) claimOnce(ctx context.Context, c projection.Claim) (projection.Position, error) {
	pos, r, err := w.session.Claim(ctx, c)
	if r.Outcome == session.Confirmed {
		w.counted(&r)
		w.log.Info("the last write took place: only the answer to it was lost", "position", r.Next.Offset)
		w.flushOutage().Over()
	}
	if r.Outcome != session.Nothing {
		w.trace.Dropped(r.Err)
	}
	return pos, err
}

// delivered drops the delivery when the whole batch is durable and no parked event can be applied.
// Until then, the same records and parked events may be processed again. Their dead letters must
// not be sent twice.
func (w *worker) delivered(next int64) {
	switch {
	case w.delivery == nil:
	case next >= w.deliveredTo && !w.session.Pending().Healing:
		w.delivery, w.deliveredTo = nil, 0
	default:
		w.delivery = w.delivery.Done(projection.RecordRef{Topic: w.c.cfg.Topic, Partition: w.partition, Offset: next})
	}
}

// flushOutage returns the outage of flushes. An outage begins with the first failed flush after the
// last successful flush.
func (w *worker) flushOutage() *retry.Outage {
	if w.outage == nil {
		w.outage = w.c.cfg.Retry.Outage(&retryObserver{w: w, obstacle: notWritten, dependency: "postgres", operation: "write a batch"})
	}
	return w.outage
}

// flushLast makes one attempt to flush, because the worker must stop. If the attempt fails, the
// next owner of the partition reads the pending records again.
func (w *worker) flushLast() {
	ctx, cancel := context.WithTimeout(w.context(), w.c.cfg.DrainWithin)
	defer cancel()
	w.last = true
	if w.session.Durable() {
		return
	}
	w.trace.Flushing(w.session.Next().Offset)
	if r := w.session.FlushLast(w.trace.Context(ctx), w.stored); r.Outcome == session.Written {
		w.written(&r)
	} else {
		w.log.Warn("stopped with records not written: they will be read again", "reason", errclass.Safe(r.Err))
	}
}

// stored reads the partition's position from the database.
func (w *worker) stored(ctx context.Context) (projection.FencedOffset, error) {
	rows, err := w.c.cfg.Database.Positions(ctx)
	for i := range rows {
		if rows[i].Partition == w.partition {
			return rows[i].FencedOffset(), nil
		}
	}
	return projection.FencedOffset{}, errors.Join(err, fmt.Errorf("partition %d has no position", w.partition))
}
