package balance

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accounts"
)

// Write writes changes of balances that do not come from a fold, for the benchmark of writing.
func Write(ctx context.Context, pool *pgxpool.Pool, p readmodel.Partition, pos, moved projection.Position, c *accounts.Changes, copies bool) error {
	p.Projection = readmodel.BalanceName
	return write(ctx, pool, p, pos, moved, c, nil, copies)
}
