package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/pace"
	"projector/readmodel"
	"projector/sql"
)

const (
	// pruneRows is the largest number of markers that one transaction deletes. It is small, so that
	// a session that marks one of these messages again waits only for a short time.
	pruneRows = 5000
	// pruneEvery is the interval between prunings.
	pruneEvery = time.Minute
	// pruneWithin limits the time of one pruning. An inbox that was never pruned needs many
	// transactions.
	pruneWithin = time.Hour
	// countEvery is the interval between counts of the markers.
	countEvery = 15 * time.Second
	// CountUpTo is the highest number of markers that is counted exactly.
	CountUpTo = 100_000
)

// pruneBefore returns the time before which markers are deleted. It uses the database's clock, with
// which the markers were written. But if that clock is far ahead of this program's clock, it may
// have jumped, and all markers would seem to be old. Then the program's clock limits the result.
func pruneBefore(database, program time.Time, retention time.Duration) time.Time {
	if latest := program.Add(readmodel.MemoryMargin); database.After(latest) {
		database = latest
	}
	return database.Add(-retention)
}

// Prune deletes the handler's markers that are older than the retention by the database's clock. It
// uses transactions of bounded size, and pauses between them for as long as the last one took. It
// calls observe, which may be nil, after each transaction that deleted markers. While another session
// prunes, each transaction waits for it. No marker is deleted while records of the handler are read
// again. An error does not undo the committed deletions.
func (i Inbox) Prune(ctx context.Context, pool *pgxpool.Pool, retention time.Duration, observe func(int64)) error {
	return i.prune(ctx, pool, lockWaits, retention, observe)
}

// The statements that lock the pruning. If another session prunes, or sets positions, one waits for
// it, and with the other the pruning stops until the next time.
const lockWaits, lockStops = "inbox_prune_wait", "inbox_prune_lock"

// prune does what Prune does, with one of the two locks.
func (i Inbox) prune(ctx context.Context, pool *pgxpool.Pool, lock string, retention time.Duration, observe func(int64)) error {
	now, err := readmodel.One[time.Time](ctx, pool, "prune the inbox", "clock")
	if err != nil {
		return err
	}
	cutoff := pruneBefore(now, time.Now(), retention)
	for {
		start := time.Now()
		deleted, err := i.pruneSome(ctx, pool, lock, cutoff)
		if err != nil {
			return fmt.Errorf("prune the inbox: %w", err)
		}
		if deleted > 0 && observe != nil {
			observe(deleted)
		}
		if deleted < pruneRows {
			return nil
		}
		if err := pace.Sleep(ctx, time.Since(start)); err != nil {
			return fmt.Errorf("prune the inbox: %w", err)
		}
	}
}

// pruneSome deletes some markers. It returns 0 if there are none, if another session prunes, or if
// records of the handler are read again.
func (i Inbox) pruneSome(ctx context.Context, pool *pgxpool.Pool, lock string, cutoff time.Time) (deleted int64, err error) {
	err = readmodel.TransactOnce(ctx, pool, func(ctx context.Context, tx *readmodel.Tx) error {
		deleted = 0
		if _, err := tx.Exec(ctx, sql.Query(lock)); lock == lockStops && readmodel.HasCode(err, readmodel.LockNotAvailable) {
			return errBusy // not the error of PostgreSQL, after which the transaction would be tried again
		} else if err != nil {
			return err
		}
		if held, err := i.Holds(ctx, tx); err != nil || len(held) > 0 {
			return err
		}
		tag, err := tx.Exec(ctx, sql.Query("inbox_prune"), i.handler, cutoff, pruneRows)
		if deleted = tag.RowsAffected(); err != nil || deleted == 0 {
			return err
		}
		_, err = tx.Exec(ctx, sql.Query("inbox_prune_note"), i.handler, cutoff)
		return err
	})
	if errors.Is(err, errBusy) {
		return 0, nil
	}
	return deleted, err
}

// errBusy means that another session prunes, or sets positions.
var errBusy = errors.New("the inbox is locked")

// Hold is a partition whose records are read again. No marker is pruned until these records were
// read.
type Hold struct {
	Group, Topic string
	Partition    int32
	Next, Until  int64
}

// String describes which records are read again.
func (h Hold) String() string {
	return fmt.Sprintf("group %s reads partition %d of topic %s again, from %d to %d", h.Group, h.Partition, h.Topic, h.Next, h.Until)
}

// Holds returns the partitions of the handler whose records are read again.
func (i Inbox) Holds(ctx context.Context, db readmodel.Querier) ([]Hold, error) {
	return readmodel.All[Hold](ctx, db, "ask what is read again", "inbox_held", i.handler)
}

// OldMarkers describes the markers of a handler that pruning would delete.
type OldMarkers struct {
	Handler string
	Markers int64  // at most CountUpTo
	Held    []Hold // if not empty, nothing is pruned
}

// Old returns, for each handler, the markers that are older than the retention.
func Old(ctx context.Context, pool *pgxpool.Pool, retention time.Duration) (all []OldMarkers, err error) {
	handlers, err := readmodel.Texts(ctx, pool, "list the inbox's handlers", "inbox_handlers")
	if err != nil {
		return nil, err
	}
	for _, handler := range handlers {
		of := OldMarkers{Handler: handler}
		if of.Held, err = Of(handler).Holds(ctx, pool); err != nil {
			return nil, err
		}
		if of.Markers, err = readmodel.One[int64](ctx, pool, "count the markers to prune", "inbox_old", handler, retention, CountUpTo); err != nil {
			return nil, err
		}
		all = append(all, of)
	}
	return all, nil
}

// Count returns the number of the handler's markers. It is exact up to CountUpTo. Above that, it is
// an estimate of the rows of the whole table, from the statistics.
func (i Inbox) Count(ctx context.Context, pool *pgxpool.Pool) (n int64, err error) {
	return readmodel.One[int64](ctx, pool, "count the inbox", "inbox_rows", i.handler, CountUpTo)
}

// Tasks returns the tasks of a projection with an inbox.
func (i Inbox) Tasks(cfg readmodel.RunConfig) []readmodel.Task {
	return []readmodel.Task{
		{Name: "prune the inbox", Every: pruneEvery, Within: pruneWithin, Run: func(ctx context.Context) error {
			return i.prune(ctx, cfg.Pool, lockStops, cfg.InboxRetention, cfg.Observer.InboxPruned)
		}},
		{Name: "count the inbox", Every: countEvery, Run: func(ctx context.Context) error {
			n, err := i.Count(ctx, cfg.Pool)
			if err == nil {
				cfg.Observer.InboxRows(n)
			}
			return err
		}},
	}
}
