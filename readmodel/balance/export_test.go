package balance

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accounts"
)

// Write writes changes that do not come from a fold. Without the name of a projection, they are
// changes of balances.
func Write(ctx context.Context, pool *pgxpool.Pool, p readmodel.Partition, pos, moved projection.Position, c *accounts.Changes, copies bool) error {
	p.Projection = cmp.Or(p.Projection, readmodel.BalanceName)
	return write(ctx, pool, p, pos, moved, c, nil, copies)
}

// ReadWithin sets the time limit of a query of all versions.
func (r *VersionReader) ReadWithin(limit time.Duration) *VersionReader {
	r.within = limit
	return r
}
