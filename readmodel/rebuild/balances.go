package rebuild

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/sql"
)

// Balances are the balances of an account around a swap, as decimal numbers with the decimals of the
// currency. They are nil if there is no row then.
type Balances struct {
	Currency      *string
	Before, After *string
}

// Balances returns the balances of the listed differences, in the order of the list. It returns nil
// if the projection has no balances. The parameter removing is SwapOptions.Remove.
func (s *Shadow) Balances(ctx context.Context, report *Report, removing bool) ([]Balances, error) {
	if s.accounts == nil || !s.accounts.balances {
		return nil, nil
	}
	ids := make([]string, len(report.Differences))
	for i := range report.Differences {
		ids[i] = report.Differences[i].ID
	}
	live, err := loadBalances(ctx, s.live, ids)
	if err != nil {
		return nil, err
	}
	shadow, err := loadBalances(ctx, s.Pool, ids)
	if err != nil {
		return nil, err
	}
	all := make([]Balances, len(ids))
	for i, id := range ids {
		after := shadow[id]
		if kind := report.Differences[i].Kind; !kind.changes() || kind == Unknown && !removing {
			after = live[id]
		}
		all[i] = Balances{Currency: live[id].currency, Before: live[id].balance, After: after.balance}
		if after.currency != nil {
			all[i].Currency = after.currency
		}
	}
	return all, nil
}

type storedBalance struct{ currency, balance *string }

// loadBalances returns the balances of accounts by id. The pool decides whether the live or the
// shadow table is read.
func loadBalances(ctx context.Context, pool *pgxpool.Pool, ids []string) (map[string]storedBalance, error) {
	rows, _ := pool.Query(ctx, sql.Query("rebuild_balances"), ids)
	all, id, b := map[string]storedBalance{}, "", storedBalance{}
	_, err := pgx.ForEachRow(rows, []any{&id, &b.currency, &b.balance}, func() error {
		all[id] = b
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the balances: %w", err)
	}
	return all, nil
}
