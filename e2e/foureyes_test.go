package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// twoPeople returns a test environment with roles, dead letters and gaps. Four eyes is on, which
// means that an approver must approve each repair of an operator.
func twoPeople(t *testing.T) (r *roles, account string, version int64) {
	t.Helper()
	r = newRoles(t)
	r.mustAs("bank_migrate", "migrate", "--four-eyes=on")
	r.produce(r.shortStream())
	p := launch(t, []string{rolesPassword}, r.connection("bank_app"), r.flags()...)
	r.exact(r.oracle(), exactlyOnce)
	p.terminate()
	if err := r.db.QueryRow(t.Context(), "SELECT account_id, expected_version FROM account_hold ORDER BY 1 LIMIT 1").Scan(&account, &version); err != nil {
		t.Fatal(err)
	}
	return r, account, version
}

// mustAs runs a command as the user, expects success, and returns its output.
func (r *roles) mustAs(user string, args ...string) string {
	r.t.Helper()
	return mustRun(r.t, user, r.connection(user), args...)
}

func mustRun(t testing.TB, user string, env []string, args ...string) string {
	t.Helper()
	status, out, said := once(t, env, args...)
	if status != 0 {
		t.Fatalf("%s: %s: exit status %d: %s", user, strings.Join(args, " "), status, said)
	}
	return strings.TrimSpace(out)
}

// refusedAs runs a command as the user. It expects the command to fail with an error that contains
// the text why.
func (r *roles) refusedAs(user, why string, args ...string) {
	r.t.Helper()
	if status, said := r.runAs(user, args...); status != 1 || !strings.Contains(said, why) {
		r.t.Errorf("%s: %s: exit status %d, want 1 and %q: %s", user, strings.Join(args, " "), status, why, said)
	}
}

