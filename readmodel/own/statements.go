package own

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
	"projector/projection"
	"projector/projection/file"
	"projector/readmodel"
	"projector/sql"
)

// statements are those of a projection.
type statements struct{ file file.Projection }

// take implements readmodel.Take: the statements are run on the events, under a role that
// cannot touch what is the projector's, where there is one, and held against it where not.
func (s *statements) take(ctx context.Context, tx *readmodel.Tx, events []projection.TakenEvent) error {
	var before, after guarded
	before.queue(tx, s.file.Name)
	tx.Queue(sql.Query("custom_events"), readmodel.TakenColumns(events)...)
	done := 0
	for i := range s.file.Statements {
		step := "run"
		if i == len(s.file.Statements)-1 {
			step = "last"
		}
		tx.Queue(sql.Query("custom_run"), s.file.Statements[i].SQL, step).Exec(func(pgconn.CommandTag) error { done++; return nil })
	}
	after.queue(tx, s.file.Name)
	if err := tx.Send(ctx); err != nil {
		if before.written != nil && done < len(s.file.Statements) {
			failed := &s.file.Statements[done]
			err = &StatementError{Projection: s.file.Name, Line: failed.LineAt(position(err, failed.SQL, "")), Err: err}
		}
		return err
	}
	if before.file != "" && before.file != s.file.SHA256 {
		return &readmodel.FileChangedError{Projection: s.file.Name}
	}
	return after.since(&before, s.file.Name)
}

// StatementError says which statement PostgreSQL has refused.
type StatementError struct {
	Projection string
	Line       int // of the file
	Err        error
	Grants     []string // that Check has found missing, as statements
}

// Error implements error.
func (e *StatementError) Error() string {
	return fmt.Sprintf("the SQL of projection %s, line %d: %v", e.Projection, e.Line, e.Err)
}

// SafeText implements errclass.Describer.
func (e *StatementError) SafeText() string {
	text := fmt.Sprintf("the SQL of projection %s, line %d: %s", e.Projection, e.Line, errclass.Safe(e.Err))
	if len(e.Grants) > 0 {
		text += "; missing: " + strings.Join(e.Grants, " ")
	}
	return text
}

// Remedy has none for a row that is refused: the rules of its table are its owner's.
func (*StatementError) Remedy() string { return "" }

// Unwrap implements the interface of package errors.
func (e *StatementError) Unwrap() error { return e.Err }

// guarded is the state of the projector's own tables within a transaction.
type guarded struct {
	written []string // by the order of file.OwnTables
	outside string   // in a rebuild, what was written to the live tables
	file    string   // SHA-256 of the one that the projection was last run from; empty: not kept
}

// queue asks for it.
func (g *guarded) queue(tx *readmodel.Tx, name string) {
	tx.Queue(sql.Query("custom_guard"), file.OwnTables, name).QueryRow(func(row pgx.Row) error { return row.Scan(&g.written, &g.outside, &g.file) })
}

// since returns an error when a table was written since before.
func (g *guarded) since(before *guarded, name string) error {
	for i, table := range file.OwnTables {
		if g.written[i] != before.written[i] {
			return &TouchedError{Projection: name, Table: table}
		}
	}
	if g.outside != before.outside {
		return writesLive(name, "a table in a function")
	}
	return nil
}

// TouchedError says that a projection's SQL is about a table of the projector.
type TouchedError struct{ Projection, Table string }

// Error implements error.
func (e *TouchedError) Error() string {
	return "projection " + e.Projection + " may not touch " + e.Table + ", which is the projector's own"
}

// SafeText implements errclass.Describer.
func (e *TouchedError) SafeText() string { return e.Error() }

// Unwrap is what PostgreSQL says under a role that may not use the table.
func (e *TouchedError) Unwrap() error {
	return &pgconn.PgError{Severity: "ERROR", Code: insufficientPrivilege, Message: e.Error()}
}

// Role is the role that a projection's SQL runs as for a login; empty: the login itself.
func Role(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (role string, err error) {
	if err := db.QueryRow(ctx, sql.Query("custom_role")).Scan(&role); err != nil {
		return "", fmt.Errorf("ask for the role of the projection's SQL: %w", err)
	}
	return role, nil
}
