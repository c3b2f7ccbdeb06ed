package readmodel

import "github.com/jackc/pgx/v5/pgconn"

// FileChangedError says that a custom projection has been run from another file since:
// the rows that are there came from other rules.
type FileChangedError struct{ Projection string }

// Error implements error and names the remedy.
func (e *FileChangedError) Error() string {
	return "the rows of projection " + e.Projection + " came from another text of its file: rebuild them with " +
		"`projector rebuild --projection-file=FILE --yes`, or go on with the new text from here with `run --accept-changed-file`"
}

// SafeText implements errclass.Describer.
func (e *FileChangedError) SafeText() string { return e.Error() }

// Unwrap has it treated as a missing privilege: it takes a person.
func (e *FileChangedError) Unwrap() error {
	return &pgconn.PgError{Severity: "ERROR", Code: insufficientPrivilege, Message: e.Error()}
}