// TestFourEyesHoldAgainstAnOperator attacks with an operator's password. It tries to change data
// without a second person. docs/decisions/0030 lists these attacks and what stops each of them.
func TestFourEyesHoldAgainstAnOperator(t *testing.T) {
	t.Parallel()
	r, account, version := twoPeople(t)
	skip := []string{"account", "skip", account, fmt.Sprintf("--version=%d", version), "--reason=lost", "--yes"}
	id := r.mustAs("bank_operator", skip...)
	before := r.snapshot()
	operator := r.session("bank_operator")
	for _, statement := range []string{
		// Attack 1: write the tables that repairs write.
		"UPDATE account_balance SET balance = 1000000", "INSERT INTO account_balance DEFAULT VALUES", "SELECT FROM account_balance FOR UPDATE",
		"UPDATE parked_event SET value = ''", "DELETE FROM park_overflow", "UPDATE projector_position SET next_offset = 0",
		"INSERT INTO account_statement DEFAULT VALUES", "UPDATE daily_turnover SET credited = 0", "DELETE FROM inbox",
		// Attack 2: assume a role with more rights.
		"SET ROLE projector_runtime", "SET ROLE projector_approver", "SET ROLE projector_migrator", "SET ROLE bank_approver",
		"SET SESSION AUTHORIZATION bank_approver", "GRANT projector_approver TO bank_operator", "ALTER ROLE bank_operator SUPERUSER",
		"CREATE ROLE bank_mine LOGIN IN ROLE projector_approver",
		// Attack 3: request in another login's name, or insert an approved request.
		"INSERT INTO repair_request (action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor, requested_by) VALUES ('skip', '{}', '{}', '{}', '{}', '', 1, 'x', 'bank_colleague')",
		"INSERT INTO repair_request (action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor, state) VALUES ('skip', '{}', '{}', '{}', '{}', '', 1, 'x', 'approved')",
		"INSERT INTO repair_request (id, action) OVERRIDING SYSTEM VALUE VALUES (99, 'skip')",
		// Attack 4: change a request after the approver has read it.
		"UPDATE repair_request SET plan_sha256 = 'other'", "UPDATE repair_request SET arguments = '{rebuild,--remove=true}'",
		"DELETE FROM repair_request", "TRUNCATE repair_request",
		// Attack 5: approve the operator's own request.
		"UPDATE repair_request SET state = 'approved', decision_reason = 'x'",
		// Attack 6: change or forge the audit trail.
		"UPDATE dlq_action SET actor = 'nobody'", "DELETE FROM dlq_action",
		"INSERT INTO dlq_action (action, actor, result, approved_by) VALUES ('skip', 'me', 'skipped', 'bank_approver')",
		// Attack 7: change the tables or their defaults.
		"ALTER TABLE account_balance ALTER balance SET DEFAULT 1000000", "ALTER TABLE account_balance DISABLE TRIGGER ALL",
		"ALTER DEFAULT PRIVILEGES FOR ROLE projector_migrator GRANT ALL ON TABLES TO bank_operator",
		"CREATE RULE mine AS ON SELECT TO account_balance DO INSTEAD NOTHING",
		"CREATE TRIGGER mine BEFORE UPDATE ON account_balance EXECUTE FUNCTION dlq_action_stamp()",
		// Attack 8: use bulk statements.
		"TRUNCATE account_balance", "COPY account_balance FROM STDIN", "COPY account_balance FROM PROGRAM 'true'", "COPY (SELECT) TO PROGRAM 'true'",
		"LOCK TABLE account_balance IN EXCLUSIVE MODE",
		// Attack 9: turn the policy or the triggers off.
		"UPDATE repair_policy SET four_eyes = false", "DROP TRIGGER decide ON repair_request", "SET session_replication_role = replica",
		// Attack 10: create objects that hide the real objects, because PostgreSQL searches a
		// schema with the approver's name first.
		"CREATE SCHEMA bank_approver", "CREATE TABLE public.repair_policy2 (i int)", "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"ALTER ROLE bank_approver SET search_path = pg_temp", "ALTER FUNCTION repair_request_decide() RESET search_path",
	} {
		operator.checkPrivilege(statement, false)
	}
	// Attack 11: call the trigger functions, or attach them to another table.
	operator.checkPrivilege("SELECT dlq_action_link()", false)
	operator.checkPrivilege("CREATE TEMP TABLE mine (id bigint); CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION dlq_action_link()", false)
	// Attack 12: create temporary tables and functions, because a session finds them first. An
	// administrator has granted TEMPORARY by mistake.
	operator.checkPrivilege("CREATE TEMP TABLE repair_policy AS SELECT false AS four_eyes", false)
	r.exec("GRANT TEMPORARY ON DATABASE " + quoted(r.db.Config().ConnConfig.Database) + " TO bank_operator")
	for _, statement := range []string{
		"CREATE TEMP TABLE repair_policy AS SELECT false AS four_eyes",
		"CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2000-01-01' $$",
		"SET search_path = pg_temp, public",
		"GRANT ALL ON public.account_balance TO bank_operator", // this only causes a warning, because the operator has no right to grant
		"INSERT INTO repair_request (action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor) VALUES ('skip', '{}', '{}', '{}', '{}', '', 1, 'x')",
	} {
		if _, err := operator.conn.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	operator.checkPrivilege("UPDATE public.account_balance SET balance = 0", false)
	// Attack 13: set the number of an approved request in the session, as the program does.
	if _, err := operator.conn.Exec(t.Context(), "SELECT set_config('projector.request', '1', false)"); err != nil {
		t.Error(err)
	}
	operator.checkPrivilege("INSERT INTO dlq_action (action, actor, result) VALUES ('skip', 'me', 'skipped')", false)
	r.rebuildsAlone(operator)
	// Attack 14: use the program.
	r.refusedAs("bank_operator", "another login has to approve it", "approve", id, "--reason=mine")
	r.refusedAs("bank_colleague", "42501", "approve", id, "--reason=as a colleague")
	r.refusedAs("bank_colleague", "42501", "reject", id, "--reason=as a colleague")
	r.refusedAs("bank_operator", "42501", "migrate", "--four-eyes=off")
	r.mustAs("bank_operator", "migrate") // this runs all grants again, but the operator can grant none of them

	if after := r.snapshot(); after != before {
		t.Errorf("something was changed: %s, was %s", after, before)
	}
	if _, err := operator.conn.Exec(t.Context(), "SET search_path = public"); err != nil {
		t.Error(err)
	}
	r.stamped("requested_by = 'bank_operator' AND state = 'open' AND at > now() - interval '1 hour'", 2)

	// Another login approves the request. The request must run only once.
	r.mustAs("bank_approver", "approve", id, "--reason=checked")
	r.stamped("decided_by = 'bank_approver' AND state = 'approved'", 1)
	approver := r.session("bank_approver")
	approver.checkPrivilege("UPDATE repair_request SET state = 'rejected', decision_reason = 'x' WHERE id = "+id, false)
	approver.checkPrivilege("UPDATE repair_request SET arguments = '{}'", false)
	approver.checkPrivilege("UPDATE repair_request SET state = 'approved', decision_reason = 'x', decided_by = 'bank_colleague' WHERE id > "+id, false)
	approver.checkPrivilege("SELECT set_config('projector.request', '2', true); INSERT INTO dlq_action (action, actor, result) VALUES ('skip', 'me', 'skipped')", false)
	for _, column := range []string{"id", "at", "db_user", "chain", "hash", "request_id", "requested_by", "approved_by", "approval_reason"} {
		approver.checkPrivilege("INSERT INTO dlq_action ("+column+", action, actor, result) VALUES (DEFAULT, 'skip', 'me', 'skipped')", false)
	}
	approver.checkPrivilege("SELECT pg_sleep(0.01); DO $$ DECLARE t timestamptz; BEGIN INSERT INTO dlq_action (action, actor, result) VALUES ('skip', 'me', 'skipped') RETURNING at INTO t; ASSERT t > now(); END $$", true)
	// PostgreSQL logs the statements that an approver runs with another program.
	r.exec("ALTER ROLE bank_approver SET log_statement = 'mod'")
	approver = r.session("bank_approver")
	approver.checkPrivilege("SET log_statement = 'none'", false)
	approver.checkPrivilege("ALTER ROLE bank_approver RESET log_statement", false)
	approver.checkPrivilege("ALTER ROLE bank_approver RESET ALL; DO $$ BEGIN ASSERT (SELECT rolconfig FROM pg_roles WHERE rolname = 'bank_approver') = '{log_statement=mod}'; END $$", true)
	own := r.mustAs("bank_approver", "pause", "--all", "--topic="+r.topic, "--group="+r.group, "--reason=x", "--yes")
	approver.checkPrivilege("UPDATE repair_request SET state = 'approved', decision_reason = 'x' WHERE id = "+own, false)
	r.forgesRequests(r.session("bank_operator"))
}

// rebuildsAlone tries to change balances through the tables of a rebuild. An operator may create
// these tables to compare them with the read model.
func (r *roles) rebuildsAlone(operator *session) {
	r.t.Helper()
	ctx, approver := r.t.Context(), r.session("bank_approver")
	const made = "SELECT projector_rebuild_tables('{projector_position,account_balance,parked_event}', '{}')"
	for _, statement := range []string{
		"SET search_path = pg_temp, public", "CREATE TEMP TABLE account_balance (account_id text)", // this temporary table must not be copied
		made, "INSERT INTO projector_rebuild.account_balance (account_id, balance, version) VALUES ('mine', 1000000, 1)",
	} {
		if _, err := operator.conn.Exec(ctx, statement); err != nil {
			r.t.Errorf("%s: %v", statement, err)
		}
	}
	for _, statement := range []string{
		// Attack 17: create or change objects in the schema projector_rebuild, which the operator
		// does not own.
		"CREATE TABLE projector_rebuild.mine (i int)", "CREATE VIEW projector_rebuild.mine AS SELECT 1",
		"CREATE FUNCTION projector_rebuild.lower(text) RETURNS text LANGUAGE sql AS 'SELECT 1'",
		"CREATE TRIGGER mine BEFORE INSERT ON projector_rebuild.account_balance EXECUTE FUNCTION suppress_redundant_updates_trigger()",
		"CREATE RULE mine AS ON INSERT TO projector_rebuild.account_balance DO ALSO NOTHING",
		"ALTER TABLE projector_rebuild.account_balance ALTER balance SET DEFAULT 1000000", "ALTER TABLE projector_rebuild.account_balance OWNER TO bank_operator",
		"ALTER SCHEMA projector_rebuild RENAME TO mine", "DROP SCHEMA projector_rebuild CASCADE", "CREATE SCHEMA projector_rebuild_mine",
		"CREATE INDEX ON projector_rebuild.account_balance ((1 / balance))", "TRUNCATE projector_rebuild.account_balance",
		"ALTER FUNCTION projector_rebuild_tables(text[], text[]) RESET search_path", "ALTER FUNCTION projector_rebuild_analyze() OWNER TO bank_operator",
		"CREATE OR REPLACE FUNCTION public.projector_rebuild_analyze() RETURNS void LANGUAGE sql AS ''",
		// Attack 18: write the read model itself, also from the tables of the rebuild.
		"INSERT INTO public.account_balance SELECT * FROM projector_rebuild.account_balance", "DELETE FROM public.account_balance",
		"UPDATE public.account_statement SET amount = 0", "DELETE FROM public.daily_turnover",
	} {
		operator.checkPrivilege(statement, false)
	}
	for _, name := range []string{"pg_authid", "pg_catalog.pg_authid", "account_balance (i int); DROP TABLE account_balance; --"} {
		var refused *pgconn.PgError
		if _, err := operator.conn.Exec(ctx, "SELECT projector_rebuild_tables($1, '{}')", []string{name}); !errors.As(err, &refused) || refused.Code != "42P01" {
			r.t.Errorf("a table like %s: %v", name, err)
		}
	}
	// Attack 19: read or change an approver's rebuild. The tables of that rebuild are new, and the
	// operator has no access to them, although the owner has set default privileges.
	r.exec("ALTER DEFAULT PRIVILEGES FOR ROLE projector_migrator GRANT ALL ON TABLES TO PUBLIC; ALTER DEFAULT PRIVILEGES FOR ROLE projector_migrator GRANT ALL ON SCHEMAS TO PUBLIC, projector_operator")
	if _, err := approver.conn.Exec(ctx, made); err != nil {
		r.t.Errorf("approver: %s: %v", made, err)
	}
	approver.checkPrivilege("DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM projector_rebuild.account_balance); END $$", true)
	for _, statement := range []string{
		"SELECT FROM projector_rebuild.account_balance", "UPDATE projector_rebuild.account_balance SET balance = 0", "CREATE TABLE projector_rebuild.mine (i int)",
	} {
		operator.checkPrivilege(statement, false)
	}
	r.exec("ALTER DEFAULT PRIVILEGES FOR ROLE projector_migrator REVOKE ALL ON TABLES FROM PUBLIC; ALTER DEFAULT PRIVILEGES FOR ROLE projector_migrator REVOKE ALL ON SCHEMAS FROM PUBLIC, projector_operator")
}

// snapshot returns, as one text, data that a single login must not be able to change.
func (r *roles) snapshot() (all string) {
	r.t.Helper()
	if err := r.db.QueryRow(r.t.Context(), `SELECT concat_ws(' ',
		(SELECT md5(string_agg(b::text, ',' ORDER BY account_id)) FROM account_balance b), (SELECT md5(string_agg(p::text, ',' ORDER BY p::text)) FROM parked_event p),
		(SELECT string_agg(next_offset::text, ',' ORDER BY partition) FROM projector_position), (SELECT count(*) FROM dlq_action),
		(SELECT string_agg(state || plan_sha256, ',') FROM repair_request WHERE plan_sha256 <> ''), (SELECT four_eyes FROM repair_policy))`).Scan(&all); err != nil {
		r.t.Fatal(err)
	}
	return all
}

// The method stamped expects the given number of repair requests that satisfy the condition.
func (r *roles) stamped(condition string, want int) {
	r.t.Helper()
	var n int
	if err := r.db.QueryRow(r.t.Context(), "SELECT count(*) FROM repair_request WHERE "+condition).Scan(&n); err != nil || n != want {
		r.t.Errorf("%s: %d requests, want %d: %v", condition, n, want, err)
	}
}

// TestAnApproverWhoMayNotRemovePositionsDecidesNothing expects that a request stays open when the
// approver has no right to carry it out. The owner of the schema approves it afterwards.
func TestAnApproverWhoMayNotRemovePositionsDecidesNothing(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate", "--four-eyes=on")
	r.exec("INSERT INTO projector_position (consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence) VALUES ('old', $1, 0, 5, 5, '', '', 1)", r.topic)
	id := r.mustAs("bank_operator", "position", "remove", "--topic="+r.topic, "--group=old", "--reason=renamed", "--yes")
	r.refusedAs("bank_approver", "DELETE on projector_position", "approve", id, "--reason=checked")
	r.stamped("state = 'open'", 1)
	r.mustAs("bank_migrate", "approve", id, "--reason=checked")
	r.stamped("state = 'approved' AND requested_by = 'bank_operator' AND decided_by = 'bank_migrate'", 1)
	await(t, "the position is removed", r.counts("SELECT count(*) FROM projector_position", 0))
	await(t, "the trail names both", r.counts("SELECT count(*) FROM dlq_action WHERE requested_by = 'bank_operator' AND approved_by = 'bank_migrate' AND result = 'removed'", 1))
}

// TestFourEyesNeedOperatorsWhoCannotWrite expects that four eyes cannot be turned on while
// operators can still write the tables directly.
func TestFourEyesNeedOperatorsWhoCannotWrite(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	on := []string{"migrate", "--four-eyes=on"}
	r.exec("GRANT projector_runtime TO projector_operator") // as an earlier roles.sql did
	r.refusedAs("bank_migrate", "projector_operator may write account_balance, ", on...)
	r.stampedPolicy(false)
	r.rolesFile() // revokes this grant
	r.exec("GRANT projector_approver TO bank_colleague")
	r.refusedAs("bank_migrate", "bank_colleague may write", on...)
	r.exec("REVOKE projector_approver FROM bank_colleague; GRANT UPDATE (balance) ON account_balance TO PUBLIC")
	r.refusedAs("bank_migrate", "may write account_balance", on...)
	r.exec("REVOKE UPDATE (balance) ON account_balance FROM PUBLIC")
	r.exec("CREATE TABLE event_count (account_id text PRIMARY KEY, events bigint); GRANT INSERT, UPDATE, DELETE ON event_count TO projector_operator") // as a rebuild proposes
	r.rolesFile()                                                                                                                                      // does not help
	const revoke = "REVOKE INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER ON event_count FROM projector_operator;"
	r.refusedAs("bank_migrate", "type: "+revoke, on...)
	r.exec(revoke)
	for _, way := range [][3]string{
		{"GRANT CREATE ON SCHEMA public TO projector_operator", "may create objects in schema public", "REVOKE CREATE ON SCHEMA public FROM projector_operator"},
		{"GRANT CREATE ON DATABASE %s TO bank_colleague", "bank_colleague may create schemas", "REVOKE CREATE ON DATABASE %s FROM bank_colleague"},
		{"ALTER ROLE bank_colleague CREATEROLE", "bank_colleague may create roles", "ALTER ROLE bank_colleague NOCREATEROLE"},
		{"GRANT pg_execute_server_program TO bank_colleague", "bank_colleague may run programs on the server", "REVOKE pg_execute_server_program FROM bank_colleague"},
		{"GRANT pg_write_server_files TO projector_operator", "may write files on the server", "REVOKE pg_write_server_files FROM projector_operator"},
		{"GRANT pg_read_server_files TO bank_colleague", "bank_colleague may read files on the server", "REVOKE pg_read_server_files FROM bank_colleague"},
		{"CREATE FUNCTION public.adjust() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'UPDATE account_balance SET balance = 0'", "may run adjust(), which has the rights of another role", "REVOKE EXECUTE ON FUNCTION public.adjust() FROM PUBLIC"},
		{"GRANT EXECUTE ON FUNCTION public.adjust() TO bank_colleague", "bank_colleague may run adjust()", "DROP FUNCTION public.adjust()"},
		{"GRANT EXECUTE ON FUNCTION projector_contained(text, boolean, text) TO bank_colleague", "bank_colleague may run projector_contained(text,boolean,text)", "REVOKE EXECUTE ON FUNCTION projector_contained(text, boolean, text) FROM bank_colleague"},
	} {
		database := quoted(r.db.Config().ConnConfig.Database)
		r.exec(strings.ReplaceAll(way[0], "%s", database))
		r.refusedAs("bank_migrate", way[1], on...)
		r.exec(strings.ReplaceAll(way[2], "%s", database))
	}
	r.mustAs("bank_migrate", on...)
	r.stampedPolicy(true)
	operator := r.session("bank_operator")
	for range 2 {
		operator.checkPrivilege("UPDATE account_balance SET balance = 0", false)
		r.mustAs("bank_migrate", "migrate")
		r.rolesFile() // must not add the grant again
	}
	r.exec("GRANT projector_runtime TO projector_operator") // an administrator grants it by mistake
	if _, said := r.runAs("bank_migrate", "migrate"); !strings.Contains(said, "four eyes are on, but operators could repair alone") {
		t.Errorf("migrate does not say that the policy means nothing any more: %s", said)
	}
	r.rolesFile()
	r.mustAs("bank_migrate", "migrate", "--four-eyes=off")
	operator.checkPrivilege("UPDATE account_balance SET balance = 0", true)
}

func (r *roles) stampedPolicy(want bool) {
	r.t.Helper()
	var on bool
	if err := r.db.QueryRow(r.t.Context(), "SELECT four_eyes FROM repair_policy").Scan(&on); err != nil || on != want {
		r.t.Errorf("four eyes are on: %v, want %v (%v)", on, want, err)
	}
}

// TestFourEyesWithoutASuperuser has the roles and the logins made by a login that is no superuser,
// as on a managed server. Since PostgreSQL 16, this login is a member of each role that it creates,
// but only with the right to grant the role to others. It is therefore no operator.
func TestFourEyesWithoutASuperuser(t *testing.T) {
	t.Parallel()
	r := newManagedRoles(t)
	r.mustAs("bank_migrate", "migrate")
	r.rolesFile() // now the tables exist, and they belong to another role
	on := []string{"migrate", "--four-eyes=on"}
	r.exec("GRANT projector_operator TO master")
	r.refusedAs("bank_migrate", "master may ", on...)
	r.exec("REVOKE projector_operator FROM master")
	r.exec("GRANT projector_approver TO bank_colleague WITH ADMIN OPTION")
	r.refusedAs("bank_migrate", "bank_colleague may write", on...)
	r.exec("REVOKE projector_approver FROM bank_colleague")
	if r.counts("SELECT 1 WHERE current_setting('server_version_num')::int >= 160000", 1)() == "" {
		// bank_deputy may assume a role that inherits the operator's rights.
		r.exec(`CREATE ROLE bank_team; CREATE ROLE bank_deputy CREATEROLE; GRANT bank_team TO bank_deputy WITH INHERIT FALSE, SET TRUE;
			GRANT projector_operator TO bank_team WITH INHERIT TRUE, SET FALSE`)
		r.refusedAs("bank_migrate", "bank_deputy may ", on...)
		r.exec("ALTER ROLE bank_deputy NOCREATEROLE")
	}
	r.mustAs("bank_migrate", on...)
	r.rolesFile()
	r.session("bank_operator").checkPrivilege("UPDATE account_balance SET balance = 0", false)
	r.session("bank_approver").checkPrivilege("UPDATE account_balance SET balance = 0", true)
}

// newManagedRoles is like newRoles, but the login that creates the users may only create roles. It
// owns the database and its schema.
func newManagedRoles(t *testing.T) *roles {
	t.Helper()
	authority := newAuthority(t)
	certificate := issue(t, authority, "database", "127.0.0.1")
	cluster := devtest.PostgresWith(t, devstack.PostgresOptions{Certificate: &certificate})
	databaseURL, err := cluster.NewDatabase(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal("the database's URL cannot be read")
	}
	superuser, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = superuser.Close(context.WithoutCancel(t.Context())) }()
	if _, err := superuser.Exec(t.Context(), fmt.Sprintf(`CREATE ROLE master LOGIN CREATEROLE PASSWORD '%s';
		ALTER DATABASE %s OWNER TO master; ALTER SCHEMA public OWNER TO master`, rolesPassword, quoted(strings.TrimPrefix(u.Path, "/")))); err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("master", rolesPassword)
	return newRolesIn(t, devtest.Broker(t).Addrs(), cluster, u.String(), 0, authority)
}
