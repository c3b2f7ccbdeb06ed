package readmodel

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel/citus"
	"projector/sql"
)

// Partition identifies a partition of a topic, read by one consumer group for one projection.
type Partition struct {
	Projection string
	Group      string
	Topic      string
	Number     int32
	Mapping    Mapping // how records are decoded; may be nil
}

// ClaimPosition makes the caller the partition's owner and returns where to resume. The previous
// owner is fenced. It returns projection.ErrFenced if another owner has claimed the row since the
// committed offset was read, and this offset is below the position in the row. It returns a
// *projection.StoppedError if an operator has to set or resume the position first, or if the stored
// mapping reads events differently from the caller's mapping. After an error, the field Found of
// the result is the row before the claim, if the row was read. If the partition is stopped or paused,
// or its topic was created again, only the owner is stored.
func ClaimPosition(ctx context.Context, pool *pgxpool.Pool, p Partition, c projection.Claim) (projection.Position, error) {
	var (
		claimed     projection.Position
		distributed bool
		waits       error // why the partition waits for a person
	)
	err := TransactQueued(ctx, pool, func(tx *Tx) error {
		stored, _, err := positionOf(ctx, tx, p, c.LogStart, c.TopicID, c.Owner)
		if err != nil {
			return err
		}
		claimed.Found = &projection.FencedOffset{Next: stored.Next, Fence: stored.Fence}
		if waits = waitsFor(&stored, c.TopicID); waits != nil {
			tx.Queue(sql.Query("position_owner"), p.Group, p.Topic, p.Number, c.Owner)
			return tx.Send(ctx)
		}
		if refused := p.refuses(ctx, &stored); refused != nil {
			return refused
		}
		next := c.Resume(&stored)
		if next < stored.Next && c.Fence != 0 && c.Fence != stored.Fence {
			return projection.ErrFenced
		}
		found := claimed.Found
		claimed = stored.Position
		claimed.Next, claimed.Found = next, found
		// The topic id is remembered in a separate table, because the position may be deleted or
		// set by hand.
		tx.Queue(sql.Query("source_remember"), p.Projection, p.Topic, c.TopicID)
		tx.Queue(sql.Query("position_claim"), p.Group, p.Topic, p.Number,
			claimed.Next, claimed.LeaderEpoch, c.Owner, knownTopicID(c.TopicID, stored.TopicID)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&claimed.Fence, &distributed) })
		return nil
	})
	if err == nil {
		err = waits
	}
	if err == nil && distributed {
		err = citus.Settle(ctx, pool)
	}
	if err != nil {
		return projection.Position{Found: claimed.Found}, fmt.Errorf("claim the position: %w", err)
	}
	return claimed, nil
}

// waitsFor returns why a partition waits for a person, or nil if it does not wait.
func waitsFor(stored *projection.StoredPosition, topicID string) error {
	stopped := stored.Stopped()
	switch {
	case !projection.SameTopic(stored.TopicID, topicID):
		return projection.ErrTopicRecreated
	case stopped != nil:
		return stopped
	}
	return nil
}

// knownTopicID returns the topic id to store. If the broker has no topic ids, a stored id stays.
// Otherwise the present id of the topic is stored.
func knownTopicID(now, stored string) string {
	if slices.Contains(projection.UnknownTopicIDs(), now) {
		return stored
	}
	return now
}

