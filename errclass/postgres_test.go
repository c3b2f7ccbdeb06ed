package errclass_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m, nil) }

// The type classified is the result of this package for an error.
type classified struct {
	class        errclass.Class
	reason, says string // says is a part of the text of Safe
}

// checkPostgres compares the result for err with want. It also checks that the text contains
// neither a password nor the secret value of these tests.
func checkPostgres(t *testing.T, err error, want classified) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	err = fmt.Errorf("write batch: %w", err)
	safe := errclass.Safe(err)
	t.Log(safe)
	if got := errclass.Postgres(err); got != want.class {
		t.Errorf("class %v, want %v", got, want.class)
	}
	if got := errclass.Reason(err); got != want.reason {
		t.Errorf("reason %s, want %s", got, want.reason)
	}
	if !strings.HasPrefix(safe, "write batch: ") || !strings.Contains(safe, want.says) {
		t.Errorf("%q does not say %q", safe, want.says)
	}
	for _, secret := range []string{"4711", "hunter2"} {
		if strings.Contains(safe, secret) {
			t.Errorf("%q leaks %s", safe, secret)
		}
	}
}

func connect(t *testing.T, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

const ledger = `
CREATE TABLE ledger (
	id text PRIMARY KEY,
	balance numeric(12,2) CONSTRAINT ledger_balance_check CHECK (balance < 1000)
);
INSERT INTO ledger VALUES ('acc-4711', 1);
CREATE FUNCTION shout() RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'balance of acc-4711'; END $$;
CREATE ROLE %[1]s;`

func TestStatementsPostgresRefuses(t *testing.T) {
	databaseURL := devtest.Database(t)
	conn := connect(t, databaseURL)
	var role string
	if err := conn.QueryRow(t.Context(), "SELECT 'reader_of_' || current_database()").Scan(&role); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(ledger, role)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Exec(context.Background(), "DROP ROLE "+role) })

	const insert = "INSERT INTO ledger VALUES ($1, $2)"
	for _, c := range []struct {
		name, setting, statement string
		args                     []any
		want                     classified
	}{
		{"unique", "", insert, []any{"acc-4711", "1"}, classified{errclass.Isolate, "23505", "constraint ledger_pkey"}},
		{"check", "", insert, []any{"x", "4711.00"}, classified{errclass.Isolate, "23514", "constraint ledger_balance_check"}},
		{"overflow", "", insert, []any{"x", "47114711471147.00"}, classified{errclass.Isolate, "22003", "ERROR 22003 numeric_value_out_of_range"}},
		{"NUL", "", insert, []any{"4711\x00", "1"}, classified{errclass.Isolate, "22021", "ERROR 22021 character_not_in_repertoire"}},
		{"not UTF-8", "", insert, []any{"4711\xff", "1"}, classified{errclass.Isolate, "22021", "ERROR 22021 character_not_in_repertoire"}},
		{"not a number", "", "SELECT $1::text::bigint", []any{"4711x"}, classified{errclass.Isolate, "22P02", "ERROR 22P02 invalid_text_representation"}},
		{"twice in one upsert", "", `INSERT INTO ledger VALUES ('4711', 1), ('4711', 2)
			ON CONFLICT (id) DO UPDATE SET balance = EXCLUDED.balance`, nil, classified{errclass.Bug, "21000", "ERROR 21000"}},
		{"trigger", "", "SELECT shout()", nil, classified{errclass.Unknown, "P0001", "ERROR P0001"}},
		{
			"no table", "", "SELECT 1 FROM account_balance", nil,
			classified{errclass.RetryUnready, "42P01", `relation "account_balance" does not exist`},
		},
		{
			"no grant", "SET ROLE " + role, insert,
			[]any{"x", "1"},
			classified{errclass.RetryUnready, "42501", "permission denied for table ledger"},
		},
		{
			"statement timeout", "SET statement_timeout = 20", "SELECT pg_sleep(60)", nil,
			classified{errclass.Retry, "57014", "statement timeout"},
		},
		{
			"read-only", "SET default_transaction_read_only = on", insert,
			[]any{"x", "1"},
			classified{errclass.RetryReset, "25006", "read-only transaction"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := connect(t, databaseURL) // its own session, because a RESET could exceed the statement timeout too
			if _, err := conn.Exec(t.Context(), c.setting); err != nil {
				t.Fatal(err)
			}
			_, err := conn.Exec(t.Context(), c.statement, c.args...)
			checkPostgres(t, err, c.want)
		})
	}
}

