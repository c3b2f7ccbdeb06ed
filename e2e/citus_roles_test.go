//go:build citus

package e2e_test

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/testbank"
)

// citusRoles are the roles of sql/roles.sql and the logins of docs/security.md.
const citusRoles = "projector_migrator, projector_runtime, projector_operator, projector_approver, projector_reader, projector_projection, " +
	"bank_migrate, bank_app, bank_operator, bank_approver, bank_reader"

// TestRolesOnCitus migrates, projects, reads, repairs and approves on distributed tables. The
// commands use the logins of docs/security.md. The test also runs the two extra statements of
// docs/postgres.md that Citus needs. The roles must not exist on any node before the test, and each
// node must accept these logins.
func TestRolesOnCitus(t *testing.T) {
	t.Cleanup(func() { dropRoles(t) }) // runs after the schema is dropped
	w := onCitus(t, 4)
	text, err := os.ReadFile("../sql/roles.sql")
	if err != nil {
		t.Fatal(err)
	}
	w.exec(string(text))
	w.exec(logins(t, rolesPassword))

	// The coordinator connects to the workers as the migrator's role, which needs the first of the
	// two statements.
	if status, _, said := once(t, w.onCitusAs("bank_migrate"), "migrate"); status != 1 || !strings.Contains(said, "projector_migrator") {
		t.Errorf("migrate without the grant: exit %d: %s", status, said)
	}
	w.exec(grantOfThePage(t, "ALTER ROLE"))
	w.mustOnCitusAs("bank_migrate", "migrate")
	w.mustOnCitusAs("bank_migrate", "migrate", "--citus")

	w.produce(testbank.Generate(testbank.Options{Seed: seed(t), Records: scaled(5000), Partitions: w.partitions, Accounts: 200}))
	p := w.startOn(w.urlOf("bank_app"))
	w.exact(w.oracle(), exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))

	var account string
	var version int64
	if err := w.db.QueryRow(t.Context(), "SELECT account_id, expected_version FROM account_hold ORDER BY account_id LIMIT 1").Scan(&account, &version); err != nil {
		t.Fatal(err)
	}
	reader := w.session("bank_reader")
	const balance = "SELECT * FROM account_balance_current"
	reader.checkPrivilege(balance, false)
	w.exec(grantOfThePage(t, "GRANT SELECT"))
	for _, read := range []string{
		balance, "SELECT * FROM account_hold", "SELECT * FROM account_statement_missing", "SELECT * FROM account_statement_balance",
		"SELECT * FROM account_skipped", "SELECT projector_await('" + account + "', 1, '0s')",
	} {
		reader.checkPrivilege(read, true)
	}
	statements := *w
	statements.group += "-statement"
	entries := statements.startOn(w.urlOf("bank_app"), "--projection=account_statement")
	await(t, "every record is in a statement", statements.arrived)
	w.mustOnCitusAs("bank_reader", "account", "statement", account)
	entries.terminate()

	for _, command := range []string{"lag", "gaps", "position", "dlq summary", "dlq list", "dlq replay", "account show " + account, "audit", "audit verify"} {
		w.mustOnCitusAs("bank_operator", strings.Fields(command)...)
	}
	skip := func(version int64) string {
		return w.mustOnCitusAs("bank_operator", "account", "skip", account, "--version="+strconv.FormatInt(version, 10), "--reason=test", "--yes")
	}
	skip(version)
	w.mustOnCitusAs("bank_migrate", "migrate", "--four-eyes=on")
	request := w.mustOnCitusAs("bank_operator", "pause", "--all", "--reason=test", "--yes")
	w.mustOnCitusAs("bank_approver", "approve", request, "--reason=seen")
	await(t, "all partitions are paused", w.counts("SELECT count(*) FROM projector_position WHERE paused_reason IS NULL AND consumer_group = '"+w.group+"'", 0))
	p.terminate()
}

// grantOfThePage returns the statement of docs/postgres.md that begins with the given text.
func grantOfThePage(t *testing.T, begins string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Citus")
	statement := regexp.MustCompile("`(" + begins + "[^`]*)`").FindStringSubmatch(section)
	if statement == nil {
		t.Fatalf("docs/postgres.md has no %q for Citus", begins)
	}
	return statement[1]
}

// onCitusAs returns the environment of a command that logs in as the user.
func (w *world) onCitusAs(user string) []string {
	return []string{"DATABASE_URL=" + w.urlOf(user), "KAFKA_BROKERS=" + w.addrs[0], "KAFKA_TOPIC=" + w.topic, "KAFKA_GROUP=" + w.group}
}

func (w *world) mustOnCitusAs(user string, args ...string) string {
	w.t.Helper()
	return mustRun(w.t, user, w.onCitusAs(user), args...)
}

// dropRoles removes the roles from all nodes and restores the rights of PUBLIC that sql/roles.sql
// revoked.
func dropRoles(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, os.Getenv("TEST_CITUS_URL"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	database := pgx.Identifier{conn.Config().Database}.Sanitize()
	for _, statement := range []string{
		"DROP OWNED BY " + citusRoles + " CASCADE", "DROP ROLE " + citusRoles, "GRANT CONNECT, TEMPORARY ON DATABASE " + database + " TO PUBLIC",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
