package accountdb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/readmodel"
	"projector/sql"
)

// Snapshot reads all balances as they were at one moment. It also works on a read replica.
type Snapshot struct{ tx pgx.Tx }

// SnapshotAccount is one account of a snapshot.
type SnapshotAccount struct {
	ID      string
	Exists  bool // false if it waits for its first version
	Version int64
	Balance string // decimal
	Since   bool   // its row was written since the given time; or it has no row, and its wait began since then
}

// ReadSnapshot calls fn with a snapshot. The snapshot ends when fn returns.
func ReadSnapshot(ctx context.Context, pool *pgxpool.Pool, fn func(*Snapshot) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("verify_session")); err != nil {
			return fmt.Errorf("read the balances: %w", err)
		}
		return fn(&Snapshot{tx})
	})
}

// Accounts calls fn with every account, sorted by the bytes of the account id. The account is valid
// until fn returns. If the parameter since is nil, the field Since is false for all accounts.
func (s *Snapshot) Accounts(ctx context.Context, since *time.Time, fn func(*SnapshotAccount) error) error {
	rows, _ := s.tx.Query(ctx, sql.Query("verify_accounts"), since)
	var (
		a   SnapshotAccount
		own error // of fn; it is returned unchanged
	)
	_, err := pgx.ForEachRow(rows, []any{&a.ID, &a.Exists, &a.Version, &a.Balance, &a.Since}, func() error { own = fn(&a); return own })
	if err != nil && own == nil {
		return fmt.Errorf("read the balances: %w", err)
	}
	return own
}

// Some calls fn with each of the given accounts that exists, sorted by the bytes of the account id.
func (s *Snapshot) Some(ctx context.Context, ids []string, fn func(*SnapshotAccount) error) error {
	accounts, err := LoadCurrent(ctx, s.tx, ids)
	slices.SortFunc(accounts, func(a, b Current) int { return strings.Compare(a.AccountID, b.AccountID) })
	for i := range accounts {
		a := &accounts[i]
		if err := fn(&SnapshotAccount{ID: a.AccountID, Exists: a.Exists, Version: a.Version, Balance: a.Balance}); err != nil {
			return err
		}
	}
	return err
}

// Clock returns the present time of the database's clock. The same clock sets updated_at.
func Clock(ctx context.Context, pool *pgxpool.Pool) (time.Time, error) {
	return readmodel.One[time.Time](ctx, pool, "read the database's clock", "clock")
}
