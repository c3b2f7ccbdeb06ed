package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"projector/projection"
)

// Swap puts right the rows that Compare has noted, in one transaction that raises the
// fences of the projection's consumers first and holds its locks for no longer than it may.
//
// A row of one event is replaced if nobody has written it since it was compared. A sum is
// corrected by what it was wrong by then, whatever consumers have added since: they go on
// in the same way from a sum that is wrong. So nothing has to be read under the locks, and
// where the consumers are by then does not matter.
func (s *RowShadow) Swap(ctx context.Context, opts SwapOptions, _ CatchUp) (Swapped, error) {
	w := &rowSwap{shadow: s, opts: opts}
	var before func(context.Context, *Tx) error
	if s.markers > 0 {
		before = w.restoreMarkers
	}
	if err := boundedSwap(ctx, s.live, cmp.Or(opts.Within, swapWithin), before, w.run); err != nil {
		return Swapped{}, fmt.Errorf("swap: %w", err)
	}
	return w.done, nil
}

// rowSwap is one swap, of which each try is one transaction.
type rowSwap struct {
	shadow *RowShadow
	opts   SwapOptions
	done   Swapped // of the last try
}

// MarkedSinceError says that events were counted while their sums were compared.
type MarkedSinceError struct{}

// Error implements error and names the remedy.
func (MarkedSinceError) Error() string {
	return "events that were not counted when the sums were compared have been counted since, by a replay or because a position was set back: " +
		"nothing was changed; run it again"
}

// SafeText vouches for the text: it holds no data.
func (e MarkedSinceError) SafeText() string { return e.Error() }

// restoreMarkers marks the events that the rebuilt sums have and the inbox does not. If
// somebody has marked one since, it was counted since, and would be once more. Consumers wait
// for none of these markers, but for one whose event is delivered again just now.
func (w *rowSwap) restoreMarkers(ctx context.Context, tx *Tx) error {
	if err := tx.Send(ctx); err != nil {
		return err
	}
	tag, err := tx.conn.Exec(ctx, w.shadow.inbox.statement("inbox_restore"), w.shadow.kind.Label)
	if err != nil {
		return err
	}
	if tag.RowsAffected() != w.shadow.markers {
		return MarkedSinceError{}
	}
	return nil
}

// run does what locks.
func (w *rowSwap) run(ctx context.Context, t *swapTx) error {
	w.done = Swapped{Markers: w.shadow.markers}
	positions, err := t.fence(ctx, w.shadow.beside, w.shadow.kind.Label, w.opts.Topic, w.shadow.positions)
	if err != nil {
		return err
	}
	if err := w.keepFile(ctx, t, positions); err != nil {
		return err
	}
	if err := w.lockState(ctx, t, positions); err != nil {
		return err
	}
	for _, table := range w.shadow.tables {
		if err := w.change(ctx, t, table); err != nil {
			return err
		}
	}
	if err := w.replaceState(ctx, t); err != nil {
		return err
	}
	if w.done.Replaced+w.done.Removed+w.done.Markers == 0 && w.opts.File == nil {
		return errNothingFits
	}
	for _, table := range w.shadow.tables {
		if _, err := t.execText(ctx, table.statement("rows_audit"), w.opts.Actor, w.shadow.kind.Label, w.opts.Reason); err != nil {
			return err
		}
	}
	if w.done.Markers > 0 {
		if _, err := t.exec(ctx, "inbox_audit", w.opts.Actor, w.shadow.kind.Label, w.done.Markers, w.opts.Reason); err != nil {
			return err
		}
	}
	return t.limited(ctx) // COMMIT
}

// keepFile has the rows come from another text of the file from here on. Until then consumers
// go on by the old one: what they have added since the rows were compared is not put right.
func (w *rowSwap) keepFile(ctx context.Context, t *swapTx, positions []TopicPosition) error {
	if w.opts.File == nil {
		return nil
	}
	if !slices.Equal(positions, w.shadow.positions) {
		return OldTextRunsError{}
	}
	if err := KeepFile(ctx, t.tx, w.opts.File, true); err != nil {
		return err
	}
	return t.limited(ctx)
}

// OldTextRunsError says that consumers have gone on by the old text of a projection file while
// the rows of the new one were compared.
type OldTextRunsError struct{}

// Error implements error and names the remedy.
func (OldTextRunsError) Error() string {
	return "consumers have gone on by the old text of the file while the rows were compared, so nothing was changed: " +
		"stop them (`projector pause --all --reason=rebuild --yes`, with the same projection file), run this again, start them with the new text, and resume"
}

// SafeText vouches for the text: it holds no data.
func (e OldTextRunsError) SafeText() string { return e.Error() }

// change locks the rows of a table and changes those that can be.
func (w *rowSwap) change(ctx context.Context, t *swapTx, table *rowTable) error {
	if _, err := t.execText(ctx, table.statement("rows_lock"), w.opts.Remove); err != nil {
		return err
	}
	var replaced, removed, left int64
	if err := t.row(ctx, table.statement("rows_choose"), []any{w.opts.Remove}, &replaced, &removed, &left); err != nil {
		return err
	}
	steps := []string{"rows_update", "rows_insert", "rows_delete"}
	if len(table.Sums) > 0 {
		steps = []string{"sums_update", "sums_insert", "sums_subtract"}
	}
	changed := int64(0)
	for _, step := range steps {
		n, err := t.execText(ctx, table.statement(step))
		if err != nil {
			return err
		}
		changed += n
	}
	if changed != replaced+removed {
		return projection.ErrStale // somebody has written one of them in spite of the locks
	}
	if len(table.Sums) > 0 && removed > 0 {
		if _, err := t.execText(ctx, table.statement("sums_delete")); err != nil {
			return err
		}
	}
	w.done.Replaced, w.done.Removed, w.done.Left = w.done.Replaced+replaced, w.done.Removed+removed, w.done.Left+left
	return nil
}
