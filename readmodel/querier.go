package readmodel

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// Querier runs queries. It is a pool, a connection or a transaction. The error of Query is also the
// error of its rows. A caller that reads the rows does not have to check the error of Query.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Texts returns the rows of a query that has one text column. The parameter query is the name of
// the query's file.
func Texts(ctx context.Context, db Querier, query string, args ...any) ([]string, error) {
	rows, _ := db.Query(ctx, sql.Query(query), args...)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// ErrStopped ends an iteration early. It is not a failure.
var ErrStopped = errors.New("stopped")
