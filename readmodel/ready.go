package readmodel

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/sql"
)

// CheckReady fails when the database cannot be reached, cannot be written, lacks a
// grant the balances need, or when their schema changed under the program.
func CheckReady(ctx context.Context, pool *pgxpool.Pool) error {
	return checkReady(ctx, pool, sql.Query("check_ready"))
}

// checkReady runs a query that answers what is missing, one a row.
func checkReady(ctx context.Context, pool *pgxpool.Pool, query string) error {
	// Planned anew each time: a plan kept from before would not notice a dropped table.
	rows, err := pool.Query(ctx, query, pgx.QueryExecModeExec)
	if err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	if len(missing) == 0 {
		return nil
	}
	if missing[0] == readOnly {
		return &pgconn.PgError{Severity: "ERROR", Code: "25006", Message: "the server is read-only: a standby, or a failover is under way"}
	}
	return &pgconn.PgError{Severity: "ERROR", Code: "42501", Message: fmt.Sprintf("missing privileges: %v", missing)}
}

// readOnly is what such a query answers, before anything else, of a server that takes no writes.
const readOnly = "read-only"

// ParkedSummary counts what waits behind holes.
type ParkedSummary struct {
	Accounts  int64
	Events    int64
	OldestGap time.Duration
}

// CountParked counts what waits behind holes.
func CountParked(ctx context.Context, pool *pgxpool.Pool) (ParkedSummary, error) {
	var (
		s       ParkedSummary
		seconds float64
	)
	if err := pool.QueryRow(ctx, sql.Query("parked_summary")).Scan(&s.Accounts, &s.Events, &seconds); err != nil {
		return s, fmt.Errorf("count parked events: %w", err)
	}
	s.OldestGap = time.Duration(seconds * float64(time.Second))
	return s, nil
}
