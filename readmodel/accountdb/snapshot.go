package accountdb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/sql"
)

// Snapshot reads the balances as they were at one moment, whatever is written
// meanwhile. It works on a read replica.
type Snapshot struct{ tx pgx.Tx }

// SnapshotAccount is one account of a snapshot.
type SnapshotAccount struct {
	ID      string
	Exists  bool // false: it only waits for its first version
	Version int64
	Balance string // decimal
	Since   bool   // written, or parked, at or after the moment asked for
}

// ReadSnapshot hands a snapshot to fn; it ends with it.
func ReadSnapshot(ctx context.Context, pool *pgxpool.Pool, fn func(*Snapshot) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("verify_session")); err != nil {
			return fmt.Errorf("read the balances: %w", err)
		}
		return fn(&Snapshot{tx})
	})
}

// Accounts hands every account to fn, by account id in the order of bytes. What it
// hands over is valid until fn returns. A nil since means that nothing counts as
// written since.
func (s *Snapshot) Accounts(ctx context.Context, since *time.Time, fn func(*SnapshotAccount) error) error {
	var a SnapshotAccount
	return s.each(ctx, []any{&a.ID, &a.Exists, &a.Version, &a.Balance, &a.Since}, func() error { return fn(&a) },
		"verify_accounts", since)
}

// Some hands those of the given accounts to fn of which something is known, by
// account id in the order of bytes.
func (s *Snapshot) Some(ctx context.Context, ids []string, fn func(*SnapshotAccount) error) error {
	var a SnapshotAccount
	return s.each(ctx, []any{&a.ID, &a.Exists, &a.Version, &a.Balance}, func() error { return fn(&a) }, "verify_some", ids)
}

// each runs a query and fn for each of its rows. An error of fn stays as it is.
func (s *Snapshot) each(ctx context.Context, into []any, fn func() error, query string, args ...any) error {
	rows, err := s.tx.Query(ctx, sql.Query(query), args...)
	if err != nil {
		return fmt.Errorf("read the balances: %w", err)
	}
	var own error
	_, err = pgx.ForEachRow(rows, into, func() error { own = fn(); return own })
	if err != nil && own == nil {
		return fmt.Errorf("read the balances: %w", err)
	}
	return own
}

// Clock is the database's clock, which updated_at goes by.
func Clock(ctx context.Context, pool *pgxpool.Pool) (time.Time, error) {
	var now time.Time
	if err := pool.QueryRow(ctx, sql.Query("clock")).Scan(&now); err != nil {
		return now, fmt.Errorf("read the database's clock: %w", err)
	}
	return now, nil
}
