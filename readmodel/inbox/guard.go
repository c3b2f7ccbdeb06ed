package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/projection"
	"projector/readmodel"
	"projector/sql"
)

// guard knows which records were taken in for certain, by their offsets, once markers
// have been pruned: what any consumer group of the projection has judged, for all of
// them write to the same table. It does its part of readmodel.Guarded. That of no
// partition, for repairs, knows of no offset.
//
// While no marker ever was pruned it keeps out of the way, for then the markers tell
// more: a record that was dead-lettered is taken in when it can be read now.
type guard struct {
	inbox       Inbox
	partition   readmodel.Partition
	judgedUntil int64
	pruned      bool
}

// Claimed implements readmodel.Guarded.
func (g *guard) Claimed(ctx context.Context, db readmodel.Querier, pos projection.Position) error {
	rows, err := db.Query(ctx, sql.Query("inbox_guard"), g.args()...)
	if err != nil {
		return fmt.Errorf("ask what the inbox has forgotten: %w", err)
	}
	a, err := pgx.CollectOneRow(rows, scanGuard)
	if err != nil {
		return fmt.Errorf("ask what the inbox has forgotten: %w", err)
	}
	g.pruned, g.judgedUntil = a.until != nil, max(a.others, pos.JudgedUntil)
	return nil
}

// Passed implements readmodel.Guarded.
func (g *guard) Passed(offset int64) bool { return g.pruned && offset < g.judgedUntil }

// check asks within tx, behind what was queued, whether pruning or another group has
// overtaken what this guard knows, and answers projection.ErrStale if an entry may
// have been taken in before although it has no marker. It sends what was queued.
func (g *guard) check(ctx context.Context, tx *readmodel.Tx, entries []readmodel.Entry) error {
	if g.partition.Group == "" {
		return tx.Send(ctx)
	}
	var now guardAnswer
	tx.Queue(sql.Query("inbox_guard"), g.args()...).Query(func(rows pgx.Rows) (err error) {
		now, err = pgx.CollectOneRow(rows, scanGuard)
		return err
	})
	if err := tx.Send(ctx); err != nil || now.until == nil {
		return err
	}
	judged := max(now.others, g.judgedUntil)
	for i := range entries {
		if entries[i].Offset < judged {
			return projection.ErrStale
		}
	}
	return nil
}

func (g *guard) args() []any {
	return []any{g.inbox.handler, g.partition.Topic, g.partition.Number, g.partition.Group}
}

type guardAnswer struct {
	until  *time.Time
	others int64
}

func scanGuard(row pgx.CollectableRow) (a guardAnswer, err error) {
	err = row.Scan(&a.until, &a.others)
	return a, err
}
