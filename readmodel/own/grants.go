package own

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection/file"
	"projector/readmodel"
	"projector/sql"
)

// grants returns the table privileges that a role lacks for a projection's statements, as GRANT
// statements. It derives them from the text of the statements. An empty role means the role that
// this login uses.
func grants(ctx context.Context, pool *pgxpool.Pool, p *file.Projection, role string) (grants []string, err error) {
	var tables, privileges []string
	for _, use := range p.Uses() {
		tables, privileges = append(tables, use.Table), append(privileges, use.Privilege)
	}
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("custom_become")); err != nil {
			return err
		}
		grants, err = readmodel.Texts(ctx, tx, "find out which grants are missing", "custom_grants", tables, privileges, role)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find out which grants are missing: %w", err)
	}
	return grants, nil
}
