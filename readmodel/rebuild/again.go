package rebuild

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"projector/internal/failpoint"
)

// again compares, in the locked transaction, the rows that differed and the rows written since.
func (w *swap) again(ctx context.Context, t *swapTx) (*comparison, error) {
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
	if err := errors.Join(c.prepare(ctx, t.tx), c.sinceRepaired(ctx, t.tx)); err != nil {
		return nil, err
	}
	c.unsure = c.unsure || s.found.unsure
	if err := c.runAgain(ctx, t); err != nil {
		return nil, err
	}
	for _, table := range s.locked() {
		if _, err := t.execText(ctx, table.statement("rows_forget")); err != nil {
			return nil, err
		}
	}
	if err := t.limited(ctx); err != nil {
		return nil, err
	}
	err := c.note(ctx, t.tx)
	return c, err
}

// noteAndLock notes the rows written since the comparison and locks what may be replaced.
func (s *Shadow) noteAndLock(ctx context.Context, t *swapTx) error {
	if s.accounts != nil && !s.accounts.balances {
		if _, err := t.exec(ctx, "state_lock"); err != nil {
			return err
		}
	}
	if s.inbox != nil {
		if _, err := t.exec(ctx, "inbox_recent", s.kind.Name(), s.compared); err != nil {
			return err
		}
	}
	for _, table := range s.written() {
		if _, err := t.execText(ctx, table.statement("rows_written"), s.compared); err != nil {
			return err
		}
	}
	for _, table := range s.locked() {
		if _, err := t.execText(ctx, table.statement("rows_lock")); err != nil {
			return err
		}
	}
	return nil
}

// locked returns the tables whose noted rows are locked and replaced.
func (s *Shadow) locked() []*rowTable {
	if s.accounts == nil {
		return s.tables
	}
	return append(slices.Clone(s.tables), s.accounts.account)
}

// markers returns the inbox table, if the projection has one.
func (s *Shadow) markers() []*rowTable {
	if s.inbox == nil {
		return nil
	}
	return []*rowTable{s.inbox}
}

// written returns the tables that consumers may have written since the comparison.
func (s *Shadow) written() []*rowTable {
	if s.accounts == nil {
		return s.tables
	}
	return append(slices.Clone(s.tables), s.accounts.account, s.accounts.parked, s.accounts.overflow)
}

// runAgain compares the noted rows.
func (c *comparison) runAgain(ctx context.Context, t *swapTx) error {
	s := c.shadow
	if s.accounts != nil {
		if err := c.accountsAgain(ctx, t); err != nil {
			return err
		}
	}
	for _, table := range s.tables {
		var differing [][2]*row
		err := c.noted(ctx, t, table, func(l, r *row, differs bool) error {
			if differs {
				differing = append(differing, [2]*row{l, r})
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, pair := range differing {
			if err := c.addRow(ctx, nil, table, pair[0], pair[1]); err != nil {
				return err
			}
		}
	}
	c.decideAccounts()
	return nil
}

// accountsAgain compares the noted accounts.
func (c *comparison) accountsAgain(ctx context.Context, t *swapTx) error {
	a := c.shadow.accounts
	err := c.noted(ctx, t, a.account, func(l, r *row, differs bool) error {
		if differs {
			return c.addState(l, r, false)
		}
		id, err := accountIn(either(l, r).key)
		d := c.account(id)
		d.live, d.rebuilt = versionOf(l), versionOf(r)
		return err
	})
	if err != nil {
		return err
	}
	return c.noted(ctx, t, a.hold, func(l, r *row, differs bool) error {
		if !differs {
			return nil
		}
		return c.addState(l, r, true)
	})
}

// noted calls add for each noted row of a table.
func (c *comparison) noted(ctx context.Context, t *swapTx, table *rowTable, add func(live, rebuilt *row, differs bool) error) error {
	if err := t.limited(ctx); err != nil {
		return err
	}
	rows, err := t.tx.Query(ctx, table.statement("rows_again"))
	if err != nil {
		return err
	}
	var (
		id, key                     string
		live, rebuilt               *int64
		liveVersion, rebuiltVersion *int64
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &key, &live, &liveVersion, &rebuilt, &rebuiltVersion}, func() error {
		l, r := rowOf(id, key, live, liveVersion), rowOf(id, key, rebuilt, rebuiltVersion)
		if l == nil && r == nil {
			return nil
		}
		return add(l, r, l == nil || r == nil || l.digest != r.digest)
	})
	return err
}

func either(a, b *row) *row {
	if a != nil {
		return a
	}
	return b
}

func rowOf(id, key string, digest, version *int64) *row {
	if digest == nil {
		return nil
	}
	r := &row{id: id, key: key, digest: *digest}
	if version != nil {
		v := *version
		r.version = &v
	}
	return r
}
