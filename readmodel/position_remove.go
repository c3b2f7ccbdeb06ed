package readmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/sql"
)

// UnusedPosition is a position of a consumer group that no process runs any more.
type UnusedPosition struct {
	Partition  int32
	Next       int64
	Fence      int64
	Projection string
	Passed     bool // another group of the projection has reached this position
}

// UnusedPositions returns the positions that RemovePositions would remove, by partition.
func UnusedPositions(ctx context.Context, pool *pgxpool.Pool, group, topic string) ([]UnusedPosition, error) {
	rows, _ := pool.Query(ctx, sql.Query("position_unused"), group, topic)
	positions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[UnusedPosition])
	if err != nil {
		return nil, fmt.Errorf("load positions: %w", err)
	}
	return positions, nil
}

var (
	// ErrPositionsMoved means that a consumer uses one of the positions.
	ErrPositionsMoved = errors.New("the positions have changed meanwhile")
	// ErrMayNotRemove means that the role may not delete positions. The owner of the schema may
	// delete them.
	ErrMayNotRemove = errors.New("missing privileges: DELETE on projector_position (SQLSTATE 42501)")
)

// RemovePositions removes positions of a group, all of them or none, and records who did it and
// why. It returns ErrPositionsMoved if one of them has a new owner.
func RemovePositions(ctx context.Context, pool *pgxpool.Pool, group, topic string, positions []UnusedPosition, actor, reason string) error {
	partitions, fences, actions := make([]int32, len(positions)), make([]int64, len(positions)), make([]Action, len(positions))
	for i, p := range positions {
		partitions[i], fences[i] = p.Partition, p.Fence
		actions[i] = Action{
			Kind: ActionPositionSet, Group: group, Projection: p.Projection, Topic: topic, Partition: p.Partition, Offset: p.Next,
			Actor: actor, Reason: reason, Result: "removed",
		}
	}
	err := TransactOnce(ctx, pool, func(ctx context.Context, tx *Tx) error {
		var removed int64
		tx.Queue(sql.Query("position_remove"), group, topic, partitions, fences).
			Exec(func(tag pgconn.CommandTag) error { removed = tag.RowsAffected(); return nil })
		if err := tx.Send(ctx); err != nil {
			return err
		}
		if removed != int64(len(positions)) {
			return ErrPositionsMoved
		}
		QueueActions(tx, actions)
		return tx.Send(ctx)
	})
	if HasCode(err, insufficientPrivilege) {
		return ErrMayNotRemove
	}
	if err != nil {
		return fmt.Errorf("remove positions: %w", err)
	}
	return nil
}
