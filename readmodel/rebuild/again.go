package rebuild

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"projector/internal/failpoint"
	"projector/sql"
)

// compareAgain compares the rows that differed and the rows written since the comparison. It runs
// in the transaction that holds the locks.
func (w *swap) compareAgain(ctx context.Context, t *swapTx) (*comparison, error) {
	t.next(failpoint.RebuildRead, "comparing again what differed and what was written since")
	s := w.shadow
	var err error
	if w.marked, err = s.noteAndLock(ctx, t); err != nil {
		return nil, err
	}
	opts := s.found.opts
	opts.List = 0
	c := newComparison(s, opts)
	if err := t.limited(ctx); err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, t.tx); err != nil {
		return nil, err
	}
	if err := c.sinceRepaired(ctx, t.tx); err != nil {
		return nil, err
	}
	c.left, c.sumsLeft = s.found.left, s.found.sumsLeft
	c.unsure, c.fetched = c.unsure || s.found.unsure, s.found.fetched // events that were fetched later count as repairs
	err = c.decide(ctx, nil, func(table *rowTable, add addDifference) error { return c.noted(ctx, t, table, add) })
	if err != nil {
		return nil, err
	}
	for _, table := range s.locked() {
		if _, err := t.exec(ctx, table.fill.Query("rows_forget")); err != nil {
			return nil, err
		}
	}
	if err := t.limited(ctx); err != nil {
		return nil, err
	}
	err = c.note(ctx, t.tx)
	return c, err
}

// noteAndLock adds the rows written since the comparison to the tables of differences. It locks the
// rows that may be replaced. It returns the number of markers that it has added to the inbox.
func (s *Shadow) noteAndLock(ctx context.Context, t *swapTx) (marked int64, err error) {
	if s.accounts != nil && !s.accounts.balances {
		if _, err := t.exec(ctx, sql.Query("state_lock")); err != nil {
			return 0, err
		}
	}
	if s.inbox != nil {
		if marked, err = t.exec(ctx, sql.Query("inbox_recent"), s.kind.Name(), s.compared); err != nil {
			return 0, err
		}
	}
	for _, table := range s.written() {
		if _, err := t.exec(ctx, table.fill.Query("rows_written"), s.compared); err != nil {
			return 0, err
		}
	}
	for _, table := range s.locked() {
		if _, err := t.exec(ctx, table.fill.Query("rows_lock")); err != nil {
			return 0, err
		}
	}
	return marked, nil
}

// locked returns the tables whose differing rows are locked and replaced.
func (s *Shadow) locked() []*rowTable {
	if s.accounts == nil {
		return s.tables
	}
	return append(slices.Clone(s.tables), s.accounts.account)
}

// written returns the tables that consumers may have written since the comparison.
func (s *Shadow) written() []*rowTable {
	if s.accounts == nil {
		return s.tables
	}
	return append(s.locked(), s.accounts.parked, s.accounts.overflow)
}

// noted reads the table of differences of the given table. It calls add for each listed row that
// differs.
func (c *comparison) noted(ctx context.Context, t *swapTx, table *rowTable, add addDifference) error {
	if err := t.limited(ctx); err != nil {
		return err
	}
	rows, _ := t.tx.Query(ctx, table.fill.Query("rows_again"))
	var (
		of, live, rebuilt row
		digests           [2]*int64
	)
	_, err := pgx.ForEachRow(rows, []any{
		&of.id, &of.key, &digests[0], &live.version, &live.hold, &digests[1], &rebuilt.version, &rebuilt.hold,
	}, func() error {
		if err := of.parseKey(); err != nil {
			return err
		}
		l, r := of.with(digests[0], live), of.with(digests[1], rebuilt)
		if l == nil && r == nil || !differ(l, r) {
			return nil
		}
		return add(l, r)
	})
	return err
}

// The method with returns the row with a digest, and with the version and the hold of state. It
// returns nil if the digest is nil.
func (r *row) with(digest *int64, state row) *row {
	if digest == nil {
		return nil
	}
	state.id, state.key, state.of, state.digest = r.id, r.key, r.of, *digest
	return &state
}
