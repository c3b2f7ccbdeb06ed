package errclass

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Remedy returns what to change if a constraint in PostgreSQL refuses a row. It is empty for any
// other error. Every event that is written satisfies the constraints that the projector itself
// creates. So the refusing constraint was added by someone else, and it will refuse more rows.
// Remedy does not name the constraint, because Safe names it. If the error has a method Remedy, its
// result is returned instead.
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

// RefusedRow returns why PostgreSQL refused the row of an event, with the remedy if there is one.
// The text is the message of the dead letter.
func RefusedRow(err error) string {
	reason := "PostgreSQL refused the row: " + Safe(err)
	if remedy := Remedy(err); remedy != "" {
		reason += ": " + remedy
	}
	return reason
}
