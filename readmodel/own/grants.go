package own

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection/file"
	"projector/sql"
)

// grants are the statements that give the role of a projection's SQL what its statements need
// of tables and it does not have, as far as their words tell.
func grants(ctx context.Context, pool *pgxpool.Pool, p *file.Projection) (grants []string, err error) {
	var tables, privileges []string
	for _, use := range p.Uses() {
		tables, privileges = append(tables, use.Table), append(privileges, use.Privilege)
	}
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("custom_become")); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sql.Query("custom_grants"), tables, privileges)
		if err == nil {
			grants, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look which grants are missing: %w", err)
	}
	return grants, nil
}
