package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// administrator is the user who created the database.
const administrator = ""

// rolesPassword is the password of every user of newRoles.
const rolesPassword = "roles-horse-battery"

// roles is a test environment whose database has the users of docs/security.md: bank_migrate,
// bank_app, bank_operator and bank_colleague, bank_approver and bank_reader.
type roles struct {
	*world
	cluster *devstack.Postgres
	files   *secretFolder
}

// newRoles creates the users on a separate cluster, because roles belong to a cluster. The database
// has no schema yet.
func newRoles(t *testing.T) *roles {
	t.Helper()
	authority := newAuthority(t)
	certificate := issue(t, authority, "database", "127.0.0.1")
	cluster := devtest.PostgresWith(t, devstack.PostgresOptions{Certificate: &certificate})
	return newRolesOn(t, devtest.Broker(t).Addrs(), cluster, 2, authority)
}

// newRolesOn creates the users and a database. If partitions is zero, it creates no topic.
func newRolesOn(t *testing.T, addrs []string, cluster *devstack.Postgres, partitions int32, authority *devstack.Authority) *roles {
	t.Helper()
	databaseURL, err := cluster.NewDatabase(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return newRolesIn(t, addrs, cluster, databaseURL, partitions, authority)
}

// newRolesIn creates the users with the login of databaseURL. If partitions is zero, it creates no
// topic.
func newRolesIn(t *testing.T, addrs []string, cluster *devstack.Postgres, databaseURL string, partitions int32, authority *devstack.Authority) *roles {
	t.Helper()
	r := &roles{
		world: newWorldOn(t, addrs, databaseURL, partitions), cluster: cluster,
		files: newSecretFolder(t, map[string]string{"ca.crt": string(authority.PEM()), "password": rolesPassword}),
	}
	r.rolesFile()
	r.exec(logins(t, rolesPassword))
	r.exec(fmt.Sprintf("CREATE ROLE bank_colleague LOGIN PASSWORD '%s' IN ROLE projector_operator", rolesPassword))
	return r
}

// rolesFile runs sql/roles.sql as the administrator.
func (r *roles) rolesFile() {
	r.t.Helper()
	text, err := os.ReadFile("../sql/roles.sql")
	if err != nil {
		r.t.Fatal(err)
	}
	r.exec(string(text))
}

// connection returns the environment variables for a user's database connection. It has TLS, and
// the password is in a file.
func (r *roles) connection(user string) (env []string) {
	query := url.Values{"sslmode": {"verify-full"}, "sslrootcert": {r.files.path("ca.crt")}}
	u := url.URL{Scheme: "postgres", User: url.User(user), Host: r.cluster.Addr(), Path: r.db.Config().ConnConfig.Database, RawQuery: query.Encode()}
	return []string{"DATABASE_URL=" + u.String(), "DATABASE_PASSWORD_FILE=" + r.files.path("password"), "KAFKA_BROKERS=" + r.addrs[0]}
}

// runAs runs a command to its end with the database login of user.
func (r *roles) runAs(user string, args ...string) (status int, stderr string) {
	r.t.Helper()
	status, _, stderr = once(r.t, r.connection(user), args...)
	return status, stderr
}

// session is a user's connection to the database.
type session struct {
	t    testing.TB
	user string
	conn *pgx.Conn
}

// urlOf returns the database URL of a user of newRoles.
func (w *world) urlOf(user string) string {
	w.t.Helper()
	u, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal("the database's URL cannot be read")
	}
	if user != administrator {
		u.User = url.UserPassword(user, rolesPassword)
	}
	return u.String()
}

func (w *world) session(user string) *session {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.urlOf(user))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &session{t: w.t, user: user, conn: conn}
}

