package readmodel

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// LoadStranded names those of the given partitions of a topic that hold a parked event
// whose turn has come and that nobody has applied, for at least the given time. That is
// so after the one before it was applied by the worker of another partition: when an
// account's events change partition without its consumers being drained. A new claim of
// the partition applies it.
func LoadStranded(ctx context.Context, db querier, topic string, partitions []int32, quiet time.Duration) ([]int32, error) {
	rows, err := db.Query(ctx, sql.Query("load_stranded"), topic, partitions, quiet.Seconds())
	if err != nil {
		return nil, fmt.Errorf("look for parked events whose turn has come: %w", err)
	}
	stranded, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return nil, fmt.Errorf("look for parked events whose turn has come: %w", err)
	}
	return stranded, nil
}