// positionOf locks a position. If there is no row, it creates one at the start of the log. It
// returns an Unfit if the group has a position of another projection, also of another
// partition. Kafka would divide the partitions between the two projections, and each would lack the
// events of the other's partitions.
func positionOf(ctx context.Context, tx *Tx, p Partition, start int64, topicID, owner string) (stored projection.StoredPosition, inserted bool, err error) {
	other := ""
	tx.Queue(sql.Query("group_name"), p.Group)
	tx.Queue(sql.Query("group_first"))
	tx.Queue(sql.Query("group_projection"), p.Group, p.Projection).Query(func(rows pgx.Rows) (err error) {
		_, err = pgx.ForEachRow(rows, []any{&other}, func() error { return nil })
		return err
	})
	tx.Queue(sql.Query("position_wait"), p.Group, p.Topic, p.Number, p.Projection)
	tx.Queue(sql.Query("position_insert"), p.Group, p.Topic, p.Number, start, topicID, owner, p.Projection, p.meaning()).
		Exec(func(tag pgconn.CommandTag) error { inserted = tag.RowsAffected() > 0; return nil })
	tx.Queue(sql.Query("position_lock"), p.Group, p.Topic, p.Number).Query(func(rows pgx.Rows) (err error) {
		stored, err = pgx.CollectExactlyOneRow(rows, scanPosition)
		return err
	})
	if err := tx.Send(ctx); err != nil {
		return projection.StoredPosition{}, false, err
	}
	if other != "" {
		err = groupTaken(p.Group, other, p.Projection)
	}
	return stored, inserted, err
}

// QueueFence queues the statements that raise the fences of a projection's partitions; see
// fence.sql. If topics is nil, these are all its partitions. While the first statement waits,
// another transaction may insert a position. Only the second statement sees this position. After
// the second statement, a transaction that inserts a position waits; see position_wait.sql.
func QueueFence(tx *Tx, name string, topics []string, partitions []int32) {
	for range 2 {
		tx.Queue(sql.Query("fence"), name, topics, partitions)
	}
}

// scanPosition scans the columns of positions.sql.
func scanPosition(row pgx.CollectableRow) (s projection.StoredPosition, err error) {
	var window []byte
	err = row.Scan(&s.Partition, &s.Next, &s.LeaderEpoch, &s.ProcessedUntil, &s.ProcessedEpoch, &s.TopicID, &s.Owner, &s.Fence,
		&s.StoppedReason, &s.StoppedEnd, &s.HaltedReason, &s.SetByHand,
		&window, &s.Breaker.Through, &s.Breaker.Reason, &s.PausedReason, &s.Projection, &s.Mapping)
	s.Breaker.Window = string(window)
	return s, err
}

// TopicPositions has the positions of the partitions of a topic. Its methods change a row only if its
// fence is unchanged. Otherwise they return projection.ErrFenced.
type TopicPositions struct {
	Pool                     *pgxpool.Pool
	Projection, Group, Topic string
	Mapping                  Mapping
}

// Partition returns a partition of the topic.
func (s TopicPositions) Partition(number int32) Partition {
	return Partition{Projection: s.Projection, Group: s.Group, Topic: s.Topic, Number: number, Mapping: s.Mapping}
}

// Positions reads the stored positions.
func (s TopicPositions) Positions(ctx context.Context) ([]projection.StoredPosition, error) {
	return LoadPositions(ctx, s.Pool, s.Group, s.Topic)
}

// Stop stops a partition for every owner, until an operator sets its position. The parameter end is
// the offset up to which the log still has the consumed records. If this offset is unknown, end is
// projection.NoOffset.
func (s TopicPositions) Stop(ctx context.Context, partition int32, fence, end int64, reason string) error {
	return s.update(ctx, "position_stop", partition, fence, reason, end)
}

// Halt stores why a partition's owner does not continue, so that operators can read it. It does not
// stop any consumer.
func (s TopicPositions) Halt(ctx context.Context, partition int32, fence int64, reason string) error {
	return s.update(ctx, "position_halt", partition, fence, reason)
}

// PositionCommitted stores that the position set by an operator is now committed in Kafka.
func (s TopicPositions) PositionCommitted(ctx context.Context, partition int32, fence int64) error {
	return s.update(ctx, "position_committed", partition, fence)
}

func (s TopicPositions) update(ctx context.Context, query string, partition int32, fence int64, more ...any) error {
	tag, err := s.Pool.Exec(ctx, sql.Query(query), append([]any{s.Group, s.Topic, partition, fence}, more...)...)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	if tag.RowsAffected() == 0 {
		return projection.ErrFenced
	}
	return nil
}

