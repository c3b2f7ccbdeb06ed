package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel/citus"
	"projector/sql"
)

// Partition names a partition as one consumer group reads it for its projection.
type Partition struct {
	Projection string
	Group      string
	Topic      string
	Number     int32
	Mapping    Mapping // how records are read; nil: not known
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

// ClaimPosition makes the caller the partition's owner and returns where to resume.
// The owner before is fenced from then on. projection.ErrFenced means that it
// was to be taken back to an offset of Kafka that is no longer true, a
// *projection.StoppedError that a person has to set or resume it first. How the row was found is
// known with an error, too, unless it is none of these and came before that.
func ClaimPosition(ctx context.Context, pool *pgxpool.Pool, p Partition, c projection.Claim) (projection.Position, error) {
	var (
		claimed     projection.Position
		distributed bool
	)
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var stored projection.StoredPosition
		b := &pgx.Batch{}
		b.Queue(sql.Query("position_insert"), p.Group, p.Topic, p.Number, c.LogStart, c.TopicID, c.Owner, p.Projection, p.meaning())
		b.Queue(sql.Query("position_lock"), p.Group, p.Topic, p.Number).Query(func(rows pgx.Rows) (err error) {
			stored, err = ofProjection(rows, p)
			return err
		})
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		claimed.Found = &projection.Stood{Next: stored.Next, Fence: stored.Fence}
		if !projection.SameTopic(stored.TopicID, c.TopicID) {
			return projection.ErrTopicRecreated
		}
		if stopped := stored.Stands(); stopped != nil {
			return stopped
		}
		if refused := p.refuses(&stored); refused != nil {
			return refused
		}
		if stored.SetByHand {
			c.Committed = projection.NoOffset
		}
		next := c.Resume(stored.Next)
		if next < stored.Next && c.Fence != 0 && c.Fence != stored.Fence {
			return projection.ErrFenced
		}
		found := claimed.Found
		claimed = stored.Position
		claimed.Next, claimed.Found = next, found
		b = &pgx.Batch{}
		// What is remembered outlives the position, which may be deleted or set by hand.
		b.Queue(sql.Query("source_remember"), p.Projection, p.Topic, c.TopicID)
		b.Queue(sql.Query("position_claim"), p.Group, p.Topic, p.Number,
			claimed.Next, claimed.LeaderEpoch, c.Owner, knownTopicID(c.TopicID, stored.TopicID)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&claimed.Fence, &distributed) })
		return tx.SendBatch(ctx, b).Close()
	})
	if err == nil && distributed {
		err = citus.Settle(ctx, pool)
	}
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

// lockPosition reads a partition's position and locks it.
func lockPosition(ctx context.Context, db Querier, p Partition) (projection.StoredPosition, error) {
	rows, err := db.Query(ctx, sql.Query("position_lock"), p.Group, p.Topic, p.Number)
	if err != nil {
		return projection.StoredPosition{}, err
	}
	return ofProjection(rows, p)
}

// ofProjection reads the row of position_lock, which has to be of the partition's projection.
func ofProjection(rows pgx.Rows, p Partition) (projection.StoredPosition, error) {
	stored, err := pgx.CollectExactlyOneRow(rows, scanPosition)
	if err == nil && stored.Projection != p.Projection {
		err = &GroupTakenError{Group: p.Group, By: stored.Projection, Wanted: p.Projection}
	}
	return stored, err
}

// scanPosition scans the columns of position_load and position_lock.
func scanPosition(row pgx.CollectableRow) (s projection.StoredPosition, err error) {
	var window []byte
	err = row.Scan(&s.Partition, &s.Next, &s.LeaderEpoch, &s.ProcessedUntil, &s.ProcessedEpoch, &s.TopicID, &s.Owner, &s.Fence,
		&s.StoppedReason, &s.StoppedEnd, &s.HaltedReason, &s.SetByHand,
		&window, &s.Breaker.Through, &s.Breaker.Reason, &s.PausedReason, &s.Projection, &s.Mapping)
	s.Breaker.Window = string(window)
	return s, err
}

