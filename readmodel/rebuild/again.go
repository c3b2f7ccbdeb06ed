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
	if err := s.noteAndLock(ctx, t); err != nil {
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
	c.unsure, c.fetched = c.unsure || s.found.unsure, s.found.fetched // events that were fetched later count as repairs
	if err := c.runAgain(ctx, t); err != nil {
		return nil, err
	}
	for _, table := range s.locked() {
		if _, err := t.exec(ctx, table.statement("rows_forget")); err != nil {
			return nil, err
		}
	}
	if err := t.limited(ctx); err != nil {
		return nil, err
	}
	err := c.note(ctx, t.tx)
	return c, err
}

// noteAndLock adds the rows written since the comparison to the tables of differences. It locks the
// rows that may be replaced.
func (s *Shadow) noteAndLock(ctx context.Context, t *swapTx) error {
	if s.accounts != nil && !s.accounts.balances {
		if _, err := t.exec(ctx, sql.Query("state_lock")); err != nil {
			return err
		}
	}
	if s.inbox != nil {
		if _, err := t.exec(ctx, sql.Query("inbox_recent"), s.kind.Name(), s.compared); err != nil {
			return err
		}
	}
	for _, table := range s.written() {
		if _, err := t.exec(ctx, table.statement("rows_written"), s.compared); err != nil {
			return err
		}
	}
	for _, table := range s.locked() {
		if _, err := t.exec(ctx, table.statement("rows_lock")); err != nil {
			return err
		}
	}
	return nil
}

// The method locked returns the tables whose differing rows are locked and replaced.
func (s *Shadow) locked() []*rowTable {
	if s.accounts == nil {
		return s.tables
	}
	return append(slices.Clone(s.tables), s.accounts.account)
}

func (s *Shadow) markers() []*rowTable {
	if s.inbox == nil {
		return nil
	}
	return []*rowTable{s.inbox}
}

// The method written returns the tables that consumers may have written since the comparison.
func (s *Shadow) written() []*rowTable {
	if s.accounts == nil {
		return s.tables
	}
	return append(slices.Clone(s.tables), s.accounts.account, s.accounts.parked, s.accounts.overflow)
}

// runAgain compares again the rows that the tables of differences list.
func (c *comparison) runAgain(ctx context.Context, t *swapTx) error {
	s := c.shadow
	if s.accounts != nil {
		if err := c.accountsAgain(ctx, t); err != nil {
			return err
		}
	}
	for _, table := range s.tables {
		err := c.noted(ctx, t, table, func(l, r *row, differs bool) error {
			if !differs {
				return nil
			}
			return c.addRow(ctx, nil, table, l, r)
		})
		if err != nil {
			return err
		}
	}
	c.decideAccounts()
	return nil
}

// accountsAgain compares once more the live and the rebuilt state of the accounts that the tables
// of differences list.
func (c *comparison) accountsAgain(ctx context.Context, t *swapTx) error {
	a := c.shadow.accounts
	err := c.noted(ctx, t, a.account, func(l, r *row, differs bool) error {
		if differs {
			c.addState(l, r, false)
			return nil
		}
		d := c.account(l.of.Text)
		d.live, d.rebuilt = l.version, r.version
		return nil
	})
	if err != nil {
		return err
	}
	return c.noted(ctx, t, a.hold, func(l, r *row, differs bool) error {
		if differs {
			c.addState(l, r, true)
		}
		return nil
	})
}

// The method noted reads the table of differences of the given table. It calls add for each listed
// row that the live or the shadow table has.
func (c *comparison) noted(ctx context.Context, t *swapTx, table *rowTable, add func(live, rebuilt *row, differs bool) error) error {
	if err := t.limited(ctx); err != nil {
		return err
	}
	rows, _ := t.tx.Query(ctx, table.statement("rows_again"))
	var (
		r                                                      row
		liveDigest, liveVersion, rebuiltDigest, rebuiltVersion *int64
	)
	_, err := pgx.ForEachRow(rows, []any{&r.id, &r.key, &liveDigest, &liveVersion, &rebuiltDigest, &rebuiltVersion}, func() error {
		if err := r.parseKey(); err != nil {
			return err
		}
		l, b := r.withDigest(liveDigest, liveVersion), r.withDigest(rebuiltDigest, rebuiltVersion)
		if l == nil && b == nil {
			return nil
		}
		return add(l, b, l == nil || b == nil || l.digest != b.digest)
	})
	return err
}

// withDigest returns a copy of the row with the given digest and version. It returns nil if the
// digest is nil.
func (r *row) withDigest(digest, version *int64) *row {
	if digest == nil {
		return nil
	}
	one := *r
	one.digest, one.version = *digest, version
	return &one
}

func either(a, b *row) *row {
	if a != nil {
		return a
	}
	return b
}
