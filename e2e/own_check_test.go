package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckIsForTheRoleThatRuns runs `projection check` as every login that may run it. The result
// must be about the rights of projector_projection, because this role will run the file. A grant to
// the caller must not change the result.
func TestCheckIsForTheRoleThatRuns(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	r.exec(`CREATE TABLE debits (account_id text PRIMARY KEY, n bigint NOT NULL); CREATE SCHEMA app; CREATE TABLE app.debits (LIKE debits INCLUDING ALL)`)
	folder := t.TempDir()
	file := func(name, sql string) string {
		path := filepath.Join(folder, name+".sql")
		if err := os.WriteFile(path, []byte("-- projection: "+name+"\n-- mode: once\n-- types: FundsDebited\n"+sql), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	count := func(table string) string {
		return "INSERT INTO " + table + "\nSELECT account_id, count(*) FROM new_events GROUP BY account_id\n" +
			"ON CONFLICT (account_id) DO UPDATE SET n = " + table[strings.Index(table, ".")+1:] + ".n + excluded.n;\n"
	}
	checked := func(path string, logins string, status int, texts ...string) {
		t.Helper()
		for login := range strings.FieldsSeq(logins) {
			got, stderr := r.runAs(login, "projection", "check", path)
			for _, text := range texts {
				if got != status || !strings.Contains(stderr, text) {
					t.Errorf("%s: exit status %d, want %d with %q: %s", login, got, status, text, stderr)
				}
			}
			if strings.Contains(stderr, "TO "+login) {
				t.Errorf("%s: a grant is proposed for a person: %s", login, stderr)
			}
		}
	}
	const everyone = "bank_migrate bank_app bank_operator bank_approver"
	debits, hidden := file("debits", count("debits")), file("hidden", count("app.debits"))

	checked(debits, everyone, 1, "debits.sql: line 4: ", "missing: GRANT INSERT, SELECT, UPDATE ON debits TO projector_projection;")
	r.exec("GRANT ALL ON debits TO bank_operator, bank_migrate") // the caller's grants must have no effect
	checked(debits, everyone, 1, "missing: GRANT INSERT, SELECT, UPDATE ON debits TO projector_projection;")
	r.exec("REVOKE ALL ON debits FROM bank_operator, bank_migrate; GRANT INSERT, SELECT, UPDATE ON debits TO projector_projection")
	checked(debits, everyone, 0, "")

	checked(hidden, everyone, 1, "GRANT USAGE ON SCHEMA app TO projector_projection; GRANT INSERT, SELECT, UPDATE ON app.debits TO projector_projection;")
	r.exec("GRANT USAGE ON SCHEMA app TO projector_projection; GRANT INSERT, SELECT, UPDATE ON app.debits TO projector_projection")
	checked(hidden, "bank_app bank_approver", 0, "")
	checked(hidden, "bank_operator bank_migrate", 1, "check as a member of projector_runtime or projector_approver")

	checked(file("mistake", "INSERT INTO debits\nSELECT account, 1 FROM new_events;\n"), everyone, 2, "mistake.sql: line 5: ", `column "account" does not exist`)
	checked(file("balances", "INSERT INTO debits SELECT account_id, version FROM account_balance;\n"), everyone, 2, "balances.sql: line 4: ", "may not touch account_balance")
}
