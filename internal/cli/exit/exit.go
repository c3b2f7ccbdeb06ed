// Package exit has the exit statuses of commands and the errors that lead to them.
package exit

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
)

// These are the exit statuses that the help of the program describes.
const (
	OK     = 0
	Failed = 1
	Usage  = 2
)

// UsageError is an error about a wrong flag, environment variable or file. It leads to exit status
// 2.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// WrongUsage wraps err in a UsageError. err must name the mistake and the remedy.
func WrongUsage(err error) error { return UsageError{err} }

// Usagef formats a UsageError. The text must name the mistake and the remedy.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Mistakes returns a UsageError about a file. The text begins with the argument named. If err has
// several lines, each line is a mistake and stays on its own line.
func Mistakes(named string, err error) error {
	lines := strings.Split(err.Error(), "\n")
	if len(lines) == 1 {
		return Usagef("%s%w", named, err)
	}
	return Usagef("%s%d mistakes\n  %s", named, len(lines), strings.Join(lines, "\n  "))
}

// typedPassword matches the password in a connection string. Errors about wrong usage repeat what
// the user has typed, which may be a connection string in the wrong place.
var typedPassword = regexp.MustCompile(`(:)[^\s:/"@][^\s"]*(@)|(password\s*=\s*)(?:'(?:\\.|[^'\\])*'?|[^\s"&']+)`)

// Report prints an error and returns the exit status.
func Report(stderr io.Writer, err error) int {
	var usage UsageError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(stderr, "projector: %s\n", typedPassword.ReplaceAllString(usage.Error(), "${1}${3}***${2}"))
		return Usage
	default:
		_, _ = fmt.Fprintf(stderr, "projector: %s\n", errclass.Safe(err))
		return Failed
	}
}

// Refusal is an error whose text is safe to show. It may name accounts and versions. It contains no
// amounts and no payload.
type Refusal struct{ errclass.Text }

// Refuse returns a Refusal. The text must be safe to show.
func Refuse(text string) Refusal { return Refusal{errclass.Text(text)} }

// Refusef formats a Refusal. The text must be safe to show.
func Refusef(format string, args ...any) error { return Refuse(fmt.Sprintf(format, args...)) }

// Passing formats an error about something that ends by itself or that another role may do. It is no
// Refusal, so approve leaves the request open. The text must be safe to show.
func Passing(format string, args ...any) error {
	return errclass.Text(fmt.Sprintf(format, args...))
}

// NeedsRole extends PostgreSQL's error about a missing privilege. The new text names the role of
// sql/roles.sql that the command needs. Other errors stay unchanged.
func NeedsRole(command, role string, err error) error {
	return lacksGrants(err, fmt.Sprintf("`projector %s` needs a login in %s, with the grants of sql/roles.sql (docs/security.md, \"Roles\")", command, role))
}

// NeedsTables extends PostgreSQL's error about a missing privilege of the SQL of a custom projection.
// sql/roles.sql grants nothing on its tables. Other errors stay unchanged.
func NeedsTables(command, role string, err error) error {
	return lacksGrants(err, fmt.Sprintf("`projector %s` needs a login in %s, with grants on the tables of the projection (docs/own-projection.md, \"Tables, grants, check\")", command, role))
}

func lacksGrants(err error, needs string) error {
	const insufficientPrivilege = "42501"
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != insufficientPrivilege {
		return err
	}
	return fmt.Errorf("%w; %s", err, needs)
}
