package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"

	projectorsql "projector/sql"
)

// Migration is a migration of this program, or one that a newer program applied.
type Migration struct {
	Version int64
	Name    string    // of the file; empty if a newer program applied it
	At      time.Time // when it was applied; zero if it was not
}

// Migrations returns all migrations in order. It changes nothing. In a database without a schema,
// no migration is applied yet.
func Migrations(ctx context.Context, pool *pgxpool.Pool) ([]Migration, error) {
	migrations, err := embedded()
	if err != nil {
		return nil, err
	}
	add := func(version int64, at time.Time) {
		i := slices.IndexFunc(migrations, func(m Migration) bool { return m.Version == version })
		if i < 0 {
			i, migrations = len(migrations), append(migrations, Migration{Version: version})
		}
		migrations[i].At = at
	}
	var (
		version int64
		at      time.Time
	)
	rows, err := pool.Query(ctx, projectorsql.Query("schema_applied"))
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&version, &at}, func() error { add(version, at); return nil })
	}
	if HasCode(err, undefinedTable) {
		err = checkVisible(ctx, pool)
	}
	if err != nil {
		return nil, fmt.Errorf("read the schema version: %w", err)
	}
	slices.SortFunc(migrations, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	return migrations, nil
}

// embedded returns the migrations of this program in order, because their file names begin with the
// version.
func embedded() ([]Migration, error) {
	files, err := fs.Glob(projectorsql.Migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	migrations := make([]Migration, len(files))
	for i, file := range files {
		version, err := goose.NumericComponent(file)
		if err != nil {
			return nil, err
		}
		migrations[i] = Migration{Version: version, Name: path.Base(file)}
	}
	return migrations, nil
}
