package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
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
	if hasCode(err, undefinedTable) {
		err = cmp.Or(checkVisible(ctx, pool), err)
	}
	if err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	if len(missing) == 0 {
		return nil
	}
	if missing[0] == readOnly {
		return &pgconn.PgError{Severity: "ERROR", Code: "25006", Message: "the server is read-only: a standby, or a failover is under way"}
	}
	return missingPrivileges(strings.Join(missing, ", "))
}

// SQLSTATEs that are asked for here.
const (
	insufficientPrivilege = "42501"
	invalidParameterValue = "22023"
	queryCanceled         = "57014"
	undefinedTable        = "42P01"
)

func hasCode(err error, code string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == code
}

// missingPrivileges is what PostgreSQL would say, with all that is missing at once.
func missingPrivileges(what string) error {
	return &pgconn.PgError{Severity: "ERROR", Code: insufficientPrivilege, Message: "missing privileges: " + what}
}

// checkVisible tells a schema that may not be used, whose tables PostgreSQL calls
// undefined, from one that is not there.
func checkVisible(ctx context.Context, pool *pgxpool.Pool) error {
	var hidden string
	err := pool.QueryRow(ctx, sql.Query("hidden_schema")).Scan(&hidden)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for the schema: %w", err)
	}
	return missingPrivileges("USAGE on schema " + hidden)
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
