package readmodel

import "cmp"

// FileChangedError means that the rows of a custom projection were made with another text of its
// file.
type FileChangedError struct {
	Projection string
	Reader     string // see ReaderFlags
}

// Error implements error and names the remedy.
func (e *FileChangedError) Error() string {
	return "the rows of projection " + e.Projection + " came from another text of its file than this one: give that text; " +
		"or rebuild the rows with this one (`projector rebuild" + cmp.Or(e.Reader, " --projection-file=FILE") + " --yes`); " +
		"or go on with this one from here, with `run --accept-changed-file`"
}

// SafeText implements errclass.Describer: the text contains no data.
func (e *FileChangedError) SafeText() string { return e.Error() }

// Unwrap makes errclass treat the error like a missing privilege, because an operator has to act.
func (e *FileChangedError) Unwrap() error { return Forbidden(e.Error()) }
