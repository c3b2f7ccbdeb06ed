package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// mayTables lists the rights of each role on each relation, as letters. S is SELECT, I is INSERT, U
// is UPDATE and D is DELETE. An empty text means no right. The field fourEyes has the rights of an
// operator while four eyes is on. For dlq_action and repair_request, I is a right on some columns
// only (see TestTheRuntimeAddsOnlyWhatItFetches).
var mayTables = map[string]struct{ reader, runtime, operator, fourEyes, approver string }{
	"account_balance":           {"", "SIU", "SIUD", "S", "SIUD"},
	"account_balance_current":   {"S", "", "S", "S", "S"},
	"account_hold":              {"S", "S", "S", "S", "S"},
	"account_opening":           {"", "", "SIU", "S", "SIU"},
	"account_skipped":           {"S", "", "S", "S", "S"},
	"account_statement":         {"S", "SI", "SIUD", "S", "SIUD"},
	"account_statement_balance": {"S", "", "S", "S", "S"},
	"account_statement_missing": {"S", "", "S", "S", "S"},
	"daily_turnover":            {"S", "SIU", "SIUD", "S", "SIUD"},
	"dlq_action":                {"", "I", "SI", "S", "SI"},
	"dlq_action_lock":           {"", "", "", "", ""},
	"inbox":                     {"", "SID", "SID", "S", "SID"},
	"inbox_pruned":              {"", "SIU", "SIU", "S", "SIU"},
	"park_overflow":             {"", "SIUD", "SIUD", "S", "SIUD"},
	"parked_event":              {"", "SIUD", "SIUD", "S", "SIUD"},
	"projection_account":        {"", "SIU", "SIUD", "S", "SIUD"},
	"projection_file":           {"", "SIU", "SIU", "S", "SIU"},
	"projection_hold":           {"S", "S", "S", "S", "S"},
	"projection_park_overflow":  {"", "SIUD", "SIUD", "S", "SIUD"},
	"projection_parked_event":   {"", "SIUD", "SIUD", "S", "SIUD"},
	"projector_decision":        {"", "S", "S", "S", "S"},
	"projector_position":        {"S", "SIU", "SIU", "S", "SIU"},
	"projector_schema_version":  {"S", "S", "S", "S", "S"},
	"projector_source":          {"S", "SI", "SI", "S", "SI"},
	"repair_policy":             {"", "", "S", "S", "S"},
	"repair_request":            {"", "", "SI", "SI", "SIU"},
}

// mayStatements lists other statements and the logins that may run them. R is a reader, A the
// runtime's login, O an operator, F an operator while four eyes is on, and P an approver. M is the
// login that migrates. N is a login that has no role and may only connect.
var mayStatements = []struct{ class, statement, who string }{
	{"the owner's", "ALTER TABLE account_balance DISABLE TRIGGER USER", "M"},
	{"the owner's", "ALTER TABLE account_balance ALTER balance SET DEFAULT 1", "M"},
	{"the owner's", "ALTER TABLE dlq_action DISABLE TRIGGER stamp", "M"},
	{"the owner's", "DROP TABLE inbox_pruned", "M"},
	{"the owner's", "CREATE TRIGGER mine BEFORE UPDATE ON account_balance FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()", "M"},
	{"the owner's", "CREATE INDEX ON account_balance ((balance + 1))", "M"},
	{"the owner's", "CREATE RULE mine AS ON UPDATE TO account_balance DO ALSO NOTHING", "M"},
	{"the owner's", "CREATE POLICY mine ON account_balance USING (true)", "M"},
	{"the owner's", "ALTER FUNCTION dlq_action_link() RESET search_path", "M"},
	{"the owner's", "UPDATE repair_policy SET four_eyes = four_eyes", "M"},
	{"the owner's", "ALTER TABLE account_balance OWNER TO projector_reader", ""},
	{"objects", "CREATE TABLE public.mine (i int)", "M"},
	{"objects", "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'", "M"},
	{"objects", "CREATE OPERATOR public.=== (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)", "M"},
	{"objects", "CREATE SCHEMA mine", "M"},
	{"objects", "CREATE TEMP TABLE account_balance (i int)", ""},
	{"objects", "CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'", ""},
	{"objects", "CREATE EXTENSION file_fdw", ""},
	{"roles", "SET ROLE projector_migrator", "M"},
	{"roles", "SET ROLE projector_runtime", "A"},
	{"roles", "SET ROLE projector_operator", "OF"},
	{"roles", "SET ROLE projector_approver", "P"},
	{"roles", "SET ROLE projector_projection", "AP"},
	{"roles", "SET SESSION AUTHORIZATION bank_migrate", "M"},
	{"roles", "CREATE ROLE mine", ""},
	{"roles", "GRANT projector_approver TO bank_operator", ""},
	{"roles", "ALTER ROLE bank_approver PASSWORD 'mine'", "P"},
	{"roles", "ALTER ROLE projector_runtime LOGIN", ""},
	{"grants", "GRANT UPDATE ON account_balance TO bank_nobody; DO $$ BEGIN IF NOT has_table_privilege('bank_nobody', 'account_balance', 'UPDATE') THEN RAISE insufficient_privilege; END IF; END $$", "M"},
	{"grants", "ALTER DEFAULT PRIVILEGES FOR ROLE projector_migrator GRANT ALL ON TABLES TO PUBLIC", "M"},
	{"server", "COPY (SELECT) TO PROGRAM 'true'", ""},
	{"server", "COPY (SELECT) TO '/tmp/mine'", ""},
	{"server", "SELECT pg_read_file('/etc/passwd')", ""},
	{"server", "SELECT lo_import('/etc/passwd')", ""},
	{"server", "SET session_replication_role = replica", ""},
	{"server", "SELECT pg_reload_conf()", ""},
	{"server", "LOAD 'auto_explain'", ""},
	{"server", "SELECT FROM pg_authid", ""},
	{"locks", "LOCK TABLE account_balance IN ACCESS EXCLUSIVE MODE", "AOPM"}, // a login with the right to UPDATE may also lock
	{"locks", "LOCK TABLE dlq_action IN SHARE MODE", "M"},
	{"locks", "SELECT FROM dlq_action_lock FOR UPDATE", "M"},
	{"locks", "LOCK TABLE projector_position IN SHARE UPDATE EXCLUSIVE MODE", "AOPM"}, // the first claim of a group waits for it
	{"locks", "LOCK TABLE inbox_pruned IN SHARE UPDATE EXCLUSIVE MODE", "AOPM"},       // `inbox prune` waits for it
	{"locks", "SELECT pg_try_advisory_xact_lock(1)", "RAOFPMN"},
	{"functions", "DO $$ BEGIN IF NOT has_function_privilege('dlq_action_link()', 'EXECUTE') THEN RAISE insufficient_privilege; END IF; END $$", "M"},
	{"functions", "SELECT projector_contained('SELECT 1', false, '')", "AP"},
	{"functions", "SELECT projector_await('nobody', 1, '1 ms')", "ROFPM"},
	{"policy", "INSERT INTO dlq_action (action, actor, result) VALUES ('skip', 'me', 'skipped')", "OPM"},
	{"policy", "INSERT INTO dlq_action (action, actor, result) VALUES ('fetch', 'me', 'applied')", "AOPM"},
	{"policy", "INSERT INTO dlq_action (at, action, actor, result) VALUES ('2000-01-01', 'fetch', 'me', 'applied')", "M"}, // M may insert, but the trigger overwrites the time
	{"policy", "SELECT set_config('projector.request', '1', true); INSERT INTO dlq_action (action, actor, result) VALUES ('fetch', 'me', 'applied')", ""},
}

