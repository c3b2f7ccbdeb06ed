package accountdb

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
)

// LookUp reads accounts from the database, for BenchmarkLookUp.
func LookUp(ctx context.Context, pool *pgxpool.Pool, ids []string, learn func(*projection.StoredAccount)) error {
	return Store{DB: Of(pool, readmodel.BalanceName), FirstVersion: 1}.Accounts(ctx, ids, learn)
}
