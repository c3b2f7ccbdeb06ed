package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/pace"
	"projector/internal/retry"
	"projector/internal/session"
	"projector/projection"
)

// retry runs fn until it succeeds, fails with a final error, or the worker must stop. An attempt
// has no time limit if the server continues to answer. A stop of the worker immediately ends a wait
// between attempts, but not a running attempt.
func (w *worker) retry(dependency, operation string, fn func(context.Context) error) error {
	return w.retryUntil(w.drain, dependency, operation, fn)
}

// retryUntil is retry, but it returns session.ErrAgain if ctx ends before the worker must stop.
func (w *worker) retryUntil(ctx context.Context, dependency, operation string, fn func(context.Context) error) error {
	policy := w.c.cfg.Retry
	silence := policy.Attempt
	policy.Attempt = 0
	obs := &retryObserver{w: w, obstacle: notAnswered, dependency: dependency, operation: operation}
	err := policy.Forever(ctx, obs, func(context.Context) error {
		attempt := pace.Begin(w.context(), silence)
		err := attempt.End(fn(attempt.Context()))
		if err != nil && final(err) {
			return retry.Stop(err)
		}
		return err
	})
	if err != nil {
		obs.gaveUp()
	}
	switch {
	case err == nil || final(err):
		return err
	case w.drain.Err() != nil:
		return errDrained
	case ctx.Err() != nil:
		return session.ErrAgain
	}
	return err
}

// final reports whether a retry of the same operation would fail again.
func final(err error) bool {
	return session.Final(err) || errors.Is(err, projection.ErrTopicRecreated) || errors.Is(err, errOtherMember) ||
		errors.As(err, new(*projection.StoppedError)) // paused or stopped in the database
}

// awaitFormat requests a record's schema until the schema registry returns it. It returns false if
// ctx ends before. The decoder calls it, so that the worker can flush the earlier records meanwhile.
// The decoder has already waited for the registry before.
func (w *worker) awaitFormat(ctx context.Context, r *kgo.Record, before time.Duration) bool {
	obs := &retryObserver{w: w, obstacle: notRead, dependency: dependencyRegistry, operation: "read events", began: time.Now().Add(-before)}
	m := FromKafka(r).Message
	err := w.c.cfg.Retry.Forever(ctx, obs, func(ctx context.Context) error {
		_, err := w.c.cfg.Formats.Resolve(ctx, m)
		return err
	})
	if err != nil {
		obs.gaveUp()
	}
	return err == nil
}

// dependencyRegistry is the name of the schema registry in errors.
const dependencyRegistry = "schema_registry"

// schemaCondition is the suffix in the name of the health condition for records that cannot be
// decoded.
const schemaCondition = " schema"

// dependencyOf returns the dependency that failed. This is the dependency that the error names. If
// the error names none, it is the dependency that the caller has called.
func dependencyOf(err error, asked string) string {
	var names interface{ Dependency() string }
	if errors.As(err, &names) {
		return names.Dependency()
	}
	return asked
}

// obstacle is a reason why a partition cannot continue. A partition can have several obstacles at
// the same time. Its state is flowing only if it has none.
type obstacle int

const (
	notWritten  obstacle = iota // flushes fail; it ends only when a flush succeeds
	notAnswered                 // another operation of the worker fails and is retried
	notRead                     // records cannot be decoded
	obstacles
)

// stuckAfter is how long a partition may retry before the instance becomes unready.
const stuckAfter = 10 * time.Second

func (w *worker) condition(o obstacle) string {
	if o == notRead {
		return w.c.condition(w.partition) + schemaCondition
	}
	return w.c.condition(w.partition)
}

// obstructed reports an obstacle to the status, the metric and the health. The instance becomes
// unready if the obstacle still exists after grace.
func (w *worker) obstructed(o obstacle, reason string, grace time.Duration) {
	w.queue.delayed()
	s := &w.status
	s.mu.Lock()
	defer s.mu.Unlock()
	if o == notRead && s.state.Waiting() {
		return // the decoder has not noticed yet that the partition was stopped or paused
	}
	s.obstacles[o] = reason
	s.change(projection.StateRetrying, reason)
	w.c.cfg.Observer.Retrying(w.partition, true)
	w.c.cfg.Health.FailAfter(w.condition(o), reason, grace)
}

// passed reports that an obstacle does not exist any more. If there are other obstacles, it reports
// these again.
func (w *worker) passed(o obstacle) {
	s := &w.status
	s.mu.Lock()
	defer s.mu.Unlock()
	s.obstacles[o] = ""
	status, reason := "", ""
	for other := range obstacles {
		if s.obstacles[other] == "" {
			continue
		}
		reason = s.obstacles[other]
		if w.condition(other) == w.condition(o) {
			status = reason
		}
	}
	if status == "" {
		w.c.cfg.Health.OK(w.condition(o))
	} else {
		// The condition keeps the time of its first failure.
		w.c.cfg.Health.FailAfter(w.condition(o), status, stuckAfter)
	}
	switch {
	case o == notRead && s.state.Waiting(): // the decoder has ended because the partition was stopped or paused
	case reason != "":
		w.c.cfg.Observer.Retrying(w.partition, true)
		s.change(projection.StateRetrying, reason)
	default:
		w.c.cfg.Observer.Retrying(w.partition, false)
		s.change(projection.StateFlowing, "")
	}
}

// retryObserver logs a retried operation and reports it as an obstacle.
type retryObserver struct {
	w          *worker
	obstacle   obstacle
	dependency string           // the dependency that is called
	operation  string           // what the dependency is called for
	began      time.Time        // when the partition began to wait; zero if this is the first failure
	other      *retry.Throttled // log of a second dependency that has failed; nil if there is none
	failing    bool
}

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
	o.log(dependency).Failing(err, attempt, since, next)
	c.cfg.Observer.Retry(dependency, errclass.Reason(err))
	grace := stuckAfter
	if !o.began.IsZero() { // the first attempts may have taken long, because the registry did not answer
		grace = max(0, stuckAfter-time.Since(o.began))
	}
	if class == errclass.RetryUnready {
		grace = 0
	}
	o.w.obstructed(o.obstacle, dependency+": "+errclass.Safe(err), grace)
	if class == errclass.RetryReset {
		c.cfg.Database.Reset()
	}
}

// log returns the log for failures of a dependency. The failed dependency may differ from
// o.dependency. For example, healing calls PostgreSQL and the schema registry.
func (o *retryObserver) log(dependency string) *retry.Throttled {
	if dependency == o.dependency {
		return o.w.c.throttled(dependency, o.operation)
	}
	o.other = o.w.c.throttled(dependency, "read parked events")
	return o.other
}

// Recovered implements retry.Observer.
func (o *retryObserver) Recovered(attempts int, after time.Duration) {
	o.failing = false
	o.log(o.dependency).Recovered(attempts, after)
	if o.other != nil {
		o.other.Recovered(attempts, after)
	}
	o.w.passed(o.obstacle)
}

// gaveUp removes the obstacle when a retry ends without success.
func (o *retryObserver) gaveUp() {
	if o.failing {
		o.failing = false
		o.w.passed(o.obstacle)
	}
}
