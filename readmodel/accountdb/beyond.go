package accountdb

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
	"projector/sql"
)

// Beyond is an account whose next event may not have been parked, because the park limit was
// reached. Events beyond this limit are only in the DLQ, not in the database.
type Beyond struct {
	AccountID string
	Version   int64 // the account's current version
	BeyondRange
}

// BeyondRange describes the events of an account beyond the park limit. If they are in several
// partitions, Partition is -1 and the events cannot be read again.
type BeyondRange struct {
	Partition               int32
	Lowest, Highest         int64 // versions
	Events                  int64
	FirstOffset, LastOffset int64 // FirstOffset is projection.NoOffset if the events cannot be read again
	FirstVersion            int64 // the lowest version of the events that are to be read again, or AtOnce
}

// AtOnce is the FirstVersion of a range that is to be read again as soon as possible. It is below the
// version of each event.
const AtOnce = 0

// LoadBeyond returns a few of the accounts whose next event may be beyond the park limit. It leaves
// out accounts whose next event cannot be read again. The result until maps each partition to the
// offset up to which its records were processed.
func LoadBeyond(ctx context.Context, pool *pgxpool.Pool, name, topic string, partitions []int32, firstVersion int64) (due []Beyond, until map[int32]int64, err error) {
	const what = "find events beyond the park limit whose turn has come"
	due, err = readmodel.Collect(ctx, pool, pgx.RowToStructByPos[Beyond], what, sql.AccountsOf(name).Query("overflow_due"), topic, partitions, firstVersion-1)
	if err == nil && len(due) > 0 {
		until, err = readmodel.Map[int32, int64](ctx, pool, what, sql.Query("processed_until"), name, topic)
	}
	return due, until, err
}

// LockBeyond locks the present BeyondRange of each account and returns it. Accounts without events
// beyond the park limit are left out.
func LockBeyond(ctx context.Context, tx *Tx, ids []string) (map[string]BeyondRange, error) {
	var (
		found = map[string]BeyondRange{}
		id    string
		b     BeyondRange
	)
	into := []any{&id, &b.Partition, &b.Lowest, &b.Highest, &b.Events, &b.FirstOffset, &b.LastOffset, &b.FirstVersion}
	for chunk := range slices.Chunk(ids, tx.Locked(max(len(ids), 1))) {
		err := readmodel.Each(ctx, tx, "read what is beyond the park limit", tx.Tables.Query("overflow_load"), []any{chunk}, into, func() error {
			found[id] = b
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Store queues the statement that stores the range for an account.
func (b *BeyondRange) Store(tx *Tx, id string) {
	var offset, version *int64
	if b.FirstOffset != projection.NoOffset {
		offset, version = &b.FirstOffset, &b.FirstVersion
	}
	tx.Queue(tx.Tables.Query("overflow_store"), id, b.Lowest, b.Highest, b.Events, offset, version)
}
