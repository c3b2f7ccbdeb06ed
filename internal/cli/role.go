package cli

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
	"projector/internal/cli/exit"
)

// roleOf is the role of sql/roles.sql that a command needs, by how the command begins; the
// first that fits counts.
var roleOf = []struct{ command, role string }{
	{"run", "projector_runtime"},
	{"migrate", "projector_migrator"},
	{"position remove", "projector_migrator"},
	{"approve", "projector_approver"},
	{"reject", "projector_approver"},
	{"account statement", "projector_reader or projector_operator"},
	{"", "projector_operator"},
}

// withRole adds to an error that PostgreSQL has refused something for lack of a grant which
// role the command needs.
func withRole(command string, err error) error {
	const insufficientPrivilege = "42501"
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != insufficientPrivilege {
		return err
	}
	for _, of := range roleOf {
		if command == of.command || strings.HasPrefix(command, of.command+" ") || of.command == "" {
			return exit.Refusef("%s; `projector %s` needs a login in %s (docs/security.md, \"Roles\")", errclass.Safe(err), command, of.role)
		}
	}
	return err
}
