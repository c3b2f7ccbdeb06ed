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

// Read implements session.Driver.
func (w *worker) Read(_ context.Context, operation string, fn func(context.Context) error) error {
	return w.retry("postgres", operation, fn)
}

// Publish implements session.Driver: it repeats the publishing for ever as it is, because
// what is acknowledged is remembered, so that each attempt has less to do. The dead letters
// that were acknowledged before the batch was decided about again are not sent again.
func (w *worker) Publish(ctx context.Context, next int64, letters []projection.DeadLetter, verify func(context.Context) error) error {
	switch {
	case len(letters) == 0 && w.delivery == nil:
	case w.delivery == nil:
		w.delivery = dlq.NewDelivery(letters, time.Now())
	default:
		w.delivery = w.delivery.DecidedAgain(letters, time.Now())
	}
	w.deliveredTo = max(w.deliveredTo, next)
	publish := func(ctx context.Context) error { return w.publish(ctx, verify) }
	switch {
	case w.delivery == nil || w.delivery.Pending() == 0:
	case w.last:
		return publish(ctx)
	default:
		if err := w.retry("kafka", "publish dead letters", publish); err != nil {
			return err
		}
	}
	if w.drain.Err() != nil && !w.last {
		return errDrained // flushLast has a time of its own
	}
	return nil
}

func (w *worker) publish(ctx context.Context, verify func(context.Context) error) error {
	if err := verify(ctx); err != nil {
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

// Flushing implements session.Driver.
func (w *worker) Flushing(ctx context.Context, next int64) context.Context {
	w.trace.Flushing(next)
	return w.trace.Context(ctx)
}

// Flushed implements session.Driver: what is durable is counted, and may be committed to
// Kafka.
func (w *worker) Flushed(r session.Report) {
	obs, topic := w.c.cfg.Observer, w.c.cfg.Topic
	for _, o := range projection.Outcomes() {
		if n := r.Outcomes[o]; n > 0 {
			obs.Consumed(topic, w.partition, o, n)
		}
	}
	for i := range r.DeadLetters {
		obs.DeadLettered(topic, string(r.DeadLetters[i].Class), 1)
	}
	w.c.letters.add(w.c.cfg.Log, r.DeadLetters, time.Now())
	obs.Healed(r.Healed)
	obs.ParkOverflow(r.Overflows)
	obs.Skipped(len(r.Skipped))
	for _, e := range r.Skipped {
		w.c.cfg.Log.Warn("an event came for a version that was skipped on purpose, and has no effect",
			"account", e.AccountID, "version", e.Version, "topic", topic, "partition", w.partition, "offset", e.Record.Offset)
	}
	obs.Batch(r.Took, r.Records)
	obs.Progress(time.Now())
	w.trace.Flushed(r.Next.Offset, &r.Flushed)
	w.delivered(r.Next.Offset)
	if r.Late { // the claim that has found it out goes on from the position as it is now
		w.log.Info("the last write took place: only the answer to it was lost", "position", r.Next.Offset)
		return
	}
	w.status.position.Store(r.Next.Offset)
	w.status.moved.Store(time.Now().UnixMilli())
	w.c.committer.mark(w.partition, r.Next.Offset)
	w.reportLag()
}

// delivered forgets the dead letters that were acknowledged, once everything that was to be
// durable with them is, and nothing is left to heal: until then each of them may be decided
// again, also that of an event that was parked long before.
func (w *worker) delivered(next int64) {
	switch {
	case w.delivery == nil:
	case next >= w.deliveredTo && !w.session.Pending().Healing:
		w.delivery, w.deliveredTo = nil, 0
	default:
		w.delivery = w.delivery.Done()
	}
}

// Refused implements session.Driver.
func (w *worker) Refused(reason string, events int) {
	// The line about its class tells of the dead letter.
	w.log.Debug("PostgreSQL refused a batch, trying a part of it, or dead-lettering it", "reason", reason, "events", events)
}

// Overtaken implements session.Driver.
func (w *worker) Overtaken(err error) { w.log.Info("deciding again", "reason", err.Error()) }

// Failed implements session.Driver.
func (w *worker) Failed(err error) error {
	if w.drain.Err() != nil && !final(err) {
		return errDrained
	}
	w.pause = w.writing().Failed(err)
	return session.ErrAgain
}

// Recovered implements session.Driver.
func (w *worker) Recovered() { w.writing().Over() }

// Dropped implements session.Driver.
func (w *worker) Dropped(reason error) { w.trace.Dropped(reason) }

// writing are the flushes that have failed since the last that succeeded.
func (w *worker) writing() *retry.Outage {
	if w.outage == nil {
		w.outage = w.c.cfg.Retry.Outage(&retryObserver{w: w, obstacle: notWritten, dependency: "postgres", operation: "write a batch"})
	}
	return w.outage
}

// flushLast flushes once, because the worker is to stop. What cannot be flushed will be
// read again by the next owner.
func (w *worker) flushLast() {
	ctx, cancel := context.WithTimeout(w.context(), w.c.cfg.DrainWithin)
	defer cancel()
	w.last = true
	if err := w.session.FlushLast(ctx, w.stood); err != nil {
		w.log.Warn("stopped with records not written: they will be read again", "reason", errclass.Safe(err))
	}
}

// stood is how the position's row stands.
func (w *worker) stood(ctx context.Context) (projection.Stood, error) {
	rows, err := w.c.cfg.Database.Positions(ctx)
	for i := range rows {
		if rows[i].Partition == w.partition {
			return rows[i].Stood(), nil
		}
	}
	return projection.Stood{}, errors.Join(err, fmt.Errorf("partition %d has no position", w.partition))
}
