package database_test

import (
	"strings"
	"testing"
	"time"

	"projector/internal/cli/clitest"
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
