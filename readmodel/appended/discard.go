package appended

import (
	"context"
	"fmt"

	"projector/projection"
	"projector/readmodel"
	"projector/sql"
)

// Discarder discards dead letters. The replayers of the projections of this package implement it.
type Discarder interface {
	// Discard records in the audit trail that dead letters are discarded. It leaves out the dead
	// letters whose event was applied, and returns which these are. Each dead letter has a subject and
	// an action. The function applied says whether a status means that the event of a dead letter was
	// applied.
	Discard(ctx context.Context, subjects []readmodel.Subject, actions []readmodel.Action,
		applied func(n int, s projection.ReplayStatus) bool) (passed []bool, err error)
}

var _ Discarder = (*replayer)(nil)

// Discard implements Discarder.
//
// Consumers read the discards when they claim a partition. So Discard increases the fences of the
// partitions. A consumer that has not yet written one of these events then claims again, and leaves
// the event out. A replay does not change the position of a partition, so a lock makes Discard and
// replays wait for each other.
func (l *replayer) Discard(
	ctx context.Context, subjects []readmodel.Subject, actions []readmodel.Action, applied func(n int, s projection.ReplayStatus) bool,
) (passed []bool, err error) {
	var (
		topics     []string
		partitions []int32
	)
	for i := range actions {
		if a := &actions[i]; a.Topic != "" {
			topics, partitions = append(topics, a.Topic), append(partitions, a.Partition)
		}
	}
	err = readmodel.TransactOnce(ctx, l.cfg.Pool, func(attempt context.Context, tx *readmodel.Tx) error {
		// The lock comes before the fences. Otherwise a replay that waits for a consumer, a consumer that
		// waits for its fence, and this transaction could wait for each other.
		tx.Queue(sql.Query("discards_begin"), l.kind.Label)
		if len(topics) > 0 {
			tx.Queue(sql.Query("fence"), l.kind.Label, topics, partitions)
		}
		if err := tx.Send(attempt); err != nil {
			return err
		}
		statuses, err := l.statuses(attempt, tx, subjects)
		if err != nil {
			return err
		}
		var left []readmodel.Action
		passed = make([]bool, len(subjects))
		for i := range statuses {
			if passed[i] = applied(i, statuses[i]); !passed[i] {
				left = append(left, actions[i])
			}
		}
		readmodel.QueueActions(tx, left)
		return tx.Send(attempt)
	})
	if err != nil {
		return nil, fmt.Errorf("discard: %w", err)
	}
	return passed, nil
}
