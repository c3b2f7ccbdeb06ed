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

// statements runs the SQL of a projection's file.
type statements struct{ file file.Projection }

// write implements accountdb.CustomWriter. It runs the statements on the events. If there is a role
// that cannot write to the projector's tables, the statements run under this role. In any case,
// write checks afterwards that these tables were not written.
func (s *statements) write(ctx context.Context, tx *readmodel.Tx, events []projection.CustomEvent) error {
	var before, after guarded
	before.queue(tx, s.file.Name)
	tx.Queue(sql.Query("custom_events"), readmodel.EventColumns(events)...)
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
		return &readmodel.FileChangedError{Projection: s.file.Name, Reader: readmodel.ReaderFlags(ctx)}
	}
	return after.checkUnchanged(&before, s.file.Name)
}

// StatementError is the error of a statement that PostgreSQL refused, or that would write to a
// table of the projector.
type StatementError struct {
	Projection string
	Line       int // line in the file
	Err        error
	Grants     []string // missing grants found by Check, as statements
}

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

// Remedy returns no remedy, because only the owner of the table knows why the table refuses a row.
func (*StatementError) Remedy() string { return "" }

func (e *StatementError) Unwrap() error { return e.Err }

// guarded is the state of the projector's own tables within a transaction.
type guarded struct {
	written []string // what was written to each table of file.OwnTables, in this order
	outside string   // in a rebuild: what was written to live tables
	file    string   // SHA-256 of the file that the projection was last run from; may be empty
}

func (g *guarded) queue(tx *readmodel.Tx, name string) {
	tx.Queue(sql.Query("custom_guard"), file.OwnTables, name).QueryRow(func(row pgx.Row) error { return row.Scan(&g.written, &g.outside, &g.file) })
}

// checkUnchanged returns an error if one of the tables was written after the earlier state was
// read.
func (g *guarded) checkUnchanged(before *guarded, name string) error {
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

// TouchedError means that a projection's SQL uses one of the projector's own tables in a way that
// is not allowed.
type TouchedError struct{ Projection, Table string }

func (e *TouchedError) Error() string {
	return "projection " + e.Projection + " may not touch " + e.Table + ", which is the projector's own"
}

// SafeText implements errclass.Describer.
func (e *TouchedError) SafeText() string { return e.Error() }

// Unwrap makes errclass treat the error like a missing privilege, because an operator has to act.
func (e *TouchedError) Unwrap() error { return readmodel.Forbidden(e.Error()) }
