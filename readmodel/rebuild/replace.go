package rebuild

import (
	"context"
	"maps"
	"slices"

	"projector/projection"
	"projector/readmodel"
)

func (w *swap) replaceRows(ctx context.Context, t *swapTx, table *rowTable) error {
	steps := []string{"rows_update", "rows_insert"}
	if w.opts.Remove {
		steps = append(steps, "rows_delete")
	}
	for _, step := range steps {
		n, err := t.exec(ctx, table.fill.Query(step))
		if err != nil {
			return err
		}
		if step == "rows_delete" {
			w.done.Removed += n
		} else {
			w.done.Replaced += n
		}
	}
	audited, err := t.exec(ctx, table.fill.Query("rows_audit"), w.opts.Actor, w.shadow.kind.Name(), w.opts.Reason, w.opts.Remove)
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
