package readmodel

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// Querier is what reading needs: a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Texts are the rows of a query with one column.
func Texts(ctx context.Context, db Querier, query string, args ...any) ([]string, error) {
	rows, err := db.Query(ctx, sql.Query(query), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// ErrStopped ends an iteration whose consumer has seen enough.
var ErrStopped = errors.New("stopped")
