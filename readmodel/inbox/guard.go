package inbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/appended"
	"projector/sql"
)

// A guard shows which records were certainly processed, after markers were pruned. It knows this
// from offsets and leader epochs. A record counts as processed if any consumer group of the
// projection has processed it, because all groups write to the same table. It implements part of
// appended.Guarded. A guard for repairs has no partition and knows no offsets.
//
// As long as no marker was pruned, the guard does nothing, because the markers are more exact. For
// example, a record that became a dead letter has no marker, so it can still be counted when it is
// read again. By its offset, it would count as processed.
type guard struct {
	inbox     Inbox
	partition readmodel.Partition
	processed []projection.NextOffset // by each consumer group
	pruned    bool
}

// Claimed implements appended.Guarded.
func (g *guard) Claimed(ctx context.Context, db readmodel.Querier, pos projection.Position) error {
	rows, _ := db.Query(ctx, sql.Query("inbox_guard"), g.args()...)
	a, err := pgx.CollectOneRow(rows, scanGuard)
	if err != nil {
		return fmt.Errorf("ask what the inbox has forgotten: %w", err)
	}
	own := projection.NextOffset{Offset: pos.ProcessedUntil, LeaderEpoch: pos.ProcessedEpoch}
	g.pruned, g.processed = a.until != nil, append(a.others(), own)
	return nil
}

// Passed implements appended.Guarded.
func (g *guard) Passed(entry *appended.Entry) bool {
	return g.pruned && wasProcessed(g.processed, entry)
}

func wasProcessed(processed []projection.NextOffset, entry *appended.Entry) bool {
	return slices.ContainsFunc(processed, func(n projection.NextOffset) bool {
		return n.Behind(entry.Offset, entry.LeaderEpoch)
	})
}

// check reads in tx whether markers were pruned, and what other groups have processed so far. If
// markers were pruned and one of the entries was processed, its marker may be missing, and check
// returns projection.ErrStale. It sends the queued statements first.
func (g *guard) check(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry) error {
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
	processed := append(now.others(), g.processed...)
	for i := range entries {
		if wasProcessed(processed, &entries[i]) {
			return projection.ErrStale
		}
	}
	return nil
}

func (g *guard) args() []any {
	return []any{g.inbox.handler, g.partition.Topic, g.partition.Number, g.partition.Group, projection.UnknownTopicIDs()}
}

type guardAnswer struct {
	until   *time.Time
	offsets []int64 // processed offsets of other groups
	epochs  []int32 // the leader epochs of these offsets
}

func scanGuard(row pgx.CollectableRow) (a guardAnswer, err error) {
	err = row.Scan(&a.until, &a.offsets, &a.epochs)
	return a, err
}

func (a *guardAnswer) others() []projection.NextOffset {
	others := make([]projection.NextOffset, len(a.offsets))
	for i := range others {
		others[i] = projection.NextOffset{Offset: a.offsets[i], LeaderEpoch: a.epochs[i]}
	}
	return others
}
