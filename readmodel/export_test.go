package readmodel

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel/accounts"
)

// Write writes changes of balances that no fold has gathered, for the benchmark of writing.
func Write(ctx context.Context, pool *pgxpool.Pool, p Partition, pos, moved projection.Position, c *accounts.Changes, copies bool) error {
	p.Projection = BalanceName
	return write(ctx, pool, p, pos, moved, c, nil, copies)
}

// LookUp reads what the database knows of accounts, for the benchmark of reading.
func LookUp(ctx context.Context, pool *pgxpool.Pool, ids []string, learn func(*projection.StoredAccount)) error {
	return accountStore{db: accountsIn(pool, BalanceName), firstVersion: 1}.Accounts(ctx, ids, learn)
}
