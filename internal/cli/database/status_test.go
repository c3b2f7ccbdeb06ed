package database_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

func TestDistributingNeedsCitus(t *testing.T) {
	s := clitest.NewStage(t)
	status, out, errOut := s.Command("migrate", "--citus")
	if status != 1 || out != "the schema is up to date\n" {
		t.Errorf("exit status %d, and it says %q", status, out)
	}
	clitest.Contains(t, errOut, "--citus: the database has no Citus", "CREATE EXTENSION citus")
}

func TestMigrateStatus(t *testing.T) {
	s := clitest.NewStage(t)
	s.Must("migrate")
	before := 0.0
	for _, m := range s.Lines("migrate", "status") {
		at, err := time.Parse(time.RFC3339Nano, m["applied_at"].(string))
		if err != nil || time.Since(at) < -time.Minute || time.Since(at) > time.Hour || m["version"].(float64) <= before {
			t.Errorf("%v behind %v: %v", m, before, err)
		}
		before = m["version"].(float64)
	}
	first, _, _ := strings.Cut(s.Must("migrate", "status", "--output=json"), "\n")
	clitest.Equal(t, clitest.Keys(t, first), "version name applied_at")

	changed := func(statement string, says ...string) {
		t.Helper()
		if _, err := s.Pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		status, out, errOut := s.Command("migrate", "status")
		if status != 0 {
			t.Errorf("exit status %d", status)
		}
		clitest.Contains(t, out+errOut, says...)
	}
	changed("DELETE FROM projector_schema_version WHERE version_id = 12",
		"00012_balance_by_account.sql", "not applied\n", "1 of", "run `projector migrate`")
	changed("INSERT INTO projector_schema_version (version_id, is_applied) VALUES (9999, true)", "9999  of a newer program")
	changed("DROP TABLE projector_schema_version", "1  00001_account_balance.sql", "not applied\n")
}

// TestARoleThatCannotMigrateIsRefused runs migrate with a role that cannot change the schema. The
// command succeeds only if no migration is missing.
func TestARoleThatCannotMigrateIsRefused(t *testing.T) {
	s := clitest.NewStage(t)
	role := "operates_" + s.Topic[strings.LastIndexAny(s.Topic, "-_.")+1:]
	s.Exec(fmt.Sprintf("CREATE ROLE %q LOGIN PASSWORD 'x'", role))
	t.Cleanup(func() {
		if _, err := s.Pool.Exec(context.WithoutCancel(t.Context()), fmt.Sprintf("DROP OWNED BY %q; DROP ROLE %q", role, role)); err != nil {
			t.Error(err)
		}
	})
	s.Exec(fmt.Sprintf("GRANT SELECT ON projector_schema_version, repair_policy TO %q", role)) // sql/roles.sql lets an operator read both
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "x")
	operator := *s
	operator.URL = u.String()
	clitest.Equal(t, operator.Must("migrate"), "the schema is up to date\n")
	s.Exec("DELETE FROM projector_schema_version WHERE version_id = (SELECT max(version_id) FROM projector_schema_version)")
	clitest.Contains(t, operator.Refused(exit.Failed, "migrate"), "migrate as the role of --database-url (DATABASE_URL): 42501", "the role that owns the tables")
}