// StopPosition stops the partition, for every owner and until a person sets its position,
// if its owner is still the one of this fence; else it returns projection.ErrFenced. end is
// up to where the log still is what was consumed, projection.NoOffset if that is not known.
func StopPosition(ctx context.Context, pool *pgxpool.Pool, p Partition, fence, end int64, reason string) error {
	return underFence(ctx, pool, "position_stop", p, fence, reason, end)
}

// HaltPosition notes for people why the partition's owner, the one of this fence, does not
// go on. It stops no consumer.
func HaltPosition(ctx context.Context, pool *pgxpool.Pool, p Partition, fence int64, reason string) error {
	return underFence(ctx, pool, "position_halt", p, fence, reason)
}

// PositionCommitted notes that Kafka's committed offset has been brought to where a person has
// set the position.
func PositionCommitted(ctx context.Context, pool *pgxpool.Pool, p Partition, fence int64) error {
	return underFence(ctx, pool, "position_committed", p, fence)
}

// underFence changes a position row; projection.ErrFenced if the fence is another.
func underFence(ctx context.Context, pool *pgxpool.Pool, query string, p Partition, fence int64, more ...any) error {
	tag, err := pool.Exec(ctx, sql.Query(query), append([]any{p.Group, p.Topic, p.Number, fence}, more...)...)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	if tag.RowsAffected() == 0 {
		return projection.ErrFenced
	}
	return nil
}

// CheckGroup returns a *GroupTakenError when the consumer group has run another
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

// LoadGroups reads the names of the consumer groups that have positions of a projection.
func LoadGroups(ctx context.Context, pool *pgxpool.Pool, name string) ([]string, error) {
	rows, err := pool.Query(ctx, sql.Query("group_names"), name)
	if err != nil {
		return nil, fmt.Errorf("load the consumer groups: %w", err)
	}
	groups, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("load the consumer groups: %w", err)
	}
	return groups, nil
}

// LoadPositions reads the stored positions of a group's topic.
func LoadPositions(ctx context.Context, db Querier, group, topic string) ([]projection.StoredPosition, error) {
	rows, err := db.Query(ctx, sql.Query("position_load"), group, topic)
	if err != nil {
		return nil, fmt.Errorf("load positions: %w", err)
	}
	positions, err := pgx.CollectRows(rows, scanPosition)
	if err != nil {
		return nil, fmt.Errorf("load positions: %w", err)
	}
	return positions, nil
}

// VerifyPosition returns projection.ErrFenced unless the position is where its
// owner knows it to be.
func VerifyPosition(ctx context.Context, pool *pgxpool.Pool, p Partition, pos projection.Position) error {
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

// Move is that of one partition's position, from what its owner knows.
type Move struct {
	Partition Partition
	From, To  projection.Position
}

// moveArgs are the arguments of position_move. All moves are of one consumer group and topic.
func moveArgs(moves []Move) []any {
	n := len(moves)
	var (
		partitions                  = make([]int32, n)
		fences, stood, next, judged = make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
		epochs, judgedEpochs        = make([]int32, n), make([]int32, n)
		windows                     = make([][]byte, n)
		reasons                     = make([]string, n)
	)
	for i := range moves {
		from, to := &moves[i].From, &moves[i].To
		partitions[i], fences[i], stood[i] = moves[i].Partition.Number, from.Fence, from.Next
		next[i], epochs[i] = to.Next, to.LeaderEpoch
		judged[i], judgedEpochs[i] = to.ProcessedUntil, to.ProcessedEpoch
		windows[i], reasons[i] = []byte(to.Breaker.Window), to.Breaker.Reason
	}
	of := moves[0].Partition
	return []any{of.Group, of.Topic, partitions, fences, stood, next, epochs, judged, judgedEpochs, windows, reasons}
}

// LoadSourceIDs reads the ids, as Kafka has them, under which a projection has ever taken
// in a topic. Where brokers have no ids, there is none.
func LoadSourceIDs(ctx context.Context, db Querier, name, topic string) ([]string, error) {
	rows, err := db.Query(ctx, sql.Query("source_ids"), name, topic)
	if err != nil {
		return nil, fmt.Errorf("load the sources: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("load the sources: %w", err)
	}
	return ids, nil
}
