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

// retry runs fn for ever until it succeeds, must not be repeated, or the worker is to
// stop. An attempt may take as long as it is answered now and then. A stop ends the
// waiting at once, an attempt under way only when the worker's time is up.
func (w *worker) retry(dependency, operation string, fn func(context.Context) error) error {
	policy := w.c.cfg.Retry
	silence := policy.Attempt
	policy.Attempt = 0
	obs := &retryObserver{w: w, obstacle: notAnswered, dependency: dependency, operation: operation}
	err := policy.Forever(w.drain, obs, func(context.Context) error {
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
	if w.drain.Err() != nil && err != nil && !final(err) {
		return errDrained
	}
	return err
}

// final reports whether repeating the same attempt is pointless.
func final(err error) bool {
	return session.Final(err) || errors.Is(err, projection.ErrTopicRecreated) || errors.Is(err, errOtherMember) || isStopped(err)
}

// awaitFormat tries for ever to find out how a record is read, as long as a schema
// registry is away; false when the worker is to stop. The decoder calls it, while the worker
// flushes what was decoded before.
func (w *worker) awaitFormat(r *kgo.Record) bool {
	obs := &retryObserver{w: w, obstacle: notRead, dependency: dependencyRegistry, operation: "read events"}
	m := FromKafka(r).Message
	err := w.c.cfg.Retry.Forever(w.drain, obs, func(ctx context.Context) error {
		_, err := w.c.cfg.Formats.Resolve(ctx, m)
		return err
	})
	if err != nil {
		obs.gaveUp()
	}
	return err == nil
}

// dependencyRegistry is what the errors of a schema registry name.
const dependencyRegistry = "schema_registry"

// schemaCondition ends the condition of a partition that cannot be read.
const schemaCondition = " schema"

// dependencyOf is the dependency that an error names; else the one that was called.
func dependencyOf(err error, asked string) string {
	var names interface{ Dependency() string }
	if errors.As(err, &names) {
		return names.Dependency()
	}
	return asked
}

// obstacle is what can keep a partition from continuing. They are independent of each other;
// the partition flows when there is none.
type obstacle int

const (
	notWritten  obstacle = iota // flushes fail: from the first that does until one succeeds, over all claims in between
	notAnswered                 // something else the worker does fails, and is repeated
	notRead                     // records cannot be decoded
	obstacles
)

// stuckAfter is how long a partition may retry before the instance is unready.
const stuckAfter = 10 * time.Second

// condition is the obstacle's name in health.
func (w *worker) condition(o obstacle) string {
	if o == notRead {
		return w.c.condition(w.partition) + schemaCondition
	}
	return w.c.condition(w.partition)
}

// obstructed reports an obstacle to status, metric and health. The instance is unready
// when it is still there after grace.
func (w *worker) obstructed(o obstacle, reason string, grace time.Duration) {
	s := &w.status
	s.mu.Lock()
	defer s.mu.Unlock()
	s.obstacles[o] = reason
	s.change(projection.StateRetrying, reason)
	w.c.cfg.Observer.Retrying(w.c.cfg.Topic, w.partition, true)
	w.c.cfg.Health.FailAfter(w.condition(o), reason, grace)
}

// passed reports that an obstacle is gone, if there was one, and reports again what remains.
func (w *worker) passed(o obstacle) {
	s := &w.status
	s.mu.Lock()
	defer s.mu.Unlock()
	s.obstacles[o] = ""
	standing, reason := "", ""
	for other := range obstacles {
		if s.obstacles[other] == "" {
			continue
		}
		reason = s.obstacles[other]
		if w.condition(other) == w.condition(o) {
			standing = reason
		}
	}
	if standing == "" {
		w.c.cfg.Health.OK(w.condition(o))
	} else {
		w.c.cfg.Health.FailAfter(w.condition(o), standing, stuckAfter) // the time of the first failure stays
	}
	if reason != "" {
		s.change(projection.StateRetrying, reason)
		return
	}
	w.c.cfg.Observer.Retrying(w.c.cfg.Topic, w.partition, false)
	s.change(projection.StateFlowing, "")
}

// retryObserver makes an obstacle of what is retried, and logs it.
type retryObserver struct {
	w          *worker
	obstacle   obstacle
	dependency string           // that is called
	operation  string           // what for
	other      *retry.Throttled // of another dependency than its own, nil: none has failed
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
	if class == errclass.RetryUnready {
		grace = 0
	}
	o.w.obstructed(o.obstacle, dependency+": "+errclass.Safe(err), grace)
	if class == errclass.RetryReset {
		c.cfg.Database.Reset()
	}
}

// log is the log of a dependency's failures: healing may also fail for the schema registry.
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

// gaveUp is called when a retry ends without success: its result is no longer needed.
func (o *retryObserver) gaveUp() {
	if o.failing {
		o.failing = false
		o.w.passed(o.obstacle)
	}
}
