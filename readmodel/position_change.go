package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/sql"
)

// PartitionLog is a partition and the current start of its log.
type PartitionLog struct {
	Partition int32
	TopicID   string
	Start     int64
	// When the partition is resumed, records below the offset Through do not count for the breaker.
	// If Through is nil, the stored value stays.
	Through *int64
}

// StatusChanged has the status of a partition before and after a change.
type StatusChanged struct {
	Was, Is projection.Status
	Why     string // why the partition was not processed before the change; empty if it was
}

// PlannedStatus is a planned change of a partition's status.
type PlannedStatus struct {
	PartitionLog
	StatusChanged
	Next int64 // the position at the time of the plan
}

// changed returns the status of the partition before and after the change.
func (l *PartitionLog) changed(change projection.StatusChange, stored projection.StoredPosition) StatusChanged {
	change.Through = l.Through
	after := change.Of(stored)
	c := StatusChanged{Was: stored.Status(), Is: after.Status()}
	if stopped := stored.Stopped(); stopped != nil {
		c.Why = stopped.Reason
	}
	return c
}

// PlanStatuses returns what ChangeStatuses would do now, in the order of the given logs.
func PlanStatuses(
	ctx context.Context, pool *pgxpool.Pool, of Partition, logs []PartitionLog, change projection.StatusChange,
) ([]PlannedStatus, error) {
	known, err := knownPositions(ctx, pool, of)
	if err != nil {
		return nil, err
	}
	planned := make([]PlannedStatus, len(logs))
	for i := range logs {
		var stored projection.StoredPosition // empty if there is no position yet
		if p := known[logs[i].Partition]; p != nil {
			stored = *p
		}
		planned[i] = PlannedStatus{logs[i], logs[i].changed(change, stored), stored.Next}
	}
	return planned, nil
}

// ChangeStatuses pauses or resumes partitions of a group's topic, all of them or none. It increases
// their fences and records who did this and why. A partition without a position gets one at the
// start of its log, as its first owner would create it. It returns a
// *projection.RefusedPositionError if the status of a partition is no longer the one in the plan.
// For example, a second incident may have stopped the partition after the plan was made.
func ChangeStatuses(
	ctx context.Context, pool *pgxpool.Pool, of Partition, planned []PlannedStatus, change projection.StatusChange, actor, reason string,
) error {
	slices.SortFunc(planned, func(a, b PlannedStatus) int { return cmp.Compare(a.Partition, b.Partition) }) // all transactions lock positions in this order
	err := TransactOnce(ctx, pool, func(ctx context.Context, tx *Tx) error {
		actions := make([]Action, len(planned))
		for i := range planned {
			p := &planned[i]
			of.Number = p.Partition
			stored, _, err := positionOf(ctx, tx, of, p.Start, p.TopicID, "")
			if err != nil {
				return err
			}
			if now := p.changed(change, stored); now != p.StatusChanged {
				return &projection.RefusedPositionError{Reason: fmt.Sprintf(
					"partition %d has changed since the plan: it is %s now (%s); check it and run this again", p.Partition, now.Was, cmp.Or(now.Why, "nothing stops it"))}
			}
			actions[i] = Action{
				Kind: ActionResume, Group: of.Group, Projection: of.Projection, Topic: of.Topic, Partition: of.Number, Offset: stored.Next, Actor: actor, Reason: reason,
				Result: fmt.Sprintf("from %s to %s", p.Was, p.Is),
			}
			if change.Pause != "" {
				actions[i].Kind = ActionPause
				tx.Queue(sql.Query("position_pause"), of.Group, of.Topic, of.Number, change.Pause)
				continue
			}
			if p.Through != nil {
				actions[i].Result += fmt.Sprintf(", through %d", *p.Through)
			}
			tx.Queue(sql.Query("position_resume"), of.Group, of.Topic, of.Number, p.Through)
		}
		QueueActions(tx, actions)
		return tx.Send(ctx)
	})
	if err != nil {
		return fmt.Errorf("change what partitions do: %w", err)
	}
	return nil
}

// PositionSet is the position that an operator wants for a partition, and the partition's log.
type PositionSet struct {
	Partition int32
	Want      projection.Reposition
	Log       projection.Log
}

