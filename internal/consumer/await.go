package consumer

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// awaitFormat tries for ever to find out how a record is read, as long as a schema
// registry is away; false when the worker is to stop. It runs beside the worker, which
// flushes what was decoded before.
func (w *worker) awaitFormat(r *kgo.Record) bool {
	obs := &retryObserver{
		w: w, dependency: dependencyRegistry, condition: w.c.condition(w.partition) + schemaCondition,
		log: w.c.throttled(dependencyRegistry, "read events"), unread: true,
	}
	m := FromKafka(r).Message
	err := w.c.cfg.Retry.Forever(w.drain, obs, func(ctx context.Context) error {
		_, err := w.c.cfg.Formats.Resolve(ctx, m)
		return err
	})
	if obs.failing {
		w.unread.Store(nil)
		w.c.cfg.Health.OK(obs.condition)
		w.c.cfg.Observer.Retrying(w.c.cfg.Topic, w.partition, false)
		w.status.set(Flowing, "")
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
	switch {
	case isPublishError(err):
		return "kafka"
	case errors.As(err, &names):
		return names.Dependency()
	}
	return asked
}
