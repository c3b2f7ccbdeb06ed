package readmodel

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// Ends returns the ends of a topic's partitions, as far as they can be had. It is asked
// between the transactions of a repair, so it must not take long.
type Ends func(ctx context.Context, topic string) map[int32]int64

const (
	// progressWithin is how long a repair waits, between two of its transactions, for a
	// consumer to make progress.
	progressWithin = 4 * time.Second
	// progressEvery is how often it looks.
	progressEvery = 25 * time.Millisecond
)

// partitionOf names a partition as a consumer group reads it.
type partitionOf struct {
	group, topic string
	number       int32
}

// progress is where a consumer is. It claims its partition anew when a repair has
// overtaken it, which raises the fence.
type progress struct{ fence, next int64 }

// resting lets consumers go on between the transactions of a repair. A consumer whose
// changes the repair has overtaken reads and decides again, which may take longer than the
// repair's transaction did. If it were overtaken again and again it would stand still.
type resting struct {
	pool querier
	ends Ends // nil: nobody knows whether a consumer has anything to do, and none is waited for
	seen map[partitionOf]progress
}

// begin notes where the consumers are.
func (r *resting) begin(ctx context.Context) (err error) {
	if r.ends != nil {
		r.seen, err = r.look(ctx)
	}
	return err
}

// rest waits for pause, and then until each consumer that was overtaken has made
// progress, as long as that can be hoped for.
func (r *resting) rest(ctx context.Context, pause time.Duration) error {
	if err := wait(ctx, pause); err != nil || r.ends == nil {
		return err
	}
	for deadline := time.Now().Add(progressWithin); ; {
		now, err := r.look(ctx)
		if err != nil {
			return err
		}
		if !r.overtaken(ctx, now) || time.Now().After(deadline) {
			r.seen = now
			return nil
		}
		if err := wait(ctx, progressEvery); err != nil {
			return err
		}
	}
}

// overtaken reports whether a consumer has claimed its partition anew and not moved since,
// although something waits for it.
func (r *resting) overtaken(ctx context.Context, now map[partitionOf]progress) bool {
	ends := map[string]map[int32]int64{}
	for p, before := range r.seen {
		at, exists := now[p]
		if !exists || at.fence == before.fence || at.next != before.next {
			continue
		}
		if ends[p.topic] == nil {
			ends[p.topic] = r.ends(ctx, p.topic)
		}
		if end, known := ends[p.topic][p.number]; known && at.next < end {
			return true
		}
	}
	return false
}

func (r *resting) look(ctx context.Context) (map[partitionOf]progress, error) {
	consumers := map[partitionOf]progress{}
	err := patiently(ctx, func(ctx context.Context) error {
		clear(consumers)
		rows, err := r.pool.Query(ctx, sql.Query("repair_progress"))
		if err != nil {
			return err
		}
		var (
			p  partitionOf
			at progress
		)
		_, err = pgx.ForEachRow(rows, []any{&p.group, &p.topic, &p.number, &at.fence, &at.next}, func() error {
			consumers[p] = at
			return nil
		})
		return err
	})
	return consumers, err
}
