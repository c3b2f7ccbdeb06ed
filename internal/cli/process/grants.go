package process

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/readmodel"
)

// conditionGrants is the name of the warning about missing grants on the database.
const conditionGrants = "grants on the database"

// watchGrants is the task that reports missing grants on the database. A restore loses such grants.
// The instance is ready without them, but a rebuild and the protection of the database need them.
func (p *Process) watchGrants() readmodel.Task {
	reported := ""
	return readmodel.Task{Name: "check the grants on the database", Every: 10 * time.Second, Run: func(ctx context.Context) error {
		missing, err := readmodel.MissingOnDatabase(ctx, p.pool)
		if err != nil {
			return err
		}
		text := ""
		if len(missing) > 0 {
			text = "missing: " + strings.Join(missing, "; ") + ". pg_restore does not restore them: run sql/roles.sql again " +
				"as an administrator. See the runbook, \"Grants on the database\""
			p.health.Warn(conditionGrants, text)
		} else {
			p.health.OK(conditionGrants)
		}
		switch {
		case text == reported:
		case text != "":
			p.log.Warn("grants on the database are missing", slog.String("reason", text))
		default:
			p.log.Info("the grants on the database are complete again")
		}
		reported = text
		return nil
	}}
}

// needsRole adds the role that `run` needs to PostgreSQL's error about a missing privilege. An
// errclass.Describer stays unchanged, because it already has a remedy.
func needsRole(err error) error {
	if errors.As(err, new(errclass.Describer)) {
		return err
	}
	return exit.NeedsRole("run", "projector_runtime", err)
}
