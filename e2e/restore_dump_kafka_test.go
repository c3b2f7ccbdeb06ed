//go:build kafka

package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// This file has the build tag kafka, so the test matrix of PostgreSQL versions does not run it. The
// reason is that pg_dump must not be older than the server.

// dump saves the database with the machine's pg_dump, as an administrator would do.
func (w *world) dump() (file string) {
	w.t.Helper()
	file = filepath.Join(w.t.TempDir(), "bank.dump")
	if out, err := exec.CommandContext(w.t.Context(), "pg_dump", "--format=custom", "--file="+file, w.url).CombinedOutput(); err != nil {
		w.t.Fatalf("pg_dump: %v: %s", err, out)
	}
	return file
}

// The method restored returns the same test environment with a new database. pg_restore has filled
// the database from the dump.
func (r *roles) restored(file string) *roles {
	r.t.Helper()
	databaseURL, err := r.cluster.NewDatabase(r.t.Context(), "")
	if err != nil {
		r.t.Fatal(err)
	}
	if out, err := exec.CommandContext(r.t.Context(), "pg_restore", "--exit-on-error", "--dbname="+databaseURL, file).CombinedOutput(); err != nil {
		r.t.Fatalf("pg_restore: %v: %s", err, out)
	}
	db, err := pgxpool.New(r.t.Context(), databaseURL)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(db.Close)
	world := *r.world
	world.url, world.db = databaseURL, db
	return &roles{world: &world, cluster: r.cluster, files: r.files}
}

// TestARestoreReportsLostGrants restores a database with pg_restore. The consumer must continue at
// once with the restored data. The consumer must report the missing grants on the database until
// sql/roles.sql has run again, because the dump does not contain these grants.
func TestARestoreReportsLostGrants(t *testing.T) {
	t.Parallel()
	before := newRoles(t)
	if status, stderr := before.runAs("bank_migrate", "migrate"); status != 0 {
		t.Fatal(stderr)
	}
	before.produce(before.shortStream())
	p := launch(t, []string{rolesPassword}, before.connection("bank_app"), before.flags()...)
	await(t, "ready", p.answers("/readyz", 200, "ready\n"))
	before.exact(before.oracle(), exactlyOnce)
	if _, body := p.get("/readyz"); body != "ready\n" {
		t.Errorf("before the restore: %s", body)
	}
	p.terminate()

	r := before.restored(before.dump())
	database := r.db.Config().ConnConfig.Database
	p = launch(t, []string{rolesPassword}, r.connection("bank_app"), r.flags()...)
	lost := fmt.Sprintf("missing: CREATE on database %s for projector_migrator; the revocation of CONNECT, TEMPORARY on database %s from PUBLIC. "+
		"pg_restore does not restore them: run sql/roles.sql again as an administrator. See the runbook, \"Grants on the database\"", database, database)
	await(t, "the lost grants in /readyz", p.answers("/readyz", 200, "ready\nwarning: grants on the database: "+lost))
	await(t, "the lost grants in the log", p.logged("grants on the database are missing"))
	await(t, "the lost grants on the page", p.answers("/", 200, `<a href="runbook#grants-on-the-database">missing: CREATE on database`))
	rebuild := []string{"rebuild", "--topic=" + r.topic, "--group=" + r.group, "--check"}
	if status, stderr := r.runAs("bank_operator", rebuild...); status != 1 || !strings.Contains(stderr, "CREATE on database "+database) {
		t.Errorf("rebuild --check: exit status %d: %s", status, stderr)
	}

	r.rolesFile()
	await(t, "nothing is missing", func() string {
		if _, body := p.get("/readyz"); body != "ready\n" {
			return body
		}
		return ""
	})
	await(t, "the log says so", p.logged("the grants on the database are complete again"))
	if status, stderr := r.runAs("bank_operator", rebuild...); status != 0 {
		t.Errorf("rebuild --check: exit status %d: %s", status, stderr)
	}
	r.exec("REVOKE UPDATE ON account_balance FROM projector_runtime")
	await(t, "a lost grant on a table, with the role", p.answers("/readyz", 503, "missing privileges: UPDATE on account_balance"))
	if _, body := p.get("/readyz"); !strings.Contains(body, "`projector run` needs a login in projector_runtime, with the grants of sql/roles.sql (docs/security.md, \"Roles\")") {
		t.Errorf("no role: %s", body)
	}
	r.exec("GRANT UPDATE ON account_balance TO projector_runtime")
	await(t, "ready again", p.answers("/readyz", 200, "ready"))
	p.terminate()
}

// TestARestoreLosesTheSearchPath restores a dump, which does not contain ALTER DATABASE … SET.
// After the restore, no schema of search_path has the tables. `run` must report the schema that has
// the tables and must not suggest to create new tables.
func TestARestoreLosesTheSearchPath(t *testing.T) {
	t.Parallel()
	before := newRoles(t)
	before.exec("CREATE SCHEMA ledger AUTHORIZATION projector_migrator")
	before.exec("ALTER DATABASE " + quoted(before.db.Config().ConnConfig.Database) + " SET search_path = ledger")
	before.exec("GRANT USAGE ON SCHEMA ledger TO projector_runtime")
	if status, stderr := before.runAs("bank_migrate", "migrate"); status != 0 {
		t.Fatal(stderr)
	}
	r := before.restored(before.dump())
	status, _, stderr := once(t, r.connection("bank_app"), r.flags()...)
	if want := "no schema of search_path has the projector's tables, but the schema ledger has: name it in search_path"; status != 1 || !strings.Contains(stderr, want) {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	r.exec("ALTER DATABASE " + quoted(r.db.Config().ConnConfig.Database) + " SET search_path = ledger")
	p := launch(t, []string{rolesPassword}, r.connection("bank_app"), r.flags()...)
	await(t, "ready", p.answers("/readyz", 200, "ready"))
	p.terminate()
}