func TestStatementAfterAFailedOneIsOurBug(t *testing.T) {
	tx, err := connect(t, devtest.Database(t)).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT 1/0"); err == nil {
		t.Fatal("divided by zero")
	}
	_, err = tx.Exec(t.Context(), "SELECT 1")
	checkPostgres(t, err, classified{errclass.Bug, "25P02", "aborted"})
	checkPostgres(t, tx.Commit(t.Context()), classified{errclass.Bug, "commit_rollback", "rollback"})
}

func TestUnreadableColumn(t *testing.T) {
	conn := connect(t, devtest.Database(t))
	var version int16
	err := conn.QueryRow(t.Context(), "SELECT 47114711::bigint AS version").Scan(&version)
	checkPostgres(t, err, classified{errclass.RetryUnready, "scan", "column version"})
}

func TestPlanFromBeforeAMigration(t *testing.T) {
	databaseURL := devtest.Database(t)
	conn, other := connect(t, databaseURL), connect(t, databaseURL)
	exec := func(c *pgx.Conn, statement string, args ...any) error {
		_, err := c.Exec(t.Context(), statement, args...)
		return err
	}
	const query = "SELECT * FROM balance WHERE id = $1" // the argument makes pgx cache the plan
	if err := exec(other, "CREATE TABLE balance (id bigint)"); err != nil {
		t.Fatal(err)
	}
	if err := exec(conn, query, 1); err != nil {
		t.Fatal(err)
	}
	if err := exec(other, "ALTER TABLE balance ADD version bigint"); err != nil {
		t.Fatal(err)
	}
	checkPostgres(t, exec(conn, query, 1), classified{errclass.RetryReset, "0A000", "cached plan"})
	if err := exec(conn, query, 1); err != nil {
		t.Errorf("the retry failed: %v", err)
	}
}

// urlWith returns the URL with the user, password and database replaced by the arguments that are
// not empty.
func urlWith(t *testing.T, databaseURL, user, password, database, query string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	if database != "" {
		u.Path = "/" + database
	}
	u.RawQuery = strings.Trim(u.RawQuery+"&"+query, "&")
	return u.String()
}

