// Package database has the commands that need only the database: migrate, inbox, audit and projection
// check.
package database

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
)

// Choices has the possible values of flags, by the flag's name.
var Choices = map[string][]string{"four-eyes": {"on", "off"}}

// MigrateCmd are the commands about the schema.
type MigrateCmd struct {
	Up     upCmd     `cmd:"" default:"withargs" help:"Bring the database schema up to date. Safe to run from many places at once."`
	Status statusCmd `cmd:"" help:"List the migrations, and when each was applied."`
}

type upCmd struct {
	Citus     bool   `help:"Have Citus distribute the tables of accounts, too, by their account."`
	CitusMove bool   `help:"With --citus, also move large tables. Nothing can read or write them until it is done."`
	FourEyes  string `placeholder:"POLICY" help:"As the owner: with on, every change by a command must be requested by one login and approved by another; off ends that."`
	flags.ActorFlags
	flags.DatabaseFlags
}

func (c *upCmd) Run(ctx context.Context, io *output.Streams) error {
	if c.FourEyes != "" && !slices.Contains(Choices["four-eyes"], c.FourEyes) {
		return exit.Usagef("--four-eyes (PROJECTOR_FOUR_EYES): %q is neither on nor off", c.FourEyes)
	}
	pool, err := c.Pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	reachable, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	if err := pool.Ping(reachable); err != nil {
		return fmt.Errorf("reach PostgreSQL by --database-url (DATABASE_URL): %w", err)
	}
	options, err := c.ConnectOptions()
	if err != nil {
		return err
	}
	done, err := readmodel.Migrate(ctx, c.DatabaseURL, options...)
	var malformed *pgconn.ParseConfigError
	if errors.As(err, &malformed) {
		return flags.BadDatabaseURL(err)
	}
	for _, m := range done {
		io.Printf("applied %s\n", m.Name)
	}
	if err == nil && len(done) == 0 {
		io.Printf("the schema is up to date\n")
	}
	if err != nil {
		return err
	}
	if err := c.citus(ctx, io, pool); err != nil {
		return err
	}
	return c.fourEyes(ctx, io, pool)
}

// fourEyes turns the four-eyes policy on or off. Without --four-eyes it warns if the policy is on
// but somebody can bypass it. A person may have granted a role without knowing that it bypasses the
// policy.
func (c *upCmd) fourEyes(ctx context.Context, io *output.Streams, pool *pgxpool.Pool) error {
	if c.FourEyes == "" {
		var leak *readmodel.OperatorWritesError
		if errors.As(readmodel.CheckFourEyes(ctx, pool), &leak) {
			io.Notef("four eyes are on, but %s\n", leak)
		}
		return nil
	}
	err := readmodel.SetFourEyes(ctx, pool, c.FourEyes == "on", c.ActorName())
	if errors.Is(err, readmodel.ErrNoOperators) {
		io.Notef("%s: only the program asks for a second person now; sql/roles.sql makes the roles by which PostgreSQL does\n", err)
		err = nil
	}
	if err == nil {
		io.Printf("four eyes are %s\n", c.FourEyes)
	}
	return err
}
