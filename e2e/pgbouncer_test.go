//go:build pgbouncer && linux

package e2e_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"projector/internal/testbank"
)

// sessionSettings are what the projector asks for when it connects. PgBouncer passes
// none of it on, so the database has to know: docs/scaling.md.
var sessionSettings = map[string]string{
	"idle_in_transaction_session_timeout": "20s", "lock_timeout": "5s", "statement_timeout": "60s",
	"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off",
}

// pooled starts a PgBouncer before the world's database, which gives a connection to
// another client after each transaction, and answers the database's URL through it.
func (w *world) pooled(connections int) string {
	w.t.Helper()
	server, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal("the database's URL cannot be read")
	}
	name, secret := strings.TrimPrefix(server.Path, "/"), password(w.t, w.url)
	var ignored []string
	for setting, value := range sessionSettings {
		ignored = append(ignored, setting)
		w.exec(fmt.Sprintf("ALTER DATABASE %q SET %s = '%s'", name, setting, value))
	}
	port := freePort(w.t)
	config := filepath.Join(w.t.TempDir(), "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
%s = host=%s port=%s dbname=%s user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
ignore_startup_parameters = %s
`, name, server.Hostname(), server.Port(), name, server.User.Username(), secret, port, connections, strings.Join(ignored, ","))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	args := []string{"-q", config}
	if os.Geteuid() == 0 { // which it refuses to be
		args = append([]string{"-u", "nobody"}, args...)
	}
	bouncer := exec.Command("pgbouncer", args...)
	bouncer.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	bouncer.Stderr = os.Stderr
	if err := bouncer.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = bouncer.Process.Signal(syscall.SIGTERM)
		_ = bouncer.Wait()
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	await(w.t, "PgBouncer listens", func() string {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err.Error()
		}
		_ = conn.Close()
		return ""
	})
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&default_query_exec_mode=cache_describe", server.User.Username(), address, name)
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// TestThroughPgBouncer runs two instances, one of which is killed, and repairs through a
// pooler in transaction mode with fewer connections than there are partitions.
func TestThroughPgBouncer(t *testing.T) {
	const connections = 3
	w := newWorld(t, 6)
	pooled := w.pooled(connections)
	total := scaled(30_000)
	records := testbank.Generate(testbank.Options{Seed: seed(t), Records: total, Partitions: w.partitions, Accounts: 1500, Rivals: true})
	w.produce(records[:total/2])
	a, b := w.startOn(pooled), w.startOn(pooled)
	await(t, "half way", w.passed(int64(total/4)))
	a.kill()
	w.evict()
	finish := w.feed(records[total/2:], total/100, 5*time.Millisecond)
	finish()
	o := w.oracle()
	w.exact(o, repeated)
	await(t, "ready", b.answers("/readyz", 200, ""))
	var sessions int
	err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'projector'`).Scan(&sessions)
	if err != nil || sessions == 0 || sessions > connections {
		t.Errorf("%d sessions of the projector, want 1 to %d: %v", sessions, connections, err)
	}
	w.append(credits("bounced", 1, 1)...)
	w.append(credits("bounced", 3, 4)...)
	await(t, "the hole", w.reads("bounced", "1 0.01 true 2"))
	env := []string{"DATABASE_URL=" + pooled, "KAFKA_BROKERS=" + w.addrs[0]}
	for _, args := range [][]string{
		{"account", "skip", "bounced", "--version=2", "--reason=test", "--yes"},
		{"gaps"},
		{"dlq", "list", "--topic=" + w.topic},
		{"lag", "--topic=" + w.topic, "--group=" + w.group},
	} {
		if status, _, stderr := once(t, env, args...); status != 0 {
			t.Errorf("%v: exit %d: %s", args, status, stderr)
		}
	}
	await(t, "the repair", w.reads("bounced", "4 0.03 false"))
	b.terminate()
	w.atRest()
}
