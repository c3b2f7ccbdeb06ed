// Package database has the commands that need only the database: migrate, inbox, audit and projection
// check.
package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
	"projector/readmodel/citus"
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

func (c *upCmd) Run(ctx context.Context, std *output.Streams) error {
	if c.FourEyes != "" && !slices.Contains(Choices["four-eyes"], c.FourEyes) {
		return exit.Usagef("--four-eyes (PROJECTOR_FOUR_EYES): %q is neither on nor off", c.FourEyes)
	}
	pool, err := flags.OpenDatabase(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	options, err := c.ConnectOptions()
	if err != nil {
		return err
	}
	done, err := readmodel.Migrate(ctx, c.DatabaseURL, options...)
	for _, m := range done {
		std.Printf("applied %s\n", m.Name)
	}
	if err == nil && len(done) == 0 {
		std.Printf("the schema is up to date\n")
	}
	if err != nil {
		return err
	}
	if err := c.citus(ctx, std, pool); err != nil {
		return err
	}
	return c.fourEyes(ctx, std, pool)
}

// fourEyes turns the four-eyes policy on or off. Without --four-eyes it warns if the policy is on
// but somebody can bypass it. A person may have granted a role without knowing that it bypasses the
// policy.
func (c *upCmd) fourEyes(ctx context.Context, std *output.Streams, pool *pgxpool.Pool) error {
	if c.FourEyes == "" {
		if leak, is := errors.AsType[errclass.Text](readmodel.CheckFourEyes(ctx, pool)); is {
			std.Notef("four eyes are on, but %s\n", leak)
		}
		return nil
	}
	err := readmodel.SetFourEyes(ctx, pool, c.FourEyes == "on", c.ActorName())
	if errors.Is(err, readmodel.ErrNoOperators) {
		std.Notef("%s: only the program asks for a second person now; sql/roles.sql makes the roles by which PostgreSQL does\n", err)
		err = nil
	}
	if err == nil {
		std.Printf("four eyes are %s\n", c.FourEyes)
	}
	return err
}

type statusCmd struct {
	flags.DatabaseFlags
	output.Flags
}

// Run lists the migrations. It never changes the database, even if the tables do not exist yet.
func (c *statusCmd) Run(ctx context.Context, std *output.Streams) error {
	pool, err := flags.OpenDatabase(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	migrations, err := readmodel.Migrations(ctx, pool)
	if err != nil {
		return err
	}
	rows, missing := c.Rows(std.Out, "NAME", output.Right("VERSION", 7), output.Left("NAME", 36), output.Left("APPLIED", 20)), 0
	for i := range migrations {
		if migrations[i].At.IsZero() {
			missing++
		}
		addMigration(rows, &migrations[i])
	}
	if err := rows.End(""); err != nil {
		return err
	}
	if err := sayDistributed(ctx, pool, std); err != nil {
		return err
	}
	if missing > 0 {
		std.Notef("%d of %d migrations are not applied: run `projector migrate`\n", missing, len(migrations))
	}
	return nil
}

type migrationDocument struct {
	Version   int64   `json:"version"`
	Name      *string `json:"name"`       // null: a migration of a newer program
	AppliedAt *string `json:"applied_at"` // null: not applied
}

func addMigration(rows *output.Rows, m *readmodel.Migration) {
	d, at := migrationDocument{Version: m.Version, Name: output.OrNull(m.Name)}, "not applied"
	if !m.At.IsZero() {
		d.AppliedAt, at = output.OrNull(output.TimeText(m.At)), output.SecondText(m.At)
	}
	rows.Add(d, m.Version, cmp.Or(m.Name, "of a newer program"), at)
}

// movedAtOnce is a number of bytes. Tables with more bytes in total are moved to the workers of
// Citus only with --citus-move.
const movedAtOnce = 64 << 20

// citus distributes the tables if --citus is given. If the tables are large and --citus-move is not
// given, the method only prints their sizes and returns an error.
func (c *upCmd) citus(ctx context.Context, std *output.Streams, pool *pgxpool.Pool) error {
	if !c.Citus {
		return nil
	}
	tables, err := citus.Load(ctx, pool)
	if err != nil {
		return err
	}
	if tables == nil {
		return exit.Refuse(string(citus.ErrMissing))
	}
	var bytes int64
	for _, t := range tables {
		if t.Shards == 0 {
			bytes += t.Bytes
			std.Notef("to be distributed: %s, about %d rows, %d MiB\n", t.Name, t.Rows, t.Bytes>>20)
		}
	}
	if bytes > movedAtOnce && !c.CitusMove {
		return exit.Refusef("--citus: %d MiB are moved to the workers, and nobody can read or write these tables meanwhile: "+
			"stop the consumers, and type it again with --citus-move", bytes>>20)
	}
	done, err := citus.Distribute(ctx, pool)
	for _, t := range done {
		std.Printf("distributed %s\n", t.Name)
	}
	if err == nil && len(done) == 0 {
		std.Printf("the tables are distributed\n")
	}
	return err
}

// sayDistributed prints which tables are distributed, and which are not yet.
func sayDistributed(ctx context.Context, pool *pgxpool.Pool, std *output.Streams) error {
	tables, err := citus.Load(ctx, pool)
	var with, without []string
	for _, t := range tables {
		if t.Shards > 0 {
			with = append(with, fmt.Sprintf("%s (%d shards)", t.Name, t.Shards))
		} else {
			without = append(without, t.Name)
		}
	}
	if len(with) > 0 {
		std.Notef("distributed by Citus: %s\n", strings.Join(with, ", "))
	}
	if len(without) > 0 {
		std.Notef("not distributed, though the database has Citus: %s: `projector migrate --citus`\n", strings.Join(without, ", "))
	}
	return err
}
