package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/readmodel"
)

// databaseFlags say where the read model is.
type databaseFlags struct {
	DatabaseURL string `env:"DATABASE_URL" placeholder:"URL" group:"PostgreSQL" help:"Where the read model is, e.g. postgres://user@host:5432/bank. Default: the PG* environment variables."`
}

func (f *databaseFlags) pool(ctx context.Context) (*pgxpool.Pool, error) {
	pool, err := readmodel.OpenPool(ctx, f.DatabaseURL)
	if err != nil {
		return nil, badDatabaseURL(err)
	}
	return pool, nil
}

// badDatabaseURL names the flag; errclass sees to it that no password is printed.
func badDatabaseURL(err error) error {
	return usagef("--database-url (DATABASE_URL): %s", errclass.Safe(err))
}
