package readmodel

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"projector/errclass"
	projectorsql "projector/sql"
)

// schemaTable is the table in which goose stores the schema's version.
const schemaTable = "projector_schema_version"

// Migrate brings the schema up to date, and returns the migrations that it applied, without their
// times. It grants the roles of sql/roles.sql the privileges that they need, if these roles exist.
// Several processes may call it at the same time, because an advisory lock lets them run one after
// the other.
func Migrate(ctx context.Context, url string, options ...ConnectOption) ([]Migration, error) {
	c := newConnector(url, options)
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*cfg.ConnConfig, stdlib.OptionBeforeConnect(c.refresh), stdlib.OptionAfterConnect(checkPath))
	defer func() { _ = db.Close() }()
	if err := checkEncoding(ctx, db); err != nil {
		return nil, exceeded(err)
	}
	if _, requested := requestedPath(cfg.ConnConfig.RuntimeParams); !requested {
		if err := checkFirst(ctx, db); err != nil {
			return nil, exceeded(err)
		}
	}
	provider, err := newProvider(db)
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	done := make([]Migration, 0, len(results))
	for _, r := range results {
		done = append(done, Migration{Version: r.Source.Version, Name: r.Source.Path})
	}
	if err != nil {
		return done, migrateError(ctx, db, err)
	}
	if _, err := db.ExecContext(ctx, projectorsql.Grants()); err != nil {
		return done, exceeded(fmt.Errorf("grant the roles of sql/roles.sql what they need: %w", err))
	}
	return done, nil
}

// exceeded adds the remedy to err if a time limit of the login was exceeded.
func exceeded(err error) error {
	if !HasCode(err, queryCanceled) && !HasCode(err, LockNotAvailable) && !HasCode(err, idleInTransaction) {
		return err
	}
	return errclass.WithCause(errclass.Safe(err)+": run it again; if the role or the database has too short a time limit, give another one "+
		"in --database-url (DATABASE_URL), such as ?statement_timeout=0&lock_timeout=1min", err)
}

// migrateError names the remedy in the error of a migration that failed because a grant is missing
// or because a time limit was exceeded.
func migrateError(ctx context.Context, db *sql.DB, err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != InsufficientPrivilege && refused.Code != noSchema {
		return exceeded(fmt.Errorf("migrate: %w", err))
	}
	var grant string
	if asked := db.QueryRowContext(ctx, projectorsql.Query("migrate_grant")).Scan(&grant); asked != nil {
		return fmt.Errorf("migrate: %w", errors.Join(err, asked))
	}
	remedy := "migrate as the role that owns the tables (the one that migrated first), or is to own them"
	if grant != "" {
		remedy = "as a superuser or the owner of the database, type: " + grant
	}
	return errclass.WithCause("migrate as the role of --database-url (DATABASE_URL): "+refused.Code+": "+refused.Message+"; "+remedy, err)
}

// checkEncoding returns an errclass.Text if the database cannot store every text. Queries for an
// account id that it cannot store would fail.
func checkEncoding(ctx context.Context, db *sql.DB) error {
	var have string
	if err := db.QueryRowContext(ctx, projectorsql.Query("server_encoding")).Scan(&have); err != nil {
		return fmt.Errorf("ask for the database's encoding: %w", err)
	}
	switch have {
	case "UTF8", "SQL_ASCII": // SQL_ASCII stores all bytes unchanged
		return nil
	}
	return errclass.Text("the database's encoding is " + have + " and must be UTF8: create one with TEMPLATE template0 ENCODING 'UTF8'")
}

// checkFirst returns an errclass.Text if the tables are in a schema that is not the first of the
// login's search_path. A migration would create new, empty tables in the first one, and all logins
// with this search_path would then use them.
func checkFirst(ctx context.Context, db *sql.DB) error {
	var tables, first string
	switch err := db.QueryRowContext(ctx, projectorsql.Query("schema_behind")).Scan(&tables, &first); {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for the tables: %w", err)
	}
	return errclass.Text("the projector's tables are in the schema " + tables + ", but the search_path of this login begins with " + first +
		", where migrate would make new ones: add search_path=" + tables + " to --database-url (DATABASE_URL), " +
		"or search_path=" + first + " to make new ones on purpose")
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	migrations, err := fs.Sub(projectorsql.Migrations, "migrations")
	if err != nil {
		return nil, err
	}
	// The locker tries once per second for ten minutes, because another process may be migrating.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 600))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, migrations,
		goose.WithTableName(schemaTable), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
}

// Unfit is the text of an error that says why a process must not use the database as it is. No retry
// solves it. The text contains no data.
type Unfit string

func (u Unfit) Error() string { return string(u) }

