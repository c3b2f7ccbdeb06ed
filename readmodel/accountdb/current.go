package accountdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"projector/readmodel"
	"projector/sql"
)

// Current has the same values as a row of the view account_balance_current.
type Current struct {
	AccountID  string
	Exists     bool   // the account has a balance row; otherwise it only has waiting events
	Version    int64  // 0 without a row
	WaitingFor *int64 // the missing version; nil if the account is not stale
	Balance    string // decimal, with the currency's number of decimals
	Currency   string // empty if it is not known yet
	Status     string
}

// LoadCurrent reads accounts in one statement. Unknown accounts are left out.
func LoadCurrent(ctx context.Context, db readmodel.Querier, ids []string) ([]Current, error) {
	rows, _ := db.Query(ctx, sql.Query("current_accounts"), ids)
	current, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Current])
	if err != nil {
		return nil, fmt.Errorf("read accounts: %w", err)
	}
	return current, nil
}
