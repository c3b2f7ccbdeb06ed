package rebuild

import (
	"context"
	"maps"
	"slices"

	"projector/errclass"
	"projector/projection"
	"projector/readmodel"
)

// replaceRows replaces and removes rows. A foreign key may refer to a table that is named earlier, so
// rows are removed in the reverse order of the tables.
func (w *swap) replaceRows(ctx context.Context, t *swapTx) error {
	changed := map[*rowTable]int64{}
	for _, table := range w.shadow.tables {
		for _, step := range []string{"rows_update", "rows_insert"} {
			n, err := t.exec(ctx, table.fill.Query(step))
			if err != nil {
				return err
			}
			changed[table] += n
			w.done.Replaced += n
		}
	}
	for _, table := range slices.Backward(w.shadow.tables) {
		if w.opts.Remove {
			n, err := t.exec(ctx, table.fill.Query("rows_delete"))
			if err != nil {
				return err
			}
			changed[table] += n
			w.done.Removed += n
		}
		audited, err := t.exec(ctx, table.fill.Query("rows_audit"), w.opts.Actor, w.shadow.kind.Name(), w.opts.Reason, w.opts.Remove)
		if err != nil {
			return err
		}
		if audited != changed[table] {
			return errclass.WithCause("PostgreSQL changed another number of rows of table "+table.Name+" than differ: "+
				"a trigger or a rule of the table prevents changes, or another session writes the table; nothing was changed", projection.ErrStale)
		}
	}
	return nil
}

// accountChanges holds the accounts that are changed, sorted by account id.
type accountChanges struct {
	ids       []string
	gone, put []string // accounts whose row is removed; accounts whose row is inserted
	alone     []string // accounts of which replaceRows has recorded no row
}

func (w *swap) accountChanges(c *comparison) (a accountChanges) {
	for _, id := range slices.Sorted(maps.Keys(c.accounts)) {
		d := c.accounts[id]
		if !d.kind.swapped(w.opts.Remove) {
			continue
		}
		a.ids = append(a.ids, id)
		if d.state && d.live != nil {
			a.gone = append(a.gone, id)
		}
		if d.state && d.rebuilt != nil {
			a.put = append(a.put, id)
		}
		if d.rows != "" {
			continue
		}
		if a.alone = append(a.alone, id); d.kind == Unknown {
			w.done.Removed++
		} else {
			w.done.Replaced++
		}
	}
	return a
}

func (w *swap) replaceAccounts(ctx context.Context, t *swapTx, c *comparison) error {
	accounts, changes := w.shadow.accounts, w.accountChanges(c)
	if len(changes.ids) == 0 {
		return nil
	}
	if _, err := t.exec(ctx, accounts.account.fill.Query("accounts_delete"), changes.gone); err != nil {
		return err
	}
	put, err := t.exec(ctx, accounts.account.fill.Query("accounts_insert"), changes.put)
	if err != nil {
		return err
	}
	if put != int64(len(changes.put)) {
		return projection.ErrStale // another session has written one of the rows despite the locks
	}
	for _, step := range []string{"hold_remove", "hold_insert", "hold_overflow_remove", "hold_overflow_insert"} {
		if _, err := t.exec(ctx, accounts.fill.Query(step), changes.ids); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(changes.alone, noteRows) {
		actions := make([]readmodel.Action, len(some))
		for i, id := range some {
			actions[i] = w.accountAction(id, c.accounts[id])
		}
		if err := t.record(ctx, actions); err != nil {
			return err
		}
	}
	return nil
}

func (w *swap) accountAction(id string, d *accountDifference) readmodel.Action {
	reason, result := string(d.kind), "replaced"
	if d.kind == Unknown {
		result = "removed"
	}
	if !w.shadow.accounts.balances {
		reason = w.shadow.kind.Name() + ": hold"
	}
	return w.action(id, d.rebuilt, reason, result)
}

// action returns a row of the audit trail. The reason is added to the actor's reason.
func (w *swap) action(account string, version *int64, reason, result string) readmodel.Action {
	return readmodel.Action{
		Kind: readmodel.ActionRebuild, Projection: w.shadow.kind.Name(), AccountID: account, Version: version,
		Actor: w.opts.Actor, Reason: w.opts.Reason, Result: result,
	}.Because(reason)
}