// PlanPositions returns what SetPositions would do now.
func PlanPositions(ctx context.Context, pool *pgxpool.Pool, of Partition, sets []PositionSet) ([]projection.Repositioned, error) {
	known, err := knownPositions(ctx, pool, of)
	if err != nil {
		return nil, err
	}
	plans := make([]projection.Repositioned, len(sets))
	for i := range sets {
		if plans[i], err = sets[i].plan(known[sets[i].Partition]); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

func (s *PositionSet) plan(stored *projection.StoredPosition) (projection.Repositioned, error) {
	plan, err := s.Want.Plan(stored, s.Log)
	if refused, is := errors.AsType[*projection.RefusedPositionError](err); is {
		err = &projection.RefusedPositionError{Reason: fmt.Sprintf("partition %d: %s", s.Partition, refused.Reason)}
	}
	return plan, err
}

// SetPositions sets positions of a group's topic, all of them or none. It increases their fences
// and records who did this and why. It returns a *projection.RefusedPositionError if one of the
// positions is not allowed. The function check may be nil. It is called while the inbox cannot be
// pruned, so that its result is still true at the commit.
func SetPositions(
	ctx context.Context, pool *pgxpool.Pool, of Partition, sets []PositionSet, check func(context.Context, Querier) error, actor, reason string,
) ([]projection.Repositioned, error) {
	slices.SortFunc(sets, func(a, b PositionSet) int { return cmp.Compare(a.Partition, b.Partition) }) // all transactions lock positions in this order
	var plans []projection.Repositioned
	err := TransactOnce(ctx, pool, func(ctx context.Context, tx *Tx) error {
		plans = plans[:0]
		if check != nil {
			tx.Queue(sql.Query("inbox_prune_wait"))
			if err := tx.Send(ctx); err != nil {
				return err
			}
			if err := check(ctx, tx); err != nil {
				return err
			}
		}
		actions := make([]Action, len(sets))
		for i := range sets {
			of.Number = sets[i].Partition
			plan, err := setPosition(ctx, tx, of, &sets[i])
			if err != nil {
				return err
			}
			plans = append(plans, plan)
			actions[i] = Action{
				Kind: ActionPositionSet, Group: of.Group, Projection: of.Projection, Topic: of.Topic, Partition: of.Number, Offset: plan.To,
				Actor: actor, Reason: reason, Result: fromTo(plan),
			}
		}
		QueueActions(tx, actions)
		return tx.Send(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("set positions: %w", err)
	}
	return plans, nil
}

// setPosition locks a position and sets it. It creates the row if there is none.
func setPosition(ctx context.Context, tx *Tx, p Partition, set *PositionSet) (projection.Repositioned, error) {
	stored, inserted, err := positionOf(ctx, tx, p, set.Log.Start, set.Log.TopicID, "")
	if err != nil {
		return projection.Repositioned{}, err
	}
	known := &stored
	if inserted {
		known = nil
	}
	plan, err := set.plan(known)
	if err != nil {
		return plan, err
	}
	tx.Queue(sql.Query("position_set"), p.Group, p.Topic, p.Number, plan.To, knownTopicID(set.Log.TopicID, stored.TopicID),
		plan.Processed.Offset, plan.Processed.LeaderEpoch, plan.LeaderEpoch)
	return plan, tx.Send(ctx)
}

// fromTo returns the old and the new position, as the audit trail shows them.
func fromTo(plan projection.Repositioned) string {
	if plan.From == nil {
		return fmt.Sprintf("from none to %d", plan.To)
	}
	return fmt.Sprintf("from %d to %d", *plan.From, plan.To)
}

// knownPositions returns the stored positions of a group's topic by partition. It fails if the
// group belongs to another projection.
func knownPositions(ctx context.Context, pool *pgxpool.Pool, of Partition) (map[int32]*projection.StoredPosition, error) {
	if err := CheckGroup(ctx, pool, of.Group, of.Projection); err != nil {
		return nil, err
	}
	stored, err := LoadPositions(ctx, pool, of.Group, of.Topic)
	if err != nil {
		return nil, err
	}
	return projection.ByPartition(stored), nil
}
