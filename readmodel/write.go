package readmodel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/pace"
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
// written; behind any other error the COMMIT may have taken place, which the next claim
// tells.
func Write(ctx context.Context, pool *pgxpool.Pool, p Partition, pos projection.Position, next projection.NextOffset, c *projection.Changes) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	defer conn.Release() // a connection that is still in a transaction is closed by it
	tx := begin(conn.Conn())
	tx.move(p, pos, next)
	if err := tx.end(ctx, writeChanges(ctx, tx, c)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

const (
	// upsertSlice is how many rows one statement writes at most. PostgreSQL keeps what
	// it unnests in work_mem, by default 4 MB, and beyond that in a file.
	upsertSlice = 8192
	// firstSlice is how many the first statement of a flush writes, and sliceWithin how
	// long one is to take: a server that is slow shows it, and that it is alive.
	firstSlice  = 1024
	sliceWithin = time.Second
)

// writeChanges sends the writes of a flush or a repair behind what is queued already.
// projection.ErrStale means that an account is not at the version its changes were
// made of.
//
// Rows are locked first and in the order of their accounts, as everywhere. The accounts
// that are held and get no row come behind them, so they are never waited for.
func writeChanges(ctx context.Context, tx *Tx, c *projection.Changes) error {
	rows, written, held := 0, int64(0), int64(0)
	slice := pace.NewSize(firstSlice, upsertSlice, sliceWithin)
	for chunk := range c.RowChunks(slice.Limit) {
		queueRows(tx, chunk, &written)
		if rows += len(chunk); rows == c.NumRows() {
			break // it goes with what follows
		}
		begun := time.Now()
		if err := tx.Send(ctx); err != nil {
			return err
		}
		if written != int64(rows) {
			return projection.ErrStale
		}
		pace.Answered(ctx, len(chunk))
		slice.Wrote(len(chunk), time.Since(begun))
	}
	queueHeld(tx, c.Held, &held)
	queueParking(tx, c)
	if err := tx.Send(ctx); err != nil {
		return err
	}
	if written != int64(rows) || held != int64(len(c.Held)) {
		return projection.ErrStale
	}
	return nil
}

// queueRows adds the write of rows, and to written how many were written.
func queueRows(tx *Tx, rows []projection.Row, written *int64) {
	count := func(tag pgconn.CommandTag) error { *written += tag.RowsAffected(); return nil }
	known, fresh := splitRows(rows)
	if len(known) > 0 {
		tx.Queue(sql.Query("update_balance"), append(balanceColumns(known), baseColumn(known))...).Exec(count)
	}
	if len(fresh) > 0 {
		tx.Queue(sql.Query("insert_balance"), balanceColumns(fresh)...).Exec(count)
	}
}

// splitRows tells accounts that have a row from those that have none yet, in order.
func splitRows(rows []projection.Row) (known, fresh []projection.Row) {
	n := 0
	for i := range rows {
		if rows[i].Exists {
			n++
		}
	}
	switch n {
	case len(rows):
		return rows, nil
	case 0:
		return nil, rows
	}
	known, fresh = make([]projection.Row, 0, n), make([]projection.Row, 0, len(rows)-n)
	for i := range rows {
		if rows[i].Exists {
			known = append(known, rows[i])
		} else {
			fresh = append(fresh, rows[i])
		}
	}
	return known, fresh
}

// queueHeld adds the check of accounts of which something is parked and that get no
// row, and to held how many are as they were when that was decided.
func queueHeld(tx *Tx, held []projection.Base, as *int64) {
	count := func(row pgx.Row) error {
		var n int64
		err := row.Scan(&n)
		*as += n
		return err
	}
	for piece := range slices.Chunk(held, upsertSlice) {
		var (
			known, absent []string
			versions      []int64
		)
		for i := range piece {
			if piece[i].Exists {
				known, versions = append(known, piece[i].AccountID), append(versions, piece[i].Version)
			} else {
				absent = append(absent, piece[i].AccountID)
			}
		}
		if len(known) > 0 {
			tx.Queue(sql.Query("hold_known"), known, versions).QueryRow(count)
		}
		if len(absent) > 0 {
			tx.Queue(sql.Query("hold_absent"), absent).QueryRow(count)
		}
	}
}

// queueParking adds what concerns parked events.
func queueParking(tx *Tx, c *projection.Changes) {
	if len(c.Passed) > 0 {
		ids, versions := make([]string, len(c.Passed)), make([]int64, len(c.Passed))
		for i, p := range c.Passed {
			ids[i], versions[i] = p.AccountID, p.Version
		}
		tx.Queue(sql.Query("clear_parked"), ids, versions)
		tx.Queue(sql.Query("clear_overflow"), ids, versions)
	}
	queueParked(tx, c.Parks)
	for _, r := range c.Reclassed {
		tx.Queue(sql.Query("reclass_parked"), r.AccountID, r.Version, string(r.Class))
	}
	if len(c.Overflows) > 0 {
		ids := make([]string, len(c.Overflows))
		versions, expected := make([]int64, len(c.Overflows)), make([]int64, len(c.Overflows))
		for i, o := range c.Overflows {
			ids[i], versions[i], expected[i] = o.AccountID, o.Version, o.Expected
		}
		tx.Queue(sql.Query("overflow"), ids, versions, expected)
	}
}
