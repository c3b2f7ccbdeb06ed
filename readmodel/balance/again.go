package balance

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"projector/projection"
)

// due are accounts whose next event was beyond the park limit, so it has to be read again from the
// topic.
type due struct {
	accountIDs []string
	from       int64 // offset of their first event that is still in the log; projection.NoOffset: none
}

// loadDue reads the due accounts of the partition. Its log begins at start.
func (b *Balance) loadDue(ctx context.Context, start int64) (due, error) {
	d := due{from: projection.NoOffset}
	rows, _ := b.cfg.Pool.Query(ctx, b.db().Tables.Query("overflow_due"), b.partition.Topic, b.partition.Number)
	var (
		id     string
		offset int64
	)
	_, err := pgx.ForEachRow(rows, []any{&id, &offset}, func() error {
		d.accountIDs = append(d.accountIDs, id)
		if offset >= start && (d.from == projection.NoOffset || offset < d.from) {
			d.from = offset
		}
		return nil
	})
	if err != nil {
		return due{}, fmt.Errorf("find events beyond the park limit whose turn has come: %w", err)
	}
	return d, nil
}

// readAgain stores that the events of due accounts are read again from the position next. Events
// before start are no longer in the log: only a replay from the DLQ can apply them.
func (b *Balance) readAgain(ctx context.Context, d due, next, start int64) error {
	if len(d.accountIDs) == 0 {
		return nil
	}
	_, err := b.cfg.Pool.Exec(ctx, b.db().Tables.Query("overflow_again"), b.partition.Topic, b.partition.Number, d.accountIDs, next, start)
	if err != nil {
		return fmt.Errorf("note which events beyond the park limit are read again: %w", err)
	}
	return nil
}
