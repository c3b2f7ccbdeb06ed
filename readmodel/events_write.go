package readmodel

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"projector/projection"
)

// Write makes the changes durable and moves the position to next, in one
// transaction, and corrects the outcomes by what was there already. ErrFenced and
// ErrStale mean that nothing was written; behind any other error the COMMIT may have
// taken place, with these outcomes, which the next claim tells.
func (e *Events) Write(ctx context.Context, next projection.NextOffset, c *projection.Changes) error {
	conn, err := e.cfg.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	defer conn.Release()
	// Stable: of two events with one key the first counts.
	slices.SortStableFunc(e.entries, func(a, b Entry) int { return a.Key.Compare(b.Key) })
	if err := e.writeTx(ctx, conn.Conn(), next, c); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	e.written(next)
	return nil
}

func (e *Events) writeTx(ctx context.Context, conn *pgx.Conn, next projection.NextOffset, c *projection.Changes) error {
	tx := begin(conn)
	tx.move(e.cfg.Partition, e.position, next)
	var err error
	if len(e.entries) > 0 {
		err = e.cfg.Table.Write(ctx, tx, e.entries)
	}
	if err == nil {
		err = tx.Send(ctx)
	}
	if err == nil && slices.ContainsFunc(e.entries, func(entry Entry) bool { return entry.Present != "" && entry.conflicts() }) {
		e.careful, err = staysCareful, projection.ErrStale
	}
	if err == nil {
		e.correct(c) // before the COMMIT, whose answer may be lost
	}
	return tx.end(ctx, err)
}

// correct counts what turned out to be there already.
func (e *Events) correct(c *projection.Changes) {
	for i := range e.entries {
		if e.entries[i].Present != "" {
			c.Outcomes[takenAs(&e.entries[i].Event)]--
			c.Outcomes[projection.Duplicate]++
		}
	}
}

// written takes note that everything pending is durable.
func (e *Events) written(next projection.NextOffset) {
	e.markSeen()
	e.careful = max(0, e.careful-1)
	maps.DeleteFunc(e.refused, func(p projection.Place, _ string) bool { return p.Offset < next.Offset })
	e.position = e.position.Moved(next)
	e.reset()
}

// markSeen tells the recent-event cache what is durable now.
func (e *Events) markSeen() {
	if e.cfg.Recent == nil || len(e.entries) == 0 {
		return
	}
	seen := make([]Seen, 0, len(e.entries))
	for i := range e.entries {
		if entry := &e.entries[i]; entry.Present == "" || entry.Present == entry.Event.ID {
			seen = append(seen, Seen{entry.Key, entry.Event.ID})
		}
	}
	if e.cfg.Recent.Mark(seen) != nil {
		e.cfg.Observer.DedupError(1)
	}
}
