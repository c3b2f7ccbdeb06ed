package database

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/own"
	"projector/readmodel/rebuild"
)

// ProjectionCmd are the commands about custom projections.
type ProjectionCmd struct {
	Check checkCmd `cmd:"" help:"Check a projection file: its header, and each statement against the database, as the role that will run it. Runs nothing."`
}

type checkCmd struct {
	File string `arg:"" placeholder:"FILE" help:"The projection file."`
	flags.DatabaseFlags
	output.Flags
}

type checkDocument struct {
	Name  string    `json:"name"`
	Mode  file.Mode `json:"mode"`
	Types []string  `json:"types"`
}

func (c *checkCmd) Run(ctx context.Context, std *output.Streams) error {
	p, err := flags.ReadProjectionFile("", flags.FileNamed(c.File))
	if err != nil {
		return err
	}
	pool, err := flags.OpenReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	if err := own.CheckForRunner(ctx, pool, p); err != nil {
		return c.refusal(err)
	}
	if err := rebuild.CheckTables(ctx, pool, own.Definition(p).Rebuilds()); err != nil {
		return c.tableRefusal(&p, err)
	}
	var kept *readmodel.FileChangedError
	switch err := readmodel.CheckFile(ctx, pool, &p); {
	case errors.As(err, &kept):
		std.Notef("%s has changed: %s\n", c.File, kept)
	case err != nil:
		return err
	}
	for _, line := range p.UpdatesFromEvents() {
		std.Notef("warning: %s: line %d: UPDATE … FROM new_events changes a row once, however many events it matches, and ignores the others: "+
			"group the events first, FROM (SELECT … FROM new_events GROUP BY …)\n", c.File, line)
	}
	tables := ""
	if len(p.Tables) == 0 {
		tables = "; without \"-- tables:\" it cannot be rebuilt"
	}
	return c.Print(std.Out, checkDocument{Name: p.Name, Mode: p.Mode, Types: p.Types}, fmt.Sprintf("%s: %s, mode %s, uses %s%s\n",
		output.Printable(c.File), p.Name, p.Mode, output.Printable(strings.Join(p.Types, ", ")), tables))
}

// refusal adds the number of the line in the file to PostgreSQL's error about a statement. A
// missing grant is not a mistake in the file, so it is no usage error.
func (c *checkCmd) refusal(err error) error {
	var (
		statement *own.StatementError
		server    *pgconn.PgError
		touched   *own.TouchedError
	)
	if !errors.As(err, &statement) || !errors.As(err, &server) {
		return err
	}
	text := fmt.Sprintf("%s: line %d: %s (SQLSTATE %s)", c.File, statement.Line, server.Message, server.Code)
	if server.Hint != "" {
		text += "; " + server.Hint
	}
	if server.Code != readmodel.InsufficientPrivilege || errors.As(err, &touched) {
		return exit.Usagef("%s", text)
	}
	if len(statement.Grants) > 0 {
		text += "; missing: " + strings.Join(statement.Grants, " ")
	}
	return exit.Refuse(text)
}

// tableRefusal returns an error for a table that cannot be rebuilt. A table without a primary key
// is not a mistake in the file, so it is no usage error.
func (c *checkCmd) tableRefusal(p *file.Projection, err error) error {
	var table *rebuild.TableError
	if !errors.As(err, &table) {
		return err
	}
	text := fmt.Sprintf("%s: line %d: tables: %s", c.File, p.TablesLine, table)
	if table.Missing {
		return exit.Usagef("%s", text)
	}
	return exit.Refuse(text)
}