func TestConnectionsPostgresRefuses(t *testing.T) {
	server := devtest.Postgres(t, "max_connections", "8", "superuser_reserved_connections", "3")
	admin := connect(t, server.URL())
	for _, statement := range []string{
		"CREATE ROLE app LOGIN PASSWORD 'hunter2'", "CREATE ROLE nologin PASSWORD 'hunter2'",
		"CREATE DATABASE closed", "REVOKE CONNECT ON DATABASE closed FROM PUBLIC",
		"CREATE DATABASE frozen ALLOW_CONNECTIONS false", "CREATE ROLE single LOGIN PASSWORD 'hunter2' CONNECTION LIMIT 1",
	} {
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	base := server.URL()
	t.Run("one connection too many", func(t *testing.T) {
		held := connect(t, urlWith(t, base, "single", "hunter2", "", ""))
		_, err := pgx.Connect(t.Context(), urlWith(t, base, "single", "hunter2", "", ""))
		checkPostgres(t, err, classified{errclass.Retry, "53300", "too many connections"})
		if err := held.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	for _, c := range []struct {
		name, url string
		want      classified
	}{
		{"password", urlWith(t, base, "app", "hunter2x", "", ""), classified{errclass.RetryUnready, "28P01", "user=app"}},
		{"role", urlWith(t, base, "nobody", "hunter2", "", ""), classified{errclass.RetryUnready, "28P01", `"nobody"`}},
		{"login", urlWith(t, base, "nologin", "hunter2", "", ""), classified{errclass.RetryUnready, "28000", "not permitted to log in"}},
		{"database", urlWith(t, base, "", "", "bank", ""), classified{errclass.RetryUnready, "3D000", "database=bank"}},
		{"connect grant", urlWith(t, base, "app", "hunter2", "closed", ""), classified{errclass.RetryUnready, "42501", "permission denied"}},
		{"database closed", urlWith(t, base, "", "", "frozen", ""), classified{errclass.RetryUnready, "55000", "not currently accepting"}},
		// During a connect, 22023 is about the settings, not about a record.
		{"option", urlWith(t, base, "", "", "", "work_mem=hunter2"), classified{errclass.RetryUnready, "22023", "cannot connect"}},
		{
			"standby wanted", urlWith(t, base, "", "", "", "target_session_attrs=standby"),
			classified{errclass.Retry, "not_preferred", "standby"},
		},
		{
			"TLS wanted", strings.Replace(base, "sslmode=disable", "sslmode=require", 1),
			classified{errclass.Retry, "connect", "host=127.0.0.1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := pgx.Connect(t.Context(), c.url)
			checkPostgres(t, err, c.want)
		})
	}
}

func TestOutages(t *testing.T) {
	server := devtest.Postgres(t)
	pool, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	t.Run("killed backend", func(t *testing.T) {
		checkPostgres(t, terminated(t, server), classified{errclass.Retry, "57P01", "terminating connection"})
	})
	t.Run("attempt deadline", func(t *testing.T) {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = conn.Exec(ctx, "SELECT pg_sleep(60)")
		checkPostgres(t, err, classified{errclass.Retry, "timeout", "deadline exceeded"})
	})
	t.Run("stopped", func(t *testing.T) {
		if err := server.Stop(t.Context(), devstack.Immediate); err != nil {
			t.Fatal(err)
		}
		_, err := pgx.Connect(t.Context(), server.URL())
		checkPostgres(t, err, classified{errclass.Retry, "connect", "connection refused"})
	})
	t.Run("closed pool", func(t *testing.T) {
		pool.Close()
		_, err := pool.Exec(t.Context(), "SELECT 1")
		checkPostgres(t, err, classified{errclass.Retry, "closed", "closed pool"})
	})
}

// The function terminated returns the error that a session gets after another session has
// terminated it.
func terminated(t *testing.T, server *devstack.Postgres) error {
	t.Helper()
	victim, killer := connect(t, server.URL()), connect(t, server.URL())
	if _, err := killer.Exec(t.Context(), "SELECT pg_terminate_backend($1)", int64(victim.PgConn().PID())); err != nil {
		t.Fatal(err)
	}
	_, err := victim.Exec(t.Context(), "SELECT 1")
	return err
}

// TestHangingUp closes the connection like a server that dies. The client then gets an end of file
// or a connection reset.
func TestHangingUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_ = conn.Close()
		}
	}()
	_, err = pgx.Connect(t.Context(), "postgres://app:hunter2@"+listener.Addr().String()+"/bank?sslmode=disable")
	checkPostgres(t, err, classified{errclass.Retry, "eof", "EOF"})
}

// TestMistypedURL shows that Safe hides a part of the password that became part of the host name.
// This happens if a password is not percent-encoded.
func TestMistypedURL(t *testing.T) {
	_, err := pgx.Connect(t.Context(), "postgres://app:x@hunter2@127.0.0.1:1/bank?sslmode=disable")
	if safe := errclass.Safe(err); strings.Contains(safe, "hunter2") || safe == "" {
		t.Errorf("leaks: %s", safe)
	}
}
