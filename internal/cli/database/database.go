// Package database has the commands that look after the database: migrate and inbox.
package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/internal/cli/connect"
	"projector/internal/cli/output"
	"projector/internal/cli/parse"
	"projector/readmodel"
	"projector/readmodel/inbox"
)

// MigrateCmd is the command migrate.
type MigrateCmd struct {
	connect.DatabaseFlags
}

// Run migrates and says what it did.
func (c *MigrateCmd) Run(ctx context.Context, io *output.Streams) error {
	pool, err := c.Pool(ctx)
	if err != nil {
		return err
	}
	reachable, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
	err = pool.Ping(reachable)
	cancel()
	pool.Close()
	if err != nil {
		return fmt.Errorf("reach PostgreSQL: %w", err)
	}
	options, err := c.ConnectOptions()
	if err != nil {
		return err
	}
	done, err := readmodel.Migrate(ctx, c.DatabaseURL, options...)
	var malformed *pgconn.ParseConfigError
	if errors.As(err, &malformed) {
		return connect.BadDatabaseURL(err)
	}
	for _, m := range done {
		_, _ = fmt.Fprintf(io.Out, "applied %s\n", m.Name)
	}
	if err == nil && len(done) == 0 {
		_, _ = fmt.Fprintln(io.Out, "the schema is up to date")
	}
	return err
}

// InboxCmd are the commands about the markers of messages taken in.
type InboxCmd struct {
	Prune inboxPruneCmd `cmd:"" help:"Delete markers that are older than the retention. A running projector does so by itself."`
}

type inboxPruneCmd struct {
	Retention time.Duration `env:"INBOX_RETENTION" default:"168h" placeholder:"DURATION" help:"Delete markers older than this (default 168h)."`
	connect.DatabaseFlags
	output.Flags
}

// pruneDocument is what a pruning did, in JSON.
type pruneDocument struct {
	Deleted int64 `json:"deleted"`
}

// Run prunes the inboxes of all projections.
func (c *inboxPruneCmd) Run(ctx context.Context, std *output.Streams) error {
	if err := parse.Retention("--retention", c.Retention); err != nil {
		return err
	}
	pool, err := connect.ReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	var done pruneDocument
	shown := output.NewProgress(std.Err, "deleted")
	err = inbox.PruneAll(ctx, pool, c.Retention, func(n int64) {
		done.Deleted += n
		shown.Update(done.Deleted, 0)
	})
	shown.Done()
	if err != nil {
		return err
	}
	if c.JSON() {
		return output.PrintJSON(std.Out, done)
	}
	_, err = fmt.Fprintf(std.Out, "deleted %d markers\n", done.Deleted)
	return err
}
