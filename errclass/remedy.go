package errclass

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Remedy says what to change where PostgreSQL refuses a row by a rule; empty for any other
// error. No event breaks a rule of the projector's own tables: their columns always have
// values, they refer to nothing, their keys are written by ON CONFLICT and what they check
// is checked before. So it is a rule that was added later, and other rows will be
// refused by it too. The objects are named by Safe. An error with a remedy of its own has that.
func Remedy(err error) string {
	var own interface{ Remedy() string }
	if errors.As(err, &own) {
		return own.Remedy()
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Code, "23") {
		return ""
	}
	const added = "a rule that was added to the table, and no fault of the event: "
	switch refused.Code {
	case "23502":
		return added + "give the column a default, or allow null"
	case "23503":
		return added + "fill in the rows that the foreign key refers to, or drop it"
	}
	return added + "change the constraint, or drop it"
}
