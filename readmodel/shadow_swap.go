package readmodel

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// SwapOptions say how the rebuilt accounts are put in the place of the live ones.
type SwapOptions struct {
	Topic     string
	ParkLimit int64
	Actor     string
}

// Swap replaces the accounts that Compare has noted, in one transaction: it raises
// every fence, so that running consumers wait and then forget what they remember;
// catchUp has to bring the shadow exactly to the positions they are at; then the rows
// that are wrong are taken out and those that were rebuilt put in. An account that has
// moved beyond the rebuilt one meanwhile is left alone. It answers how many accounts
// were replaced or removed. After an error nothing is changed.
func (s *Shadow) Swap(ctx context.Context, opts SwapOptions, catchUp func(context.Context, []TopicPosition) error) (int64, error) {
	var swapped int64
	err := persistently(ctx, func(ctx context.Context) error {
		return pgx.BeginTxFunc(ctx, s.live, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			swapped, err = s.swap(ctx, tx, opts, catchUp)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("swap: %w", err)
	}
	return swapped, nil
}

func (s *Shadow) swap(ctx context.Context, tx pgx.Tx, opts SwapOptions, catchUp func(context.Context, []TopicPosition) error) (int64, error) {
	if _, err := tx.Exec(ctx, sql.Query("rebuild_session")); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, sql.Query("repair_fence"), []string{}, []int32{}); err != nil {
		return 0, err
	}
	positions, err := LoadTopicPositions(ctx, tx, opts.Topic)
	if err != nil {
		return 0, err
	}
	if err := catchUp(ctx, positions); err != nil {
		return 0, err
	}
	if err := s.checkPositions(ctx, tx, opts.Topic, positions); err != nil {
		return 0, err
	}
	for _, step := range []struct {
		query string
		args  []any
	}{
		{"rebuild_remove", nil},
		{"rebuild_insert", nil},
		{"rebuild_settle", nil},
		{"rebuild_parked_remove", []any{opts.ParkLimit}},
		{"rebuild_parked_insert", []any{opts.ParkLimit}},
		{"rebuild_overflow_remove", nil},
		{"rebuild_overflow_insert", []any{opts.ParkLimit}},
	} {
		if _, err := tx.Exec(ctx, sql.Query(step.query), step.args...); err != nil {
			return 0, err
		}
	}
	done, err := tx.Exec(ctx, sql.Query("rebuild_audit"), opts.Actor)
	return done.RowsAffected(), err
}
