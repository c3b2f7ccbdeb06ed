package appended

import (
	"context"
	"fmt"

	"projector/projection/event"
	"projector/readmodel"
	"projector/sql"
)

// PlanDiscard implements Replayer.
func (l *replayer) PlanDiscard(ctx context.Context, list []readmodel.Discard) (found []readmodel.Discarded, err error) {
	err = readmodel.Patiently(ctx, func(attempt context.Context) (err error) {
		found, err = l.passed(attempt, l.cfg.Pool, list)
		return err
	})
	return found, err
}

// passed returns which of the events were applied.
func (l *replayer) passed(ctx context.Context, db readmodel.Querier, list []readmodel.Discard) ([]readmodel.Discarded, error) {
	subjects := make([]readmodel.Subject, len(list))
	for i := range list {
		subjects[i] = list[i].Subject
	}
	statuses, err := l.statuses(ctx, db, subjects)
	if err != nil {
		return nil, err
	}
	found := make([]readmodel.Discarded, len(list))
	for i := range list {
		found[i].Passed = list[i].AccountID != "" && list[i].Action.Class != event.VersionConflict && statuses[i].Passed
	}
	return found, nil
}

// Discard implements Replayer. It records the discards in the audit trail, and leaves out the dead
// letters whose event was applied.
//
// Consumers read the discards when they claim a partition. So Discard increases the fences of the
// partitions. A consumer that has not yet written one of these events then claims again, and leaves
// the event out. A replay does not change the position of a partition, so a lock makes Discard and
// replays wait for each other.
func (l *replayer) Discard(ctx context.Context, list []readmodel.Discard) (found []readmodel.Discarded, err error) {
	var (
		topics     []string
		partitions []int32
	)
	for i := range list {
		if a := &list[i].Action; a.Topic != "" {
			topics, partitions = append(topics, a.Topic), append(partitions, a.Partition)
		}
	}
	err = readmodel.TransactOnce(ctx, l.cfg.Pool, func(attempt context.Context, tx *readmodel.Tx) (err error) {
		// The lock comes before the fences. Otherwise a replay that waits for a consumer, a consumer that
		// waits for its fence, and this transaction could wait for each other.
		tx.Queue(sql.Query("discards_begin"), l.kind.Label)
		if len(topics) > 0 {
			readmodel.QueueFence(tx, l.kind.Label, topics, partitions)
		}
		if err := tx.Send(attempt); err != nil {
			return err
		}
		if found, err = l.passed(attempt, tx, list); err != nil {
			return err
		}
		var left []readmodel.Action
		for i := range list {
			if !found[i].Passed {
				left = append(left, list[i].Action)
			}
		}
		readmodel.QueueActions(tx, left)
		return tx.Send(attempt)
	})
	if err != nil {
		return nil, fmt.Errorf("discard: %w", err)
	}
	return found, nil
}
