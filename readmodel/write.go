package readmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/failpoint"
	"projector/projection"
	"projector/sql"
)

// Verify answers projection.ErrStale unless the accounts are at the versions the verdicts of
// the dead letters rest on.
func Verify(ctx context.Context, db querier, bases []projection.Base) error {
	if len(bases) == 0 {
		return nil
	}
	ids := make([]string, len(bases))
	for i, b := range bases {
		ids[i] = b.AccountID
	}
	versions, err := loadVersions(ctx, db, ids)
	if err != nil {
		return err
	}
	for _, b := range bases {
		version, exists := versions[b.AccountID]
		if exists != b.Exists || (exists && version != b.Version) {
			return projection.ErrStale
		}
	}
	return nil
}

// Write makes the changes durable and moves the partition's position to next, in
// one transaction of two round trips. ErrFenced and ErrStale mean that nothing was
// written. When the reply to an earlier COMMIT of the same move was lost, it finds
// the position where it was to go and answers nil.
func Write(ctx context.Context, pool *pgxpool.Pool, p Partition, pos projection.Position, next projection.NextOffset, c *projection.Changes) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	defer conn.Release() // a connection that is still in a transaction is closed by it
	// On this connection only: all others may be waiting for the same lock.
	err = writeTx(ctx, conn.Conn(), p, pos, next, c)
	if errors.Is(err, projection.ErrFenced) && alreadyMoved(ctx, conn.Conn(), p, pos, next) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func writeTx(ctx context.Context, conn *pgx.Conn, p Partition, pos projection.Position, next projection.NextOffset, c *projection.Changes) error {
	var moved int64
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	queueMove(b, p, pos, next, &moved)
	err := sendChanges(ctx, conn, b, c)
	switch {
	case err != nil && !errors.Is(err, projection.ErrStale):
	case moved != 1:
		err = projection.ErrFenced
	case err == nil:
		return commit(ctx, conn)
	}
	// Best effort: a connection that cannot roll back is closed on release.
	_, _ = conn.Exec(ctx, "ROLLBACK")
	return err
}

// commit ends a transaction that has done its work.
func commit(ctx context.Context, conn *pgx.Conn) error {
	failpoint.Here(failpoint.BeforeCommit)
	_, err := conn.Exec(ctx, "COMMIT")
	if err == nil {
		failpoint.Here(failpoint.AfterCommit)
	}
	return err
}

// session is what writing needs: a connection or a transaction.
type session interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// upsertSlice is how many rows one statement upserts. PostgreSQL keeps what it
// unnests in work_mem, by default 4 MB, and beyond that in a file.
const upsertSlice = 8192

// sendChanges sends the writes of a flush or a repair behind what is queued already.
// projection.ErrStale means that a row was not written because it is beyond the
// version it was to get.
func sendChanges(ctx context.Context, db session, b *pgx.Batch, c *projection.Changes) error {
	var upserted int64
	send := func() error {
		err := db.SendBatch(ctx, b).Close()
		b = &pgx.Batch{}
		return err
	}
	parks := true // behind the first rows, for accounts are locked first, as in repairs
	for rows := range c.RowChunks(upsertSlice) {
		queueUpsert(b, rows, &upserted)
		if parks {
			queueHolds(b, c)
			parks = false
		}
		if err := send(); err != nil {
			return err
		}
	}
	if parks {
		queueHolds(b, c)
	}
	if b.Len() > 0 {
		if err := send(); err != nil {
			return err
		}
	}
	if upserted != int64(c.NumRows()) {
		return projection.ErrStale
	}
	return nil
}

// queueHolds adds what concerns parked events.
func queueHolds(b *pgx.Batch, c *projection.Changes) {
	if len(c.Passed) > 0 {
		ids, versions := make([]string, len(c.Passed)), make([]int64, len(c.Passed))
		for i, p := range c.Passed {
			ids[i], versions[i] = p.AccountID, p.Version
		}
		b.Queue(sql.Query("clear_parked"), ids, versions)
		b.Queue(sql.Query("clear_overflow"), ids, versions)
	}
	queueParked(b, c.Parks)
	for _, r := range c.Reclassed {
		b.Queue(sql.Query("reclass_parked"), r.AccountID, r.Version, string(r.Class))
	}
	if len(c.Overflows) > 0 {
		ids := make([]string, len(c.Overflows))
		versions, expected := make([]int64, len(c.Overflows)), make([]int64, len(c.Overflows))
		for i, o := range c.Overflows {
			ids[i], versions[i], expected[i] = o.AccountID, o.Version, o.Expected
		}
		b.Queue(sql.Query("overflow"), ids, versions, expected)
	}
}

// alreadyMoved reports whether the position is where this very writer was moving it.
func alreadyMoved(ctx context.Context, db querier, p Partition, pos projection.Position, next projection.NextOffset) bool {
	if next.Offset == pos.Next {
		return false
	}
	rows, err := LoadPositions(ctx, db, p.Group, p.Topic)
	if err != nil {
		return false
	}
	for _, r := range rows {
		if r.Partition == p.Number {
			return r.Fence == pos.Fence && r.Next == next.Offset
		}
	}
	return false
}
