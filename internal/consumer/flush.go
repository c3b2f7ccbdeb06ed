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
	"projector/projection"
)

// flush makes what is pending durable: dead letters first, then one transaction,
// then the committer is told.
func (w *worker) flush() error {
	if w.flushedAll() {
		return nil
	}
	changes, start := w.beginFlush(), time.Now()
	err := w.retry("postgres", "write a batch", func(ctx context.Context) error {
		return w.flushOnce(ctx, &changes)
	})
	return w.flushed(&changes, start, err)
}

// flushLast flushes once, without retry, because the worker is to stop. What
// cannot be flushed will be read again by the next owner.
func (w *worker) flushLast() {
	if w.flushedAll() {
		return
	}
	changes, start := w.beginFlush(), time.Now()
	ctx, cancel := context.WithTimeout(w.trace.Context(w.ctx), w.c.cfg.DrainWithin)
	defer cancel()
	err := w.flushOnce(ctx, &changes)
	if err == nil {
		err = w.flushed(&changes, start, nil)
	}
	if err != nil {
		w.log.Warn("stopped with records not written: they will be read again", "reason", errclass.Safe(err))
	}
}

// beginFlush answers what is to be made durable, with its dead letters addressed. It is
// a copy: a written projection has no changes left.
func (w *worker) beginFlush() projection.Changes {
	changes := *w.proj.Changes()
	w.address(&changes)
	w.trace.Flushing(w.next.Offset)
	return changes
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

// flushOnce is one attempt. Every step of it can be repeated.
func (w *worker) flushOnce(ctx context.Context, c *projection.Changes) error {
	if w.delivery != nil && w.delivery.Pending() > 0 {
		if err := w.proj.Verify(ctx, c); err != nil {
			return err
		}
		if err := w.c.cfg.DeadLetters.Deliver(ctx, w.delivery); err != nil {
			if kafkaUnknownTopic(err) {
				err = errors.Join(err, w.c.cfg.DeadLetters.EnsureTopic(ctx))
			}
			return publishError{err}
		}
		failpoint.Here(failpoint.DLQAcknowledged)
	}
	return w.proj.Write(ctx, w.next, c)
}

// flushed takes note of a flush that succeeded, or decides how to go on after one
// that must not be repeated as it is.
func (w *worker) flushed(c *projection.Changes, start time.Time, err error) error {
	switch {
	case err == nil:
	case errors.Is(err, projection.ErrFenced), errors.Is(err, projection.ErrStale):
		w.rejudged, w.why = w.rejudged+1, err.Error()
		return errRejudge
	case errclass.Postgres(err) == errclass.Isolate && !isPublishError(err):
		return w.isolate(err)
	default:
		return err
	}
	if w.rejudged >= rejudgeFreely {
		w.calm()
	}
	w.rejudged = 0
	w.report(c, time.Since(start))
	w.trace.Flushed(w.next.Offset, c)
	w.since = time.Time{}
	if w.delivery != nil {
		w.delivery = w.delivery.Done(w.next.Offset)
	}
	w.status.oldest.Store(0)
	w.limit = min(2*w.limit, w.c.cfg.Limits.FlushEvents)
	w.status.position.Store(w.next.Offset)
	w.status.moved.Store(time.Now().UnixMilli())
	w.c.committer.mark(w.partition, w.next.Offset)
	return nil
}

// isolate narrows the search for the event that PostgreSQL refuses: half as many
// events a flush until it is alone, then it is judged as refused.
func (w *worker) isolate(err error) error {
	events := w.proj.Pending().Events
	if events > 1 {
		w.limit = max(1, events/2)
		w.log.Debug("PostgreSQL refused a batch, halving it", "reason", errclass.Safe(err), "events", events)
		return errRejudge
	}
	w.log.Warn("PostgreSQL refuses an event, dead-lettering it", "reason", errclass.Safe(err))
	w.limit = 1
	if !w.proj.Reject("PostgreSQL refused the row: " + errclass.Safe(err)) {
		return fmt.Errorf("an event judged as refused is still refused: %w", err)
	}
	return errRejudge
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

// publishError marks an error of Kafka, so that it is not taken for one of PostgreSQL.
type publishError struct{ error }

func (e publishError) Unwrap() error { return e.error }

func isPublishError(err error) bool {
	var p publishError
	return errors.As(err, &p)
}

// retry runs fn for ever, each attempt with its own deadline, until it succeeds,
// must not be repeated, or the worker is to stop. A stop ends the waiting at once,
// an attempt under way only when the worker's time is up.
func (w *worker) retry(dependency, what string, fn func(context.Context) error) error {
	policy := w.c.cfg.Retry
	deadline := policy.Attempt
	policy.Attempt = 0
	obs := &retryObserver{
		w: w, dependency: dependency, condition: w.c.condition(w.partition), log: w.c.throttled(dependency, what),
	}
	err := policy.Forever(w.drain, obs, func(context.Context) error {
		ctx, cancel := context.WithTimeout(w.trace.Context(w.ctx), deadline)
		defer cancel()
		err := fn(ctx)
		if err != nil && final(err) {
			return retry.Stop(err)
		}
		return err
	})
	if err != nil && obs.failing {
		w.calm()
	}
	if w.drain.Err() != nil && err != nil && !final(err) {
		return errDrained
	}
	return err
}

// final reports whether repeating the same attempt is pointless.
func final(err error) bool {
	return errors.Is(err, projection.ErrFenced) || errors.Is(err, projection.ErrStale) ||
		errors.Is(err, projection.ErrTopicRecreated) || errors.Is(err, errOtherMember) || isStopped(err) ||
		!isPublishError(err) && errclass.Postgres(err) == errclass.Isolate
}

// retryObserver tells metrics, health, status and log that a worker is retrying.
type retryObserver struct {
	w          *worker
	dependency string
	condition  string
	log        *retry.Throttled
	other      *retry.Throttled // of another dependency than its own, nil: none has failed
	unread     bool             // what fails is the reading of records, beside the worker
	failing    bool
}

// stuckAfter is how long a partition may retry before the instance is unready.
const stuckAfter = 10 * time.Second

// Failing implements retry.Observer.
func (o *retryObserver) Failing(err error, attempt int, since, next time.Duration) {
	o.failing = true
	c, dependency := o.w.c, dependencyOf(err, o.dependency)
	class := errclass.Postgres(err)
	switch dependency {
	case "kafka":
		class = errclass.Kafka(err)
	case dependencyRegistry:
		class = errclass.Registry(err)
	}
	reason := dependency + ": " + errclass.Safe(err)
	o.of(dependency).Failing(err, attempt, since, next)
	c.cfg.Observer.Retry(dependency, errclass.Reason(err))
	c.cfg.Observer.Retrying(c.cfg.Topic, o.w.partition, true)
	o.w.status.set(Retrying, reason)
	if o.unread {
		o.w.unread.Store(&reason)
	}
	grace := stuckAfter
	if class == errclass.RetryLoud {
		grace = 0
	}
	c.cfg.Health.FailAfter(o.condition, reason, grace)
	if class == errclass.RetryReset {
		c.cfg.Database.Reset()
	}
}

// of is the log for a failure of the dependency: a flush may fail for Kafka too, when
// it publishes, and healing for the schema registry.
func (o *retryObserver) of(dependency string) *retry.Throttled {
	if dependency == o.dependency {
		return o.log
	}
	what := "publish dead letters"
	if dependency == dependencyRegistry {
		what = "read parked events"
	}
	o.other = o.w.c.throttled(dependency, what)
	return o.other
}

// Recovered implements retry.Observer.
func (o *retryObserver) Recovered(attempts int, after time.Duration) {
	o.log.Recovered(attempts, after)
	if o.other != nil {
		o.other.Recovered(attempts, after)
	}
	if !o.unread { // awaitFormat does it
		o.w.calm()
	}
}

// calm takes back what a retry observer has told, as far as the worker itself is
// concerned: its records may still not be readable.
func (w *worker) calm() {
	w.c.cfg.Health.OK(w.c.condition(w.partition))
	if reason := w.unread.Load(); reason != nil {
		w.status.set(Retrying, *reason)
		return
	}
	w.c.cfg.Observer.Retrying(w.c.cfg.Topic, w.partition, false)
	w.status.set(Flowing, "")
}
