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

// resting lets consumers go on between the transactions of a repair. A consumer whose
// changes a repair has overtaken has to read and decide again, which may take longer than
// the repair's transaction did: the repair waits until each that has something to do has
// done some of it.
type resting struct {
	pool  querier
	ends  Ends                  // nil: nobody waits
	stuck map[partitionOf]int64 // did not move within the time from this offset
}

// rest waits at least for pause, and then for the consumers, as long as they can be hoped
// for.
func (r *resting) rest(ctx context.Context, pause time.Duration) error {
	if r.ends == nil { // nobody knows whether a consumer has anything to do
		return wait(ctx, pause)
	}
	before, err := r.positions(ctx)
	if err != nil {
		return err
	}
	if err := wait(ctx, pause); err != nil {
		return err
	}
	for deadline := time.Now().Add(progressWithin); ; {
		now, err := r.positions(ctx)
		if err != nil {
			return err
		}
		r.forgetMoved(ctx, before, now)
		if len(before) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			r.stuck = before
			return nil
		}
		if err := wait(ctx, progressEvery); err != nil {
			return err
		}
	}
}

// forgetMoved takes those positions out of before that have moved, are at the end, or
// were not moving anyway.
func (r *resting) forgetMoved(ctx context.Context, before, now map[partitionOf]int64) {
	ends := map[string]map[int32]int64{}
	for p, offset := range before {
		next, exists := now[p]
		stuckAt, stuck := r.stuck[p]
		if !exists || next != offset || stuck && stuckAt == offset {
			delete(before, p)
			continue
		}
		if ends[p.topic] == nil {
			ends[p.topic] = r.ends(ctx, p.topic)
		}
		if end, known := ends[p.topic][p.number]; !known || next >= end {
			delete(before, p)
		}
	}
}

func (r *resting) positions(ctx context.Context) (map[partitionOf]int64, error) {
	positions := map[partitionOf]int64{}
	err := patiently(ctx, func(ctx context.Context) error {
		clear(positions)
		rows, err := r.pool.Query(ctx, sql.Query("repair_progress"))
		if err != nil {
			return err
		}
		var (
			p    partitionOf
			next int64
		)
		_, err = pgx.ForEachRow(rows, []any{&p.group, &p.topic, &p.number, &next}, func() error {
			positions[p] = next
			return nil
		})
		return err
	})
	return positions, err
}