// TestEveryLoginAgainstEveryClassOfStatement checks the rights of docs/decisions/0030 for a login
// of each role and for a login without a role. It fails for a table that is not in mayTables,
// because somebody must decide the rights of a new table.
func TestEveryLoginAgainstEveryClassOfStatement(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	r.exec(fmt.Sprintf("CREATE ROLE bank_nobody LOGIN PASSWORD '%s'; GRANT CONNECT ON DATABASE %s TO bank_nobody", rolesPassword, quoted(r.db.Config().ConnConfig.Database)))
	r.mayAll(map[rune]string{'R': "bank_reader", 'A': "bank_app", 'O': "bank_operator", 'P': "bank_approver", 'M': "bank_migrate", 'N': "bank_nobody"})
	r.mustAs("bank_migrate", "migrate", "--four-eyes=on")
	r.mayAll(map[rune]string{'A': "bank_app", 'F': "bank_operator", 'P': "bank_approver"})
}

// mayAll tries the statements of mayTable and mayStatements as each login.
func (r *roles) mayAll(logins map[rune]string) {
	r.t.Helper()
	relations := map[string]string{}
	rows, err := r.db.Query(r.t.Context(), `SELECT c.relname, CASE c.relkind WHEN 'v' THEN '' ELSE (
			SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attidentity = '' AND a.attname <> 'at' ORDER BY a.attnum LIMIT 1) END
		FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND c.relname <> 'new_events'`)
	if err != nil {
		r.t.Fatal(err)
	}
	var name, column string
	_, err = pgx.ForEachRow(rows, []any{&name, &column}, func() error { relations[name] = column; return nil })
	if err != nil {
		r.t.Fatal(err)
	}
	for role, login := range logins {
		session := r.session(login)
		for name, column := range relations {
			may, decided := mayTables[name]
			if !decided {
				r.t.Errorf("nobody has decided who may what in %s: add it to mayTables, and to roles.sql", name)
				continue
			}
			granted := map[rune]string{'R': may.reader, 'A': may.runtime, 'O': may.operator, 'F': may.fourEyes, 'P': may.approver, 'M': "SIUD", 'N': ""}[role]
			session.mayTable(name, column, granted, role == 'M')
		}
		for _, c := range mayStatements {
			session.checkPrivilege(c.statement, strings.ContainsRune(c.who, role))
		}
	}
}

// mayTable tries several types of statements on a relation and changes no row. For a view, column
// is empty and mayTable tries only SELECT.
func (s *session) mayTable(name, column, granted string, owner bool) {
	s.t.Helper()
	s.checkPrivilege("SELECT FROM "+name, strings.Contains(granted, "S"))
	if column == "" {
		return
	}
	updated := column
	if name == "repair_request" {
		updated = "state" // an approver has rights on this column
	}
	s.checkPrivilege(fmt.Sprintf("INSERT INTO %s (%s) SELECT NULL WHERE false", name, column), strings.Contains(granted, "I"))
	s.checkPrivilege(fmt.Sprintf("UPDATE %s SET %s = NULL WHERE false", name, updated), strings.Contains(granted, "U"))
	if owner {
		return // for the owner, triggers and not grants refuse the other statements
	}
	s.checkPrivilege(fmt.Sprintf("DELETE FROM %s WHERE false", name), strings.Contains(granted, "D"))
	s.checkPrivilege("TRUNCATE "+name, false)
	s.checkPrivilege("COPY "+name+" FROM PROGRAM 'true'", false)
}
