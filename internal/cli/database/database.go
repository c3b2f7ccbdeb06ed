// Package database has the commands that look after the database: migrate and inbox.
package database

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/internal/cli/parse"
	"projector/readmodel"
	"projector/readmodel/inbox"
)

// Choices are the values to choose from, by the flag's name.
var Choices = map[string][]string{"four-eyes": {"on", "off"}}

// MigrateCmd are the commands about the schema.
type MigrateCmd struct {
	Up     upCmd     `cmd:"" default:"withargs" help:"Bring the database schema up to date. Safe to run from many places at once."`
	Status statusCmd `cmd:"" help:"List the migrations, and when each was applied."`
}

type upCmd struct {
	Citus     bool   `help:"Have Citus distribute the tables of accounts, too, by their account."`
	CitusMove bool   `help:"With --citus, also where there is much to move: nobody reads or writes these tables meanwhile."`
	FourEyes  string `placeholder:"POLICY" help:"As the owner: with on, every change by a command must be requested by one login and approved by another; off ends that."`
	connect.ActorFlags
	connect.DatabaseFlags
}

// Run migrates and says what it did.
func (c *upCmd) Run(ctx context.Context, io *output.Streams) error {
	if c.FourEyes != "" && !slices.Contains(Choices["four-eyes"], c.FourEyes) {
		return exit.Usagef("--four-eyes (PROJECTOR_FOUR_EYES): %q is neither on nor off", c.FourEyes)
	}
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
	if err != nil {
		return err
	}
	if err := c.citus(ctx, io); err != nil {
		return err
	}
	return c.fourEyes(ctx, io)
}

// fourEyes turns the policy on or off. When that is not wanted, it warns if the policy is on
// and means nothing any more: whoever gave a role away may not have known.
func (c *upCmd) fourEyes(ctx context.Context, io *output.Streams) error {
	pool, err := c.Pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if c.FourEyes == "" {
		var leak *readmodel.OperatorWritesError
		if errors.As(readmodel.CheckFourEyes(ctx, pool), &leak) {
			_, _ = fmt.Fprintf(io.Err, "four eyes are on, but %s\n", leak)
		}
		return nil
	}
	err = readmodel.SetFourEyes(ctx, pool, c.FourEyes == "on", c.ActorName())
	if errors.Is(err, readmodel.ErrNoOperators) {
		_, _ = fmt.Fprintf(io.Err, "%s: only the program asks for a second person now; sql/roles.sql makes the roles by which PostgreSQL does\n", err)
		err = nil
	}
	if err == nil {
		_, _ = fmt.Fprintf(io.Out, "four eyes are %s\n", c.FourEyes)
	}
	return err
}

// InboxCmd are the commands about the markers of messages taken in.
type InboxCmd struct {
	Prune inboxPruneCmd `cmd:"" help:"Delete markers that are older than the retention. A running projector does this by itself."`
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
	held, err := inbox.PruneAll(ctx, pool, c.Retention, func(n int64) {
		done.Deleted += n
		shown.Update(done.Deleted, 0)
	})
	shown.Done()
	if err != nil {
		return refusedByFourEyes(ctx, pool, err)
	}
	for _, handler := range slices.Sorted(maps.Keys(held)) {
		for _, hold := range held[handler] {
			_, _ = fmt.Fprintf(std.Err, "%s keeps its markers until its records are read again: %s\n", handler, hold)
		}
	}
	if c.JSON() {
		return output.PrintJSON(std.Out, done)
	}
	_, err = fmt.Fprintf(std.Out, "deleted %d markers\n", done.Deleted)
	return err
}

// refusedByFourEyes says who prunes while operators may not write.
func refusedByFourEyes(ctx context.Context, pool *pgxpool.Pool, err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "42501" {
		return err
	}
	if on, unknown := readmodel.FourEyes(ctx, pool); unknown != nil || !on {
		return err
	}
	return exit.Refuse("four eyes are on (SQLSTATE 42501): a login in projector_approver prunes the inbox; running consumers prune it by themselves")
}
