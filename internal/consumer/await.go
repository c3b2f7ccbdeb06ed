package consumer

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/pace"
	"projector/internal/retry"
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
		attempt := pace.Begin(w.trace.Context(w.ctx), silence)
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
	return errors.Is(err, projection.ErrFenced) || errors.Is(err, projection.ErrStale) ||
		errors.Is(err, projection.ErrTopicRecreated) || errors.Is(err, errOtherMember) || isStopped(err) || refused(err)
}

// refused reports whether PostgreSQL refuses a row.
func refused(err error) bool { return errclass.Postgres(err) == errclass.Isolate }

// awaitFormat tries for ever to find out how a record is read, as long as a schema
// registry is away; false when the worker is to stop. It runs beside the worker, which
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

// schemaCondition is behind the condition of a partition that cannot be read.
const schemaCondition = " schema"

// dependencyOf is what an error says is failing; else what was asked.
func dependencyOf(err error, asked string) string {
	var names interface{ Dependency() string }
	if errors.As(err, &names) {
		return names.Dependency()
	}
	return asked
}
