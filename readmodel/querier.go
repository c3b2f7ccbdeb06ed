package readmodel

import (
	"context"
	"errors"
	"fmt"
	"iter"

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

// One returns the value of a query that has one row with one column. The parameter query is the name
// of the query's file. An error begins with the text in the parameter what.
func One[T any](ctx context.Context, db Querier, what, query string, args ...any) (value T, err error) {
	if err := db.QueryRow(ctx, sql.Query(query), args...).Scan(&value); err != nil {
		return value, fmt.Errorf("%s: %w", what, err)
	}
	return value, nil
}

// All is like One, for a query with any number of rows and columns.
func All[T any](ctx context.Context, db Querier, what, query string, args ...any) ([]T, error) {
	return Collect(ctx, db, pgx.RowToStructByPos[T], what, sql.Query(query), args...)
}

// Texts is like One, for a query with any number of rows. Its column is a text.
func Texts(ctx context.Context, db Querier, what, query string, args ...any) ([]string, error) {
	return Collect(ctx, db, pgx.RowTo[string], what, sql.Query(query), args...)
}

// Collect runs the text of a query and returns its rows, as the function scan reads them. An error
// begins with the text in the parameter what.
func Collect[T any](ctx context.Context, db Querier, scan pgx.RowToFunc[T], what, text string, args ...any) ([]T, error) {
	rows, _ := db.Query(ctx, text, args...)
	values, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return values, nil
}

// Each is like Collect. For each row, it scans the columns into the variables in the parameter into,
// and then calls fn.
func Each(ctx context.Context, db Querier, what, text string, args, into []any, fn func() error) error {
	rows, _ := db.Query(ctx, text, args...)
	if _, err := pgx.ForEachRow(rows, into, fn); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Map is like Each, for a query with two columns. It returns the second column of each row by the
// first one.
func Map[K comparable, V any](ctx context.Context, db Querier, what, text string, args ...any) (map[K]V, error) {
	var (
		values = map[K]V{}
		key    K
		value  V
	)
	err := Each(ctx, db, what, text, args, []any{&key, &value}, func() error {
		values[key] = value
		return nil
	})
	return values, err
}

// Stream returns an iterator over the values for which each calls fn. The function each must end
// when fn returns an error, and must return this error. Any other error of each is the last element
// of the iteration.
func Stream[T any](each func(fn func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := each(func(value T) error {
			if !yield(value, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			var none T
			yield(none, err)
		}
	}
}

// errStopped ends a query when the caller needs no more values.
var errStopped = errors.New("stopped")
