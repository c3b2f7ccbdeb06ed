package rebuild

import (
	"context"

	"github.com/jackc/pgx/v5"

	"projector/readmodel"
	"projector/sql"
)

// Balances are the balances of an account around a swap, as decimal numbers with the decimals of the
// currency. They are nil if there is no row then.
type Balances struct {
	Currency      *string
	Before, After *string
}

// Balances returns the balances of the listed differences at the comparison, in the order of the
// list. It returns nil if the comparison has read none. The parameter removing is
// SwapOptions.Remove.
func (s *Shadow) Balances(report *Report, removing bool) []Balances {
	if s.found.live == nil {
		return nil
	}
	all := make([]Balances, len(report.Differences))
	for i := range report.Differences {
		d := &report.Differences[i]
		live, after := s.found.live[d.ID], s.found.rebuilt[d.ID]
		if !d.Kind.swapped(removing) {
			after = live
		}
		all[i] = Balances{Currency: live.currency, Before: live.balance, After: after.balance}
		if after.currency != nil {
			all[i].Currency = after.currency
		}
	}
	return all
}

// readBalances reads the balances of the listed differences from the snapshots of the comparison.
// Later, the live balances would include events that the rebuilt balances do not have yet.
func (c *comparison) readBalances(ctx context.Context, live, rebuilt pgx.Tx) (err error) {
	if a := c.shadow.accounts; !c.opts.Balances || a == nil || !a.balances {
		return nil
	}
	ids := make([]string, len(c.report.Differences))
	for i := range c.report.Differences {
		ids[i] = c.report.Differences[i].ID
	}
	if c.live, err = loadBalances(ctx, live, ids); err == nil {
		c.rebuilt, err = loadBalances(ctx, rebuilt, ids)
	}
	return err
}

type storedBalance struct{ currency, balance *string }

// loadBalances returns the balances of accounts by id. The transaction decides whether the live or
// the shadow table is read.
func loadBalances(ctx context.Context, tx pgx.Tx, ids []string) (map[string]storedBalance, error) {
	all, id, b := map[string]storedBalance{}, "", storedBalance{}
	into := []any{&id, &b.currency, &b.balance}
	err := readmodel.Each(ctx, tx, "read the balances", sql.Query("rebuild_balances"), []any{ids}, into, func() error {
		all[id] = b
		return nil
	})
	return all, err
}