// CheckGroup returns an Unfit if the consumer group has positions of another projection in
// this database. Continuing at these positions would skip the records that the group has consumed.
func CheckGroup(ctx context.Context, pool *pgxpool.Pool, group, wanted string) error {
	other, err := OtherProjection(ctx, pool, group, wanted)
	if err != nil || other == "" {
		return err
	}
	return groupTaken(group, other, wanted)
}

// OtherProjection returns another projection than the wanted one of which the consumer group has
// positions, or "".
func OtherProjection(ctx context.Context, pool *pgxpool.Pool, group, wanted string) (string, error) {
	names, err := Texts(ctx, pool, "look up the consumer group", "group_projection", group, wanted)
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}

func groupTaken(group, by, wanted string) error {
	return Unfit(fmt.Sprintf("consumer group %q belongs to projection %s: give %s a --group (KAFKA_GROUP) of its own", group, by, wanted))
}

// LoadGroups reads the names of the consumer groups that have positions of a projection.
func LoadGroups(ctx context.Context, pool *pgxpool.Pool, name string) ([]string, error) {
	return Texts(ctx, pool, "load the consumer groups", "group_names", name)
}

// LoadPositions reads the stored positions of a group's topic.
func LoadPositions(ctx context.Context, db Querier, group, topic string) ([]projection.StoredPosition, error) {
	return Collect(ctx, db, scanPosition, "load positions", sql.Query("position_load"), group, topic)
}

// VerifyPosition returns projection.ErrFenced if the position row does not have the owner's offset
// and fence.
func VerifyPosition(ctx context.Context, pool *pgxpool.Pool, p Partition, pos projection.Position) error {
	held, err := One[bool](ctx, pool, "verify the position", "position_held", p.Group, p.Topic, p.Number, pos.Fence, pos.Next)
	if err == nil && !held {
		err = projection.ErrFenced
	}
	return err
}

// Move is the change of one partition's position. From is the position that its owner knows.
type Move struct {
	Partition Partition
	From, To  projection.Position
}

// moveArgs returns the arguments of position_move. All moves have the same consumer group and
// topic.
func moveArgs(moves []Move) []any {
	n := len(moves)
	var (
		partitions      = NewColumn(pgtype.Int4OID, n, 4)
		fences          = NewColumn(pgtype.Int8OID, n, 8)
		fromOffsets     = NewColumn(pgtype.Int8OID, n, 8)
		next            = NewColumn(pgtype.Int8OID, n, 8)
		epochs          = NewColumn(pgtype.Int4OID, n, 4)
		processed       = NewColumn(pgtype.Int8OID, n, 8)
		processedEpochs = NewColumn(pgtype.Int4OID, n, 4)
		windows         = NewColumn(pgtype.ByteaOID, n, 8)
		reasons         = NewColumn(pgtype.TextOID, n, 0)
	)
	for i := range moves {
		from, to := &moves[i].From, &moves[i].To
		partitions.Int4(moves[i].Partition.Number)
		fences.Int8(from.Fence)
		fromOffsets.Int8(from.Next)
		next.Int8(to.Next)
		epochs.Int4(to.LeaderEpoch)
		processed.Int8(to.ProcessedUntil)
		processedEpochs.Int4(to.ProcessedEpoch)
		windows.Text(to.Breaker.Window)
		reasons.Text(Storable(to.Breaker.Reason))
	}
	of := moves[0].Partition
	return append([]any{of.Group, of.Topic}, ColumnArgs(partitions, fences, fromOffsets, next, epochs, processed, processedEpochs, windows, reasons)...)
}

// LoadSourceIDs reads the Kafka ids that a topic had when a projection consumed from it. A topic
// that was deleted and created again has several ids. There are none if the brokers have no topic
// ids.
func LoadSourceIDs(ctx context.Context, db Querier, name, topic string) ([]string, error) {
	return Texts(ctx, db, "load the sources", "source_ids", name, topic)
}
