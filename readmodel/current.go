package readmodel

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"projector/projection"
	"projector/readmodel/accounts"
	"projector/sql"
)

// Current is an account as account_balance_current has it.
type Current struct {
	AccountID  string
	Exists     bool   // it has a balance row; else only what it waits for is known
	Version    int64  // 0 without a row
	WaitingFor *int64 // the version that is missing; nil: the account is not stale
	Balance    string // decimal, with the currency's number of decimals
	Currency   string // empty: not fixed yet
	Status     string
}

// LoadCurrent reads accounts, in one statement. Those of which nothing is known are left out.
func LoadCurrent(ctx context.Context, db Querier, ids []string) ([]Current, error) {
	rows, err := db.Query(ctx, sql.Query("current_accounts"), ids)
	if err != nil {
		return nil, fmt.Errorf("read accounts: %w", err)
	}
	current, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Current])
	if err != nil {
		return nil, fmt.Errorf("read accounts: %w", err)
	}
	return current, nil
}

// Readers wait for accounts to reach a version. They are told what has been committed, so
// that they need not ask for it. Its methods must be safe for concurrent use and quick.
type Readers interface {
	// Waiting reports whether anybody waits. Otherwise nobody is told.
	Waiting() bool
	// Written tells of an account that was written and of which nothing is parked.
	Written(accountID string, account *projection.Account)
	// Changed tells of an account that was written or of which something was parked: how it
	// stands now, the database knows.
	Changed(accountID string)
}

// tell tells readers of changes that were committed.
func tell(readers Readers, c *accounts.Changes) {
	parked := map[string]bool{}
	for _, p := range c.Parks {
		parked[p.Decoded.Event.AccountID] = true
	}
	for i := range c.Pruned {
		parked[c.Pruned[i].AccountID] = true
	}
	for i := range c.Overflows {
		parked[c.Overflows[i].AccountID] = true
	}
	for id := range parked {
		readers.Changed(id)
	}
	for chunk := range c.RowChunks(func() int { return groupRows }) {
		for i := range chunk {
			if row := &chunk[i]; !parked[row.AccountID] {
				readers.Written(row.AccountID, &row.Account)
			}
		}
	}
}
