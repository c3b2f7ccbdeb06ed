package accountdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
	"projector/sql"
)

// Beyond is an account whose next event is beyond the park limit. The topic has this event at
// FirstOffset of the partition, or later.
type Beyond struct {
	AccountID    string
	Version      int64 // of the account
	Partition    int32
	FirstOffset  int64
	FirstVersion int64 // the lowest version beyond the limit
	Highest      int64 // the highest version beyond the limit
	Events       int64 // number of events beyond the limit
}

// LoadBeyond reads some accounts of a projection whose next event is beyond the park limit. until has
// the offsets up to which the records of each partition were processed. All events of these accounts
// that are beyond the limit are before them.
func LoadBeyond(ctx context.Context, pool *pgxpool.Pool, name, topic string, partitions []int32) (due []Beyond, until map[int32]int64, err error) {
	rows, _ := pool.Query(ctx, sql.AccountsOf(name).Query("overflow_due"), topic, partitions)
	due, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Beyond])
	if err == nil && len(due) > 0 {
		until = map[int32]int64{}
		var (
			partition int32
			offset    int64
		)
		rows, _ := pool.Query(ctx, sql.Query("processed_until"), name, topic)
		_, err = pgx.ForEachRow(rows, []any{&partition, &offset}, func() error {
			until[partition] = offset
			return nil
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find events beyond the park limit whose turn has come: %w", err)
	}
	return due, until, nil
}

// BeyondRest is what is still beyond the park limit.
type BeyondRest struct {
	Events        int64 // 0: nothing is
	LowestVersion int64
	// FirstOffset and FirstVersion are where to read again; nil: only a replay applies these events.
	FirstOffset, FirstVersion *int64
}

// ParkBeyond parks events of an account that were beyond the park limit, and stores what still is. If
// the account's row has changed since it was read, only the events are parked.
func ParkBeyond(ctx context.Context, pool *pgxpool.Pool, name string, of *Beyond, parks []*projection.Parked, rest BeyondRest) error {
	err := readmodel.TransactQueued(ctx, pool, func(t *readmodel.Tx) error {
		tx := &Tx{Tx: t, Tables: sql.AccountsOf(name)}
		queueParked(tx, parks)
		row := []any{of.AccountID, of.FirstOffset, of.FirstVersion, of.Highest, of.Events}
		if rest.Events == 0 {
			tx.Queue(tx.Tables.Query("overflow_all_parked"), row...)
		} else {
			tx.Queue(tx.Tables.Query("overflow_parked"), append(row, rest.LowestVersion, rest.Events, rest.FirstOffset, rest.FirstVersion)...)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("park events that were beyond the park limit: %w", err)
	}
	return nil
}
