package database

import (
	"cmp"
	"context"
	"time"

	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
)

type statusCmd struct {
	flags.DatabaseFlags
	output.Flags
}

// Run lists the migrations. It never changes the database, even if the tables do not exist yet.
func (c *statusCmd) Run(ctx context.Context, std *output.Streams) error {
	pool, err := c.Pool(ctx)
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
		d.AppliedAt, at = output.OrNull(output.TimeText(m.At)), m.At.UTC().Format(time.RFC3339)
	}
	rows.Add(d, m.Version, cmp.Or(m.Name, "of a newer program"), at)
}
