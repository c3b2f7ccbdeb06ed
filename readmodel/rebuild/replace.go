package rebuild

import (
	"context"
	"maps"
	"slices"

	"projector/projection"
	"projector/sql"
)

// replaceRows replaces those rows of a table that differ.
func (w *swap) replaceRows(ctx context.Context, t *swapTx, table *rowTable) error {
	steps := []string{"rows_update", "rows_insert"}
	if w.opts.Remove {
		steps = append(steps, "rows_delete")
	}
	for _, step := range steps {
		n, err := t.exec(ctx, table.statement(step))
		if err != nil {
			return err
		}
		if step == "rows_delete" {
			w.done.Removed += n
		} else {
			w.done.Replaced += n
		}
	}
	audited, err := t.exec(ctx, table.statement("rows_audit"), w.opts.Actor, w.shadow.kind.Name(), w.opts.Reason, w.opts.Remove)
	if err != nil {
		return err
	}
	if w.audited += audited; w.audited != w.done.Replaced+w.done.Removed {
		return projection.ErrStale // another session has written one of the rows despite the locks
	}
	return nil
}

// accountChanges holds the accounts that are changed, sorted by account id.
type accountChanges struct {
	ids       []string
	gone, put []string // accounts whose row is removed; accounts whose row is inserted
	// These fields are for the audit trail. They describe the changed accounts of which replaceRows
	// has recorded no row.
	alone, reasons, results []string
	versions                []*int64
}

func (w *swap) accountChanges(c *comparison) (a accountChanges) {
	for _, id := range slices.Sorted(maps.Keys(c.accounts)) {
		d := c.accounts[id]
		if d.kind == "" || !d.kind.changes() || d.kind == Unknown && !w.opts.Remove {
			continue
		}
		a.ids = append(a.ids, id)
		if d.state && d.live != nil {
			a.gone = append(a.gone, id)
		}
		if d.state && d.rebuilt != nil {
			a.put = append(a.put, id)
		}
		if d.rows == "" {
			w.recordAccount(&a, id, d)
		}
	}
	return a
}

// recordAccount counts an account and adds it to the rows for the audit trail.
func (w *swap) recordAccount(a *accountChanges, id string, d *accountDifference) {
	result, reason := "replaced", string(d.kind)
	if d.kind == Unknown {
		result = "removed"
		w.done.Removed++
	} else {
		w.done.Replaced++
	}
	if !w.shadow.accounts.balances {
		reason = w.shadow.kind.Name() + ": hold"
	}
	a.alone, a.versions = append(a.alone, id), append(a.versions, d.rebuilt)
	a.reasons, a.results = append(a.reasons, reason), append(a.results, result)
}

// replaceAccounts replaces the live accounts that differ by the rebuilt accounts.
func (w *swap) replaceAccounts(ctx context.Context, t *swapTx, c *comparison) error {
	accounts, changes := w.shadow.accounts, w.accountChanges(c)
	if len(changes.ids) == 0 {
		return nil
	}
	if _, err := t.exec(ctx, accounts.account.statement("accounts_delete"), changes.gone); err != nil {
		return err
	}
	put, err := t.exec(ctx, accounts.account.statement("accounts_insert"), changes.put)
	if err != nil {
		return err
	}
	if put != int64(len(changes.put)) {
		return projection.ErrStale // another session has written one of the rows despite the locks
	}
	for _, step := range []string{"hold_remove", "hold_insert", "hold_overflow_remove", "hold_overflow_insert"} {
		if _, err := t.exec(ctx, accounts.statement(step), changes.ids); err != nil {
			return err
		}
	}
	_, err = t.exec(ctx, sql.Query("accounts_audit"), w.opts.Actor, w.shadow.kind.Name(), w.opts.Reason,
		changes.alone, changes.versions, changes.reasons, changes.results)
	return err
}