// checkPrivilege expects a statement to succeed if allowed is true. Otherwise it expects an error
// because of a missing privilege. It rolls the statement back.
func (s *session) checkPrivilege(statement string, allowed bool) {
	s.t.Helper()
	ctx := s.t.Context()
	tx, err := s.conn.Begin(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = tx.Exec(ctx, statement)
	_ = tx.Rollback(ctx)
	var refused *pgconn.PgError
	switch {
	case allowed && err != nil:
		s.t.Errorf("%s may not: %s: %v", s.user, statement, err)
	case !allowed && (!errors.As(err, &refused) || refused.Code != "42501"):
		s.t.Errorf("%s: %s: got %v, want it refused with 42501", s.user, statement, err)
	}
}

// TestRoles runs usual work as several of the users of newRoles. It expects the harmful statements
// in this test to be refused.
func TestRoles(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	// The error for a login of another role than projector_migrator does not propose that this
	// login becomes the owner of the tables.
	if status, stderr := r.runAs("bank_app", "migrate"); status != 1 || strings.Contains(stderr, "GRANT") || !strings.Contains(stderr, "a login in projector_migrator") {
		t.Errorf("migrate as bank_app: exit status %d: %s", status, stderr)
	}
	for range 2 {
		if status, stderr := r.runAs("bank_migrate", "migrate"); status != 0 {
			t.Fatalf("migrate: exit status %d: %s", status, stderr)
		}
		r.exec("REVOKE EXECUTE ON FUNCTION projector_await FROM PUBLIC")
		r.rolesFile() // can be repeated without harm
	}
	r.refusedAs("bank_app", "permission denied", "migrate")
	var strangers string
	if err := r.db.QueryRow(t.Context(), `SELECT coalesce(string_agg(relname, ', '), '') FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') AND relowner <> 'projector_migrator'::regrole`).Scan(&strangers); err != nil || strangers != "" {
		t.Errorf("not owned by projector_migrator: %s %v", strangers, err)
	}

	r.produce(r.shortStream())
	p := launch(t, []string{rolesPassword}, r.connection("bank_app"), r.flags()...)
	r.exact(r.oracle(), exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
	r.atRest()
	for _, projection := range []string{"account_statement", "daily_turnover"} {
		p := launch(t, []string{rolesPassword}, r.connection("bank_app"),
			r.flags("--projection="+projection, "--group="+r.group+"-"+projection)...)
		await(t, projection+" is written", r.caughtUp(r.group+"-"+projection))
		await(t, projection+" is ready", p.answers("/readyz", 200, ""))
		p.terminate()
	}

	var account string
	var version int64
	if err := r.db.QueryRow(t.Context(), "SELECT account_id, expected_version FROM account_hold LIMIT 1").Scan(&account, &version); err != nil {
		t.Fatal(err)
	}
	topic, group := "--topic="+r.topic, "--group="+r.group
	for _, args := range [][]string{
		{"gaps"},
		{"account", "show", account},
		{"account", "statement", account},
		{"dlq", "list", topic},
		{"account", "skip", account, fmt.Sprintf("--version=%d", version), "--reason=test", "--yes"},
		{"lag", topic, group},
		{"position", topic, group},
		{"position", "set", topic, group, "--all", "--end", "--reason=test", "--yes"},
		{"pause", topic, group, "--all", "--reason=test", "--yes"},
		{"resume", topic, group, "--all", "--through=5", "--reason=test", "--yes"},
		{"inbox", "prune"},
		{"rebuild", topic, group, "--ignore-event-types=" + testbank.IgnoredType},
	} {
		if status, stderr := r.runAs("bank_operator", args...); status != 0 {
			t.Errorf("operator: %s: exit status %d: %s", strings.Join(args, " "), status, stderr)
		}
	}
	if status, stderr := r.runAs("bank_app", "rebuild", topic, group); status != 1 || !strings.Contains(stderr, "EXECUTE on function projector_rebuild_tables") {
		t.Errorf("app: rebuild: exit status %d: %s", status, stderr)
	}
	if status, stderr := r.runAs("bank_reader", "account", "statement", account); status != 0 {
		t.Errorf("reader: account statement: exit status %d: %s", status, stderr)
	}
	r.exec("UPDATE account_balance SET balance = balance - sign(balance)") // changes each balance by one unit towards zero, so it cannot overflow
	r.exec("UPDATE account_statement SET amount = amount + 1 WHERE version = (SELECT min(version) FROM account_statement WHERE amount > 0)")
	r.exec("DELETE FROM account_statement WHERE version = 1")
	r.exec("UPDATE daily_turnover SET events = events + 1 WHERE day = (SELECT min(day) FROM daily_turnover)")
	if status, stderr := r.runAs("bank_operator", "dlq", "replay", topic, "--yes"); status != 1 || !strings.Contains(stderr, "records could not be applied") {
		t.Errorf("operator: dlq replay of what cannot be applied: exit status %d: %s", status, stderr)
	}
	for user, projection := range map[string]string{"bank_operator": "account_balance", "bank_approver": "account_statement", "bank_migrate": "daily_turnover"} {
		rebuild := []string{"rebuild", topic, group, "--projection=" + projection, "--ignore-event-types=" + testbank.IgnoredType, "--output=json"}
		if projection != "account_balance" {
			rebuild[2] += "-" + projection
		}
		r.mustAs(user, append(rebuild, "--yes")...)
		if left := r.mustAs(user, rebuild...); !strings.Contains(left, `"different":0`) {
			t.Errorf("%s: rebuild of %s: what is left: %s", user, projection, left)
		}
	}
	if wrong := r.balances(); wrong != 0 {
		t.Errorf("%d balances are not what the events come to", wrong)
	}
	remove := []string{"position", "remove", topic, "--group=" + r.group + "-account_statement", "--reason=test", "--yes"}
	if status, stderr := r.runAs("bank_operator", remove...); status != 1 ||
		!strings.Contains(stderr, "give the role that migrates in --database-url (DATABASE_URL)") {
		t.Errorf("operator: position remove: exit status %d: %s", status, stderr)
	}
	if status, stderr := r.runAs("bank_migrate", remove...); status != 0 {
		t.Errorf("position remove: exit status %d: %s", status, stderr)
	}
	r.refusals()
}

// caughtUp returns a check for await. It succeeds when the group has the same position as the group
// of the test environment, which is at the end of the topic.
func (r *roles) caughtUp(group string) func() string {
	return func() string {
		var at, end string
		err := r.db.QueryRow(r.t.Context(), `SELECT coalesce(string_agg(next_offset::text, ' ' ORDER BY partition) FILTER (WHERE consumer_group = $1), ''),
			coalesce(string_agg(next_offset::text, ' ' ORDER BY partition) FILTER (WHERE consumer_group = $2), '') FROM projector_position`, group, r.group).Scan(&at, &end)
		if err != nil {
			return err.Error()
		}
		if at != end {
			return group + " is at " + at + " of " + end
		}
		return ""
	}
}

// balances counts the accounts whose balance differs from the balance of the oracle. It ignores
// accounts with a missing version, because the oracle does not know the skipped events.
func (r *roles) balances() (wrong int) {
	r.t.Helper()
	rows := r.rows()
	for id, want := range r.oracle().Rows() {
		if got := rows[id]; !want.Stale && got.Balance != want.Balance {
			wrong++
		}
	}
	return wrong
}

// refusals runs statements as the runtime's login, an operator and a reader. It expects the harmful
// statements to be refused.
func (r *roles) refusals() {
	r.t.Helper()
	var tables []string
	if err := r.db.QueryRow(r.t.Context(), "SELECT array_agg(tablename::text) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil {
		r.t.Fatal(err)
	}
	app, operator, reader := r.session("bank_app"), r.session("bank_operator"), r.session("bank_reader")
	for _, user := range []*session{app, operator, reader} {
		user.checkPrivilege("CREATE TABLE mine (i int)", false)
		for _, table := range tables {
			user.checkPrivilege("DROP TABLE "+table, false)
			user.checkPrivilege("TRUNCATE "+table, false)
			user.checkPrivilege("ALTER TABLE "+table+" DISABLE TRIGGER ALL", false)
			user.checkPrivilege("ALTER TABLE "+table+" ADD COLUMN mine int", false)
		}
	}
	for _, user := range []*session{app, operator} {
		rebuilds := user == operator
		user.checkPrivilege("DELETE FROM account_balance", rebuilds)
		user.checkPrivilege("DELETE FROM account_statement", rebuilds)
		user.checkPrivilege("UPDATE account_statement SET amount = 0", rebuilds)
		user.checkPrivilege("SELECT projector_rebuild_tables('{}', '{}')", rebuilds)
		user.checkPrivilege("CREATE SCHEMA mine", false)
		user.checkPrivilege("DELETE FROM projector_position", false)
		user.checkPrivilege("UPDATE projector_schema_version SET version_id = 99", false)
		user.checkPrivilege("DELETE FROM dlq_action", false)
		user.checkPrivilege("UPDATE dlq_action SET actor = 'nobody'", false)
	}
	app.checkPrivilege("SELECT FROM dlq_action", false)
	app.checkPrivilege("INSERT INTO dlq_action (action, actor, result) VALUES ('fetch', 'me', 'applied'); SET CONSTRAINTS ALL IMMEDIATE", true) // the runtime may record the events that it fetches
	open := map[string]bool{
		"account_statement": true, "daily_turnover": true,
		"projector_position": true, "projector_source": true, "projector_schema_version": true, // `account statement` reads these
	}
	for _, table := range tables {
		reader.checkPrivilege("SELECT FROM "+table, open[table])
		reader.checkPrivilege("DELETE FROM "+table, false)
	}
	reader.checkPrivilege("SELECT projector_await('nobody', 1, '1 ms')", true)
	for _, view := range []string{"account_balance_current", "account_hold", "account_statement_missing", "account_skipped", "account_statement_balance"} {
		reader.checkPrivilege("SELECT FROM "+view, true)
	}
}

// TestMissingSchemaPrivilege revokes the right to use the schema. PostgreSQL then reports the
// tables as undefined, but the program must continue to run.
func TestMissingSchemaPrivilege(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.produce(w.shortStream())
	role, databaseURL := w.role("correct-horse")
	w.grant(role)
	w.exec("REVOKE USAGE ON SCHEMA public FROM PUBLIC")
	p := w.startOn(databaseURL)
	p.waits("USAGE on schema public")
	w.exec("GRANT USAGE ON SCHEMA public TO " + quoted(role))
	w.exact(w.oracle(), exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))
	w.exec("REVOKE USAGE ON SCHEMA public FROM " + quoted(role))
	await(t, "unready again", p.answers("/readyz", 503, "USAGE on schema public"))
}

// TestDatabaseSecretsChange replaces the database's certificate and the password while the
// projector runs. The new certificate is from another authority. The projector must be unready
// until its files have the new values.
func TestDatabaseSecretsChange(t *testing.T) {
	t.Parallel()
	const renewed = "renewed-horse-battery"
	r := newRoles(t)
	if status, stderr := r.runAs("bank_migrate", "migrate"); status != 0 {
		t.Fatalf("migrate: exit status %d: %s", status, stderr)
	}
	p := launch(t, []string{rolesPassword, renewed}, r.connection("bank_app"), r.flags()...)
	r.produce(r.shortStream())
	r.exact(r.oracle(), exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))

	authority := newAuthority(t)
	if err := r.cluster.RenewCertificate(t.Context(), issue(t, authority, "database", "127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	r.breakOff("bank_app")
	await(t, "the new authority is unknown", p.answers("/readyz", 503, "unknown authority"))
	r.files.swap(map[string]string{"ca.crt": string(authority.PEM())})
	await(t, "the new authority is known", p.answers("/readyz", 200, ""))

	r.exec("ALTER ROLE bank_app PASSWORD '" + renewed + "'")
	r.breakOff("bank_app")
	await(t, "the old password is refused", p.answers("/readyz", 503, "28P01"))
	if err := os.Remove(r.files.path("password")); err != nil {
		t.Fatal(err)
	}
	await(t, "no password file", p.answers("/readyz", 503, "--database-password-file"))
	if err := os.WriteFile(r.files.path("password"), []byte(renewed+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "the new password is accepted", p.answers("/readyz", 200, ""))
	r.produce(r.shortStream())
	r.exact(r.oracle(), exactlyOnce)
	p.terminate()
	r.atRest()
}

// breakOff ends all sessions of a user.
func (r *roles) breakOff(user string) {
	r.t.Helper()
	r.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", user)
}
