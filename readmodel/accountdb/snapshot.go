package accountdb

import (
	"context"
	"fmt"
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
	var a SnapshotAccount
	return s.each(ctx, []any{&a.ID, &a.Exists, &a.Version, &a.Balance, &a.Since}, func() error { return fn(&a) },
		"verify_accounts", since)
}

// Some calls fn with each of the given accounts that exists, sorted by the bytes of the account id.
func (s *Snapshot) Some(ctx context.Context, ids []string, fn func(*SnapshotAccount) error) error {
	var a SnapshotAccount
	return s.each(ctx, []any{&a.ID, &a.Exists, &a.Version, &a.Balance}, func() error { return fn(&a) }, "verify_some", ids)
}

// each runs a query and calls fn for each row. It returns an error of fn unchanged.
func (s *Snapshot) each(ctx context.Context, into []any, fn func() error, query string, args ...any) error {
	rows, _ := s.tx.Query(ctx, sql.Query(query), args...)
	var own error
	_, err := pgx.ForEachRow(rows, into, func() error { own = fn(); return own })
	if err != nil && own == nil {
		return fmt.Errorf("read the balances: %w", err)
	}
	return own
}

// Clock returns the present time of the database's clock. The same clock sets updated_at.
func Clock(ctx context.Context, pool *pgxpool.Pool) (time.Time, error) {
	return readmodel.One[time.Time](ctx, pool, "read the database's clock", "clock")
}
