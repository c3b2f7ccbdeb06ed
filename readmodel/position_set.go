package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/sql"
)

// ActionPositionSet is the action of a person who sets a position. Its result says from
// where.
const ActionPositionSet ActionKind = "position_set"

// PositionSet is a partition's position as a person wants it, and the partition's log.
type PositionSet struct {
	Partition int32
	Want      projection.Reposition
	Log       projection.Log
}

// PlanPositions returns what SetPositions would do now.
func PlanPositions(ctx context.Context, pool *pgxpool.Pool, of Partition, sets []PositionSet) ([]projection.Repositioned, error) {
	if err := CheckGroup(ctx, pool, of.Group, of.Projection); err != nil {
		return nil, err
	}
	stored, err := LoadPositions(ctx, pool, of.Group, of.Topic)
	if err != nil {
		return nil, err
	}
	plans := make([]projection.Repositioned, len(sets))
	for i := range sets {
		at := slices.IndexFunc(stored, func(s projection.StoredPosition) bool { return s.Partition == sets[i].Partition })
		var known *projection.StoredPosition
		if at >= 0 {
			known = &stored[at]
		}
		if plans[i], err = sets[i].plan(known); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

func (s *PositionSet) plan(stored *projection.StoredPosition) (projection.Repositioned, error) {
	plan, err := s.Want.Plan(stored, s.Log)
	var refused *projection.RefusedPositionError
	if errors.As(err, &refused) {
		err = &projection.RefusedPositionError{Reason: fmt.Sprintf("partition %d: %s", s.Partition, refused.Reason)}
	}
	return plan, err
}

// SetPositions sets positions of a group's topic, all of them or none, raises their fences
// and records who did it and why. A *projection.RefusedPositionError means that one of them
// is not to be set so.
func SetPositions(ctx context.Context, pool *pgxpool.Pool, of Partition, sets []PositionSet, actor, reason string) ([]projection.Repositioned, error) {
	slices.SortFunc(sets, func(a, b PositionSet) int { return cmp.Compare(a.Partition, b.Partition) }) // as everybody locks them
	var plans []projection.Repositioned
	err := transactOnce(ctx, pool, func(ctx context.Context, tx *Tx) error {
		plans = plans[:0]
		actions := make([]Action, len(sets))
		for i := range sets {
			of.Number = sets[i].Partition
			plan, err := setPosition(ctx, tx, of, &sets[i])
			if err != nil {
				return err
			}
			plans = append(plans, plan)
			actions[i] = Action{
				Kind: ActionPositionSet, Topic: of.Topic, Partition: of.Number, Offset: plan.To,
				Actor: actor, Reason: reason, Result: cameFrom(plan),
			}
		}
		queueActions(tx, actions)
		return tx.Send(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("set positions: %w", err)
	}
	return plans, nil
}

// setPosition locks a position, or makes it, and sets it as it is to be.
func setPosition(ctx context.Context, tx *Tx, p Partition, set *PositionSet) (projection.Repositioned, error) {
	var inserted int64
	tx.Queue(sql.Query("position_insert"), p.Group, p.Topic, p.Number, set.Log.Start, set.Log.TopicID, "", p.Projection).
		Exec(func(tag pgconn.CommandTag) error { inserted = tag.RowsAffected(); return nil })
	if err := tx.Send(ctx); err != nil {
		return projection.Repositioned{}, err
	}
	stored, err := lockPosition(ctx, tx, p)
	if err != nil {
		return projection.Repositioned{}, err
	}
	known := &stored
	if inserted > 0 {
		known = nil
	}
	plan, err := set.plan(known)
	if err != nil {
		return plan, err
	}
	tx.Queue(sql.Query("position_set"), p.Group, p.Topic, p.Number, plan.To, knownTopicID(set.Log.TopicID, stored.TopicID))
	return plan, tx.Send(ctx)
}

// cameFrom is what the audit trail says of where a position was.
func cameFrom(plan projection.Repositioned) string {
	if plan.From == nil {
		return "from none"
	}
	return fmt.Sprintf("from %d", *plan.From)
}
