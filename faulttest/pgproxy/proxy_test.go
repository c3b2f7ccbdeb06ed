package pgproxy_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/faulttest/pgproxy"
	"projector/internal/devstack/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m, nil) }

// The function proxied returns a proxy, the URL of a database, the URL of this database through the
// proxy, and a function that connects through the proxy.
func proxied(t *testing.T) (p *pgproxy.Proxy, database, through string, connect func() *pgx.Conn) {
	t.Helper()
	database = devtest.Database(t)
	p, through, err := pgproxy.ListenBefore(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, database, through, func() *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), through)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		return conn
	}
}

func TestALostReplyIsOfACommitThatTookPlace(t *testing.T) {
	p, _, _, connect := proxied(t)
	conn := connect()
	if _, err := conn.Exec(t.Context(), "CREATE TABLE t (n int)"); err != nil {
		t.Fatal(err)
	}
	p.LoseReplies(func() bool { return true })
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO t VALUES ($1)", 1)
		return err
	})
	if err == nil || p.Lost() != 1 {
		t.Fatalf("error %v, %d replies lost", err, p.Lost())
	}
	p.LoseReplies(nil)
	var n int
	if err := connect().QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows, error %v", n, err)
	}
}

func TestSlowAndRefused(t *testing.T) {
	p, database, through, connect := proxied(t)
	conn := connect()
	p.Slow(time.Millisecond, 1<<20)
	var text string
	if err := conn.QueryRow(t.Context(), "SELECT repeat('x', 100000)").Scan(&text); err != nil || len(text) != 100_000 {
		t.Fatalf("%d bytes, error %v", len(text), err)
	}
	if p.Delayed() == 0 {
		t.Error("nothing was delayed")
	}
	p.SwitchTo("")
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the connection is still there")
	}
	if _, err := pgx.Connect(t.Context(), through); err == nil {
		t.Error("a connection was let through")
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	p.SwitchTo(u.Host)
	if err := connect().Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
