package cli

import (
	"strings"

	"projector/internal/cli/exit"
)

// roleOf gives the role of sql/roles.sql that a command needs. An entry fits all commands that
// begin with its words; the first one that fits counts.
var roleOf = []struct{ command, role string }{
	{"run", "projector_runtime"},
	{"migrate", "projector_migrator"},
	{"position remove", "projector_migrator"},
	{"approve", "projector_approver"},
	{"reject", "projector_approver"},
	{"account statement", "projector_reader or projector_operator"},
	{"", "projector_operator"},
}

// withRole adds to an error by which PostgreSQL refuses something for a missing grant which
// role the command needs.
func withRole(command string, err error) error {
	for _, of := range roleOf {
		if command == of.command || strings.HasPrefix(command, of.command+" ") || of.command == "" {
			return exit.NeedsRole(command, of.role, err)
		}
	}
	return err
}
