package accountdb

import (
	"context"

	"projector/readmodel"
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
	return readmodel.All[Current](ctx, db, "read accounts", "current_accounts", ids)
}
