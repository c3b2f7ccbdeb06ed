package cli

import (
	"errors"
	"strings"

	"projector/internal/cli/exit"
	"projector/readmodel"
	"projector/readmodel/own"
)

// roleOf has the role of sql/roles.sql that a command needs. An entry matches all commands that
// start with its words. The first match is used.
var roleOf = []struct{ command, role string }{
	{"run", "projector_runtime"},
	{"migrate", "projector_migrator"},
	{"position remove", "projector_migrator"},
	{"approve", "projector_approver"},
	{"reject", "projector_approver"},
	{"account statement", "projector_reader or projector_operator"},
	{"", "projector_operator"},
}

// withRole adds the role that the command needs to PostgreSQL's error about a missing privilege.
func withRole(command string, err error) error {
	if errors.As(err, new(*readmodel.FileChangedError)) {
		return err // its SQLSTATE is that of a missing privilege, but no grant is missing
	}
	needs := exit.NeedsRole
	if errors.As(err, new(*own.StatementError)) {
		needs = exit.NeedsTables
	}
	for _, of := range roleOf {
		if command == of.command || strings.HasPrefix(command, of.command+" ") || of.command == "" {
			return needs(command, of.role, err)
		}
	}
	return err
}
