package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/readmodel/own"
)

// A missing grant on a table of a custom projection is none of sql/roles.sql.
func TestAMissingGrantIsReportedWithItsPage(t *testing.T) {
	t.Parallel()
	denied := &pgconn.PgError{Code: "42501", Message: "permission denied for table points"}
	inSQL := fmt.Errorf("heal: %w", &own.StatementError{Projection: "points", Line: 7, Err: denied})
	for _, c := range []struct {
		command string
		err     error
		want    string
	}{
		{"account skip", denied, "a login in projector_operator, with the grants of sql/roles.sql"},
		{"account skip", inSQL, "a login in projector_operator, with grants on the tables of the projection (docs/own-projection.md"},
		{"approve", inSQL, "a login in projector_approver, with grants on the tables"},
	} {
		if got := withRole(c.command, c.err).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q lacks %q", c.command, got, c.want)
		}
	}
}
