package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/sql"
)

// Partition names a partition as one consumer group reads it for its projection.
type Partition struct {
	Projection string
	Group      string
	Topic      string
	Number     int32
}

// GroupTakenError says that a consumer group belongs to another projection: to go on
// at its position would leave out what that one has consumed.
type GroupTakenError struct {
	Group, By, Wanted string
}

// Error implements error and names the remedy.
func (e *GroupTakenError) Error() string {
	return fmt.Sprintf("consumer group %q belongs to projection %s: give %s a --group (KAFKA_GROUP) of its own", e.Group, e.By, e.Wanted)
}

// SafeText vouches for the text: it holds no data.
func (e *GroupTakenError) SafeText() string { return e.Error() }

// ClaimPosition makes the caller the partition's owner and answers where to resume.
// Whoever owned it before is fenced from then on. projection.ErrFenced means that it
// was to be taken back to an offset of Kafka that is no longer true, a
// *projection.StoppedError that a person has to set it first. How the row was found is
// known with an error, too, unless it is none of these and came before that.
func ClaimPosition(ctx context.Context, pool *pgxpool.Pool, p Partition, c projection.Claim) (projection.Position, error) {
	var claimed projection.Position
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql.Query("position_insert"), p.Group, p.Topic, p.Number, c.LogStart, c.TopicID, c.Owner, p.Projection)
		if err != nil {
			return err
		}
		var (
			stored  projection.StoredPosition
			stopped *string
			runs    string
		)
		err = tx.QueryRow(ctx, sql.Query("position_lock"), p.Group, p.Topic, p.Number).
			Scan(&stored.Next, &stored.LeaderEpoch, &stored.JudgedUntil, &stored.JudgedEpoch,
				&stored.TopicID, &stored.Owner, &stored.Fence, &stopped, &runs)
		if err != nil {
			return err
		}
		claimed.Found = &projection.Stood{Next: stored.Next, Fence: stored.Fence}
		if runs != p.Projection {
			return &GroupTakenError{Group: p.Group, By: runs, Wanted: p.Projection}
		}
		if !projection.SameTopic(stored.TopicID, c.TopicID) {
			return projection.ErrTopicRecreated
		}
		if stopped != nil {
			return &projection.StoppedError{Reason: *stopped, Position: stored.Position}
		}
		next := c.Resume(stored.Next)
		if next < stored.Next && c.Fence != 0 && c.Fence != stored.Fence {
			return projection.ErrFenced
		}
		if err := rememberSource(ctx, tx, p, c.TopicID); err != nil {
			return err
		}
		stored.Found = claimed.Found
		claimed = stored.Position
		claimed.Next = next
		return tx.QueryRow(ctx, sql.Query("position_claim"), p.Group, p.Topic, p.Number,
			claimed.Next, claimed.LeaderEpoch, c.Owner, knownTopicID(c.TopicID, stored.TopicID)).Scan(&claimed.Fence)
	})
	if err != nil {
		return projection.Position{Found: claimed.Found}, fmt.Errorf("claim the position: %w", err)
	}
	return claimed, nil
}

// knownTopicID is what is known of a topic's id: brokers that know none take back no id,
// and one that they have given the topic since is taken over.
func knownTopicID(now, stored string) string {
	if slices.Contains(projection.UnknownTopicIDs(), now) {
		return stored
	}
	return now
}

// StopPosition stops the partition, for every owner and until a person sets its position,
// if its owner is still the one of this fence; else it answers projection.ErrFenced.
func StopPosition(ctx context.Context, pool *pgxpool.Pool, p Partition, fence int64, reason string) error {
	tag, err := pool.Exec(ctx, sql.Query("position_stop"), p.Group, p.Topic, p.Number, fence, reason)
	if err != nil {
		return fmt.Errorf("stop the partition: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return projection.ErrFenced
	}
	return nil
}

// CheckGroup answers a *GroupTakenError when the consumer group has run another
// projection in this database.
func CheckGroup(ctx context.Context, pool *pgxpool.Pool, group, wanted string) error {
	var runs string
	err := pool.QueryRow(ctx, sql.Query("group_projection"), group).Scan(&runs)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look up the consumer group: %w", err)
	case runs != wanted:
		return &GroupTakenError{Group: group, By: runs, Wanted: wanted}
	}
	return nil
}

// LoadPositions reads the stored positions of a group's topic.
func LoadPositions(ctx context.Context, db querier, group, topic string) ([]projection.StoredPosition, error) {
	rows, err := db.Query(ctx, sql.Query("position_load"), group, topic)
	if err != nil {
		return nil, fmt.Errorf("load positions: %w", err)
	}
	positions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (projection.StoredPosition, error) {
		var (
			r       projection.StoredPosition
			stopped *string
		)
		err := row.Scan(&r.Partition, &r.Next, &r.LeaderEpoch, &r.JudgedUntil, &r.JudgedEpoch,
			&r.TopicID, &r.Owner, &r.Fence, &stopped)
		if stopped != nil {
			r.StoppedReason = *stopped
		}
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("load positions: %w", err)
	}
	return positions, nil
}

// verifyPosition answers projection.ErrFenced unless the position is where its
// owner knows it to be.
func verifyPosition(ctx context.Context, pool *pgxpool.Pool, p Partition, pos projection.Position) error {
	var held bool
	err := pool.QueryRow(ctx, sql.Query("position_held"), p.Group, p.Topic, p.Number, pos.Fence, pos.Next).Scan(&held)
	if err != nil {
		return fmt.Errorf("verify the position: %w", err)
	}
	if !held {
		return projection.ErrFenced
	}
	return nil
}

// moveArgs are the arguments of position_move.
func moveArgs(p Partition, pos projection.Position, next projection.NextOffset) []any {
	moved := pos.Moved(next)
	return []any{
		p.Group, p.Topic, p.Number, pos.Fence, pos.Next,
		moved.Next, moved.LeaderEpoch, moved.JudgedUntil, moved.JudgedEpoch,
	}
}
