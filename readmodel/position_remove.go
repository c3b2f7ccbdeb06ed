package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/sql"
)

// UnusedPosition is a stored position of a consumer group that an operator wants to remove. Whether
// a process still runs this group is not checked here.
type UnusedPosition struct {
	Partition  int32
	Next       int64
	Fence      int64
	Projection string
	Passed     bool // another group of the projection has reached this position
	Removable  bool // the role of this session may delete it
	Ordered    bool // the projection is a custom one that compares versions
}

// UnusedPositions returns all positions of a group in a topic, sorted by partition.
func UnusedPositions(ctx context.Context, pool *pgxpool.Pool, group, topic string) ([]UnusedPosition, error) {
	return All[UnusedPosition](ctx, pool, "load positions", "position_unused", group, topic)
}

// ErrPositionsMoved means that the fence of one of the positions has changed, for example because a
// consumer uses the position. Or there is no longer another group that has reached the position.
var ErrPositionsMoved = errors.New("the positions have changed meanwhile")

// RemovePositions removes positions of a group, all of them or none, and records who did it and
// why. It returns ErrPositionsMoved if the fence of one of them has changed. It also returns this
// error if another group had reached a position, and no other group has now.
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
		tx.Queue(sql.Query("position_remove_lock"), group, topic)
		if err := tx.Send(ctx); err != nil {
			return err
		}
		now, err := All[UnusedPosition](ctx, tx, "load positions", "position_unused", group, topic)
		if err != nil {
			return err
		}
		for _, p := range now {
			if !p.Passed && slices.ContainsFunc(positions, func(was UnusedPosition) bool { return was.Partition == p.Partition && was.Passed }) {
				return ErrPositionsMoved
			}
		}
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
	if err != nil {
		return fmt.Errorf("remove positions: %w", err)
	}
	return nil
}
