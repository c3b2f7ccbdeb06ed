package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/sql"
)

// The actions of people who pause and resume partitions.
const (
	ActionPause  ActionKind = "pause"
	ActionResume ActionKind = "resume"
)

// PartitionLog is a partition and where its log is now.
type PartitionLog struct {
	Partition int32
	TopicID   string
	Start     int64
}

// PlanStandings returns what the partitions would do if ChangeStandings were called now, in
// their order.
func PlanStandings(
	ctx context.Context, pool *pgxpool.Pool, of Partition, logs []PartitionLog, change projection.StandingChange,
) ([]projection.Standing, error) {
	if err := CheckGroup(ctx, pool, of.Group, of.Projection); err != nil {
		return nil, err
	}
	stored, err := LoadPositions(ctx, pool, of.Group, of.Topic)
	if err != nil {
		return nil, err
	}
	standings := make([]projection.Standing, len(logs))
	for i := range logs {
		var known projection.StoredPosition // where there is none yet, it stands nowhere
		if at := slices.IndexFunc(stored, func(s projection.StoredPosition) bool { return s.Partition == logs[i].Partition }); at >= 0 {
			known = stored[at]
		}
		changed := change.Of(known)
		standings[i] = changed.Standing()
	}
	return standings, nil
}

// ChangeStandings pauses or resumes partitions of a group's topic, all of them or none,
// raises their fences and records who did it and why. Where a partition has no position
// yet, it gets one at the start of its log, as by its first owner. It returns what they do
// then, in the order of their numbers.
func ChangeStandings(
	ctx context.Context, pool *pgxpool.Pool, of Partition, logs []PartitionLog, change projection.StandingChange, actor, reason string,
) ([]projection.Standing, error) {
	slices.SortFunc(logs, func(a, b PartitionLog) int { return cmp.Compare(a.Partition, b.Partition) }) // as everybody locks them
	var standings []projection.Standing
	err := transactOnce(ctx, pool, func(ctx context.Context, tx *Tx) error {
		standings = standings[:0]
		actions := make([]Action, len(logs))
		for i := range logs {
			of.Number = logs[i].Partition
			stored, _, err := positionOf(ctx, tx, of, logs[i].Start, logs[i].TopicID)
			if err != nil {
				return err
			}
			changed := change.Of(stored)
			standings = append(standings, changed.Standing())
			actions[i] = Action{
				Kind: ActionResume, Topic: of.Topic, Partition: of.Number, Offset: stored.Next, Actor: actor, Reason: reason,
				Result: fmt.Sprintf("from %s to %s", stored.Standing(), changed.Standing()),
			}
			if change.Pause != "" {
				actions[i].Kind = ActionPause
				tx.Queue(sql.Query("position_pause"), of.Group, of.Topic, of.Number, change.Pause)
				continue
			}
			if change.Through != nil {
				actions[i].Result += fmt.Sprintf(", through %d", *change.Through)
			}
			tx.Queue(sql.Query("position_resume"), of.Group, of.Topic, of.Number, change.Through)
		}
		queueActions(tx, actions)
		return tx.Send(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("change what partitions do: %w", err)
	}
	return standings, nil
}

// positionOf locks a position, or makes it.
func positionOf(ctx context.Context, tx *Tx, p Partition, start int64, topicID string) (stored projection.StoredPosition, inserted bool, err error) {
	tx.Queue(sql.Query("position_insert"), p.Group, p.Topic, p.Number, start, topicID, "", p.Projection).
		Exec(func(tag pgconn.CommandTag) error { inserted = tag.RowsAffected() > 0; return nil })
	if err := tx.Send(ctx); err != nil {
		return projection.StoredPosition{}, false, err
	}
	stored, err = lockPosition(ctx, tx, p)
	return stored, inserted, err
}