// SafeText implements errclass.Describer.
func (u Unfit) SafeText() string { return string(u) }

// CheckSchema returns an Unfit if the schema is missing or older than this program needs. A
// newer schema is accepted, because a rolling deployment migrates first.
func CheckSchema(ctx context.Context, pool *pgxpool.Pool) error {
	want, err := wantedVersion()
	if err != nil {
		return err
	}
	have, err := storedVersion(ctx, pool)
	if HasCode(err, undefinedTable) {
		if err := checkVisible(ctx, pool); err != nil {
			return err
		}
		have, err = storedVersion(ctx, pool) // USAGE may have been granted after the first query
	}
	switch {
	case HasCode(err, InsufficientPrivilege):
		return fmt.Errorf("missing privileges: SELECT on projector_schema_version: %w", err)
	case HasCode(err, undefinedTable):
	case err != nil:
		return fmt.Errorf("read the schema version: %w", err)
	}
	if have >= want {
		return nil
	}
	if have > 0 {
		return Unfit(fmt.Sprintf("the database schema is at version %d and this program needs %d: run `projector migrate` first", have, want))
	}
	elsewhere := ""
	err = pool.QueryRow(ctx, projectorsql.Query("schema_elsewhere")).Scan(&elsewhere)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Unfit("the database has no projector schema: run `projector migrate` first")
	case err != nil:
		return fmt.Errorf("read the schemas of the database: %w", err)
	}
	return Unfit("no schema of search_path has the projector's tables, but the schema " + elsewhere + " has: name it in search_path " +
		"(pg_restore does not restore ALTER DATABASE … SET and ALTER ROLE … SET: docs/repairs.md, \"Restoring the database\"), " +
		"or run `projector migrate` for tables in another schema")
}

func storedVersion(ctx context.Context, pool *pgxpool.Pool) (version int64, err error) {
	err = pool.QueryRow(ctx, projectorsql.Query("schema_version")).Scan(&version)
	return version, err
}

// MissingOnDatabase returns the missing grants on the database itself. The file sql/roles.sql
// grants them, and pg_restore does not restore them.
func MissingOnDatabase(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	return Texts(ctx, pool, "check the grants on the database", "database_grants")
}

// wantedVersion returns the version of the newest embedded migration.
func wantedVersion() (int64, error) {
	migrations, err := embedded()
	if err != nil {
		return 0, err
	}
	return migrations[len(migrations)-1].Version, nil
}

// CheckDatabase runs a query that returns what is missing, one finding per row.
func CheckDatabase(ctx context.Context, pool *pgxpool.Pool, query string) error {
	// The query is not prepared, because the plan of a prepared statement would not notice a
	// dropped table.
	rows, _ := pool.Query(ctx, query, pgx.QueryExecModeExec)
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if HasCode(err, undefinedTable) {
		err = cmp.Or(checkVisible(ctx, pool), err)
	}
	if err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	if len(missing) == 0 {
		return nil
	}
	if missing[0] == readOnly {
		return &pgconn.PgError{
			Severity: "ERROR", Code: readOnlyTransaction,
			Message: "the server is read-only: a standby, a failover is under way, or default_transaction_read_only is on",
		}
	}
	return Forbidden("missing privileges: " + strings.Join(missing, ", "))
}

// These are SQLSTATEs that this package and the packages below it check for.
const (
	InsufficientPrivilege = "42501"
	uniqueViolation       = "23505"
	invalidParameterValue = "22023"
	queryCanceled         = "57014"
	LockNotAvailable      = "55P03"
	idleInTransaction     = "25P03" // idle_in_transaction_session_timeout
	readOnlyTransaction   = "25006"
	NotSupported          = "0A000"
	noSchema              = "3F000" // no usable schema in search_path
	undefinedTable        = "42P01"
)

// HasCode reports whether an error of PostgreSQL has this SQLSTATE.
func HasCode(err error, code string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == code
}

// Forbidden returns an error with the SQLSTATE that PostgreSQL uses for a missing privilege.
func Forbidden(message string) error {
	return &pgconn.PgError{Severity: "ERROR", Code: InsufficientPrivilege, Message: message}
}

// checkVisible returns an error if the schema exists, but the role lacks USAGE. PostgreSQL then
// reports the tables as undefined.
func checkVisible(ctx context.Context, pool *pgxpool.Pool) error {
	hidden, err := Texts(ctx, pool, "look for the schema", "hidden_schema")
	if err != nil || len(hidden) == 0 {
		return err
	}
	return Forbidden("missing privileges: USAGE on schema " + hidden[0])
}

// readOnly is the first row of a check query if the server accepts no writes.
const readOnly = "read-only"
