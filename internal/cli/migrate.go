package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/readmodel"
)

type migrateCmd struct {
	databaseFlags
}

// oneShotWithin is how long a one-shot command tries to reach a server.
const oneShotWithin = 25 * time.Second

// Run migrates and says what it did.
func (c *migrateCmd) Run(ctx context.Context, io *streams) error {
	pool, err := c.pool(ctx)
	if err != nil {
		return err
	}
	reachable, cancel := context.WithTimeout(ctx, oneShotWithin)
	err = pool.Ping(reachable)
	cancel()
	pool.Close()
	if err != nil {
		return fmt.Errorf("reach PostgreSQL: %w", err)
	}
	options, err := c.connect()
	if err != nil {
		return err
	}
	done, err := readmodel.Migrate(ctx, c.DatabaseURL, options...)
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return badDatabaseURL(err)
	}
	for _, m := range done {
		_, _ = fmt.Fprintf(io.out, "applied %s\n", m.Name)
	}
	if err == nil && len(done) == 0 {
		_, _ = fmt.Fprintln(io.out, "the schema is up to date")
	}
	return err
}
