package accountdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/internal/pace"
	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accounts"
	"projector/readmodel/citus"
)

// VerifyVersions returns projection.ErrStale if an account no longer has the version on which its
// decision is based. It also returns ErrStale if an account that is assumed to be new has parked
// events. Without decisions, it checks nothing.
func VerifyVersions(ctx context.Context, db DB, stored []accounts.StoredVersion, assumed []string) error {
	if len(stored) == 0 {
		return nil
	}
	if parked, err := parkedOf(ctx, db, assumed); err != nil || parked {
		return cmp.Or(err, projection.ErrStale)
	}
	ids := make([]string, len(stored))
	for i, b := range stored {
		ids[i] = b.AccountID
	}
	versions, err := LoadVersions(ctx, db, ids)
	if err != nil {
		return err
	}
	for _, b := range stored {
		version, exists := versions[b.AccountID]
		if exists != b.Exists || (exists && version != b.Version) {
			return projection.ErrStale
		}
	}
	return nil
}

func parkedOf(ctx context.Context, db DB, ids []string) (parked bool, err error) {
	if len(ids) == 0 {
		return false, nil
	}
	err = db.QueryRow(ctx, db.Tables.Query("parked_any")).Scan(&parked)
	if err == nil && parked {
		err = db.QueryRow(ctx, db.Tables.Query("parked_of"), ids).Scan(&parked)
	}
	if err != nil {
		return false, fmt.Errorf("look for parked events: %w", err)
	}
	return parked, nil
}

const (
	// firstSlice is the number of rows in the first statement of a flush. sliceWithin is the
	// intended time of a statement. On a slow server, later statements have fewer rows.
	firstSlice  = 1024
	sliceWithin = time.Second
)

// WriteChanges sends the writes of a flush or a repair, after the queued statements. It returns
// projection.ErrStale if an account no longer has the version from which its changes were computed.
// It also returns ErrStale if an account that is assumed to be new has a row or parked events.
//
// The rows of known accounts are locked in the order of their ids, as in other transactions, so
// that writers do not deadlock. Accounts that only have waiting events come last.
func WriteChanges(ctx context.Context, tx *Tx, c *accounts.Changes) error {
	rows, written, held, parked := 0, int64(0), int64(0), false
	if len(c.Assumed) > 0 {
		tx.Queue(tx.Tables.Query("parked_any")).QueryRow(func(row pgx.Row) error { return row.Scan(&parked) })
	}
	slice := pace.NewSize(firstSlice, readmodel.SliceRows, sliceWithin)
	for chunk := range c.RowChunks(slice.Limit) {
		if err := writeRows(ctx, tx, chunk, &written); err != nil {
			return err
		}
		if rows += len(chunk); rows == c.NumRows() {
			break // the last chunk is sent together with the next statements
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
	queueHeld(tx, c.Unwritten, &held)
	queueParking(tx, c)
	if err := tx.Send(ctx); err != nil {
		return err
	}
	if written != int64(rows) || held != int64(len(c.Unwritten)) {
		return projection.ErrStale
	}
	if !parked {
		return nil
	}
	parked, err := parkedOf(ctx, tx.DB(), c.Assumed)
	if err == nil && parked {
		err = projection.ErrStale
	}
	return err
}

// writeRows queues the write of rows and adds the number of written rows to the parameter written.
// If there are many new rows, they are sent at once, by COPY. With Citus, even a single new row is
// sent by COPY.
func writeRows(ctx context.Context, tx *Tx, rows []accounts.Row, written *int64) error {
	count := func(tag pgconn.CommandTag) error { *written += tag.RowsAffected(); return nil }
	known, fresh := splitRows(rows)
	if len(known) > 0 {
		queueUpdates(tx, known, count)
	}
	switch n := len(fresh); {
	case n >= readmodel.CopyLeast && tx.Copies, n > 0 && len(tx.shards()) > 0: // Citus allows one INSERT … SELECT into a table at a time
		*written += int64(n)
		return copyAccounts(ctx, tx, fresh)
	case n > 0:
		tx.Queue(tx.Tables.Query("insert_balance"), BalanceColumns(fresh)...).Exec(count)
	}
	return nil
}

// queueUpdates queues the update of accounts that have a row.
func queueUpdates(tx *Tx, known []accounts.Row, count func(pgconn.CommandTag) error) {
	update, shards := tx.Tables.Query("update_balance"), tx.shards()
	if len(shards) > 0 {
		update = tx.Tables.QueryShard("update_balance")
	}
	for part := range citus.ByShard(shards, known, func(r *accounts.Row) string { return r.AccountID }) {
		tx.Queue(update, append(BalanceColumns(part), storedColumn(part))...).Exec(count)
	}
}

func splitRows(rows []accounts.Row) (known, fresh []accounts.Row) {
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
	known, fresh = make([]accounts.Row, 0, n), make([]accounts.Row, 0, len(rows)-n)
	for i := range rows {
		if rows[i].Exists {
			known = append(known, rows[i])
		} else {
			fresh = append(fresh, rows[i])
		}
	}
	return known, fresh
}

// queueHeld queues a check of accounts that get no new row, but whose versions were used for
// decisions. The parameter unchanged counts the accounts that still have this version.
func queueHeld(tx *Tx, held []accounts.StoredVersion, unchanged *int64) {
	count := func(row pgx.Row) error {
		var n int64
		err := row.Scan(&n)
		*unchanged += n
		return err
	}
	for piece := range slices.Chunk(held, readmodel.SliceRows) {
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
		for len(known) > 0 {
			n := tx.Locked(len(known))
			tx.Queue(tx.Tables.Query("hold_known"), known[:n], versions[:n]).QueryRow(count)
			known, versions = known[n:], versions[n:]
		}
		if len(absent) > 0 {
			tx.Queue(tx.Tables.Query("hold_absent"), absent).QueryRow(count)
		}
	}
}

func queueParking(tx *Tx, c *accounts.Changes) {
	if len(c.Pruned) > 0 {
		ids, versions := make([]string, len(c.Pruned)), make([]int64, len(c.Pruned))
		for i, p := range c.Pruned {
			ids[i], versions[i] = p.AccountID, p.Version
		}
		tx.Queue(tx.Tables.Query("clear_parked"), ids, versions)
		tx.Queue(tx.Tables.Query("clear_overflow"), ids, versions)
	}
	queueParked(tx, "park_instead", c.Replacing)
	queueParked(tx, "park", c.Parks)
	for _, r := range c.Reclassed {
		tx.Queue(tx.Tables.Query("reclass_parked"), r.AccountID, r.Version, string(r.Class))
	}
	if len(c.Overflows) > 0 {
		n := len(c.Overflows)
		ids, topics, partitions := make([]string, n), make([]string, n), make([]int32, n)
		versions, expected, offsets := make([]int64, n), make([]int64, n), make([]int64, n)
		for i, o := range c.Overflows {
			ids[i], versions[i], expected[i] = o.AccountID, o.Version, o.Expected
			topics[i], partitions[i], offsets[i] = o.Place.Topic, o.Place.Partition, o.Place.Offset
		}
		tx.Queue(tx.Tables.Query("overflow"), ids, versions, expected, topics, partitions, offsets)
	}
}
