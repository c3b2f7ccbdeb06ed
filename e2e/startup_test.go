package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// shortStream returns a short stream for tests in which the content of the records does not matter.
func (w *world) shortStream() []testbank.Record {
	w.t.Helper()
	return testbank.Generate(testbank.Options{Seed: seed(w.t), Records: 400, Partitions: w.partitions, Accounts: 40})
}

// The method waits expects the program to stay alive and unready, and to report the reason.
func (p *program) waits(reason string) {
	p.t.Helper()
	awaitWithin(p.t, soon, "unready with the reason", p.answers("/readyz", 503, reason))
	if status, body := p.get("/livez"); status != 200 {
		p.t.Errorf("/livez while waiting: %d %s", status, body)
	}
	await(p.t, "a line of the log", p.logged("failing, will retry"))
}

func TestDatabaseDownAtStart(t *testing.T) {
	t.Parallel()
	cluster, databaseURL := ownPostgres(t)
	w := newWorldOn(t, devtest.Broker(t).Addrs(), databaseURL, 2)
	w.produce(w.shortStream())
	if err := cluster.Stop(t.Context(), devstack.Fast); err != nil {
		t.Fatal(err)
	}
	p := w.start()
	p.waits("PostgreSQL")
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.exact(w.oracle(), exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
	w.atRest()
}

// TestAFrozenBrokerIsNamed uses a broker that accepts connections but never answers. The program
// must not report this as a DNS error.
func TestAFrozenBrokerIsNamed(t *testing.T) {
	t.Parallel()
	frozen, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = frozen.Close() })
	_, port, err := net.SplitHostPort(frozen.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	broker := "localhost:" + port // a host name, because the client resolves it for each connection
	w := newWorld(t, 1)
	p := w.start("--brokers=" + broker)
	p.waits("Kafka: no answer from " + broker + " within 4s")
	p.Signal(syscall.SIGTERM)
	if status := p.exit(soon); status != 0 { // a connection attempt takes up to 10 s
		t.Errorf("exit status %d", status)
	}
	begun := time.Now()
	status, _, stderr := once(t, []string{"KAFKA_BROKERS=" + broker, "KAFKA_TOPIC=" + w.topic}, "inspect")
	took := time.Since(begun)
	_, rest, _ := strings.Cut(stderr, "reach Kafka by --brokers (KAFKA_BROKERS): no answer from "+broker+" within ")
	reported, _, _ := strings.Cut(rest, "\n")
	if waited, err := time.ParseDuration(reported); status != 1 || err != nil || waited < 15*time.Second || waited > took+time.Second {
		t.Errorf("exit status %d after %s: %s", status, took, stderr)
	}
}

// TestPlainJSONWithARegistryThatIsAway reads plain JSON with --format=avro and an unreachable
// registry. The settings are wrong and the events are valid, so no event may be dead-lettered.
func TestPlainJSONWithARegistryThatIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.produce(w.shortStream())
	p := w.start("--format=avro", "--schema-registry-url=http://127.0.0.1:1")
	p.waits("is --format=json (EVENT_FORMAT) meant?")
	if n := w.ends(w.topic + ".dlq")[0]; n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// role creates a role without grants and returns the database URL for it.
func (w *world) role(secret string) (name, databaseURL string) {
	w.t.Helper()
	name = w.topic
	w.exec(fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", quoted(name), secret))
	w.t.Cleanup(func() {
		ctx := context.Background() // the cleanup runs after the test's context has ended
		conn, err := pgx.Connect(ctx, w.url)
		if err != nil {
			w.t.Errorf("drop role %s: %v", name, err)
			return
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, fmt.Sprintf("DROP OWNED BY %[1]s CASCADE; DROP ROLE %[1]s", quoted(name))); err != nil {
			w.t.Errorf("drop role %s: %v", name, err)
		}
	})
	u, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal("the database's URL cannot be read")
	}
	u.User = url.UserPassword(name, secret)
	return name, u.String()
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func (w *world) grant(role string) {
	w.t.Helper()
	w.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO " + quoted(role))
}

func TestRefusedCredentialsAtStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.produce(w.shortStream())
	role, databaseURL := w.role("correct-horse")
	w.grant(role)
	w.exec(fmt.Sprintf("ALTER ROLE %s PASSWORD 'another-secret'", quoted(role)))
	p := w.startOn(databaseURL)
	p.waits("28P01")
	w.exec(fmt.Sprintf("ALTER ROLE %s PASSWORD 'correct-horse'", quoted(role)))
	w.exact(w.oracle(), exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))
}

func TestMissingGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.produce(w.shortStream())
	role, databaseURL := w.role("correct-horse")
	p := w.startOn(databaseURL)
	p.waits("42501")
	w.grant(role)
	w.exact(w.oracle(), exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))
	w.exec("REVOKE INSERT, UPDATE ON account_balance FROM " + quoted(role))
	awaitWithin(t, soon, "an idle instance without a grant is unready", p.answers("/readyz", 503, "account_balance"))
	sent := w.ends(w.topic)
	w.produce([]testbank.Record{{Key: []byte("new"), Value: []byte(`{"eventId":"e","eventType":"AccountOpened","accountId":"new","version":1,"occurredAt":"2026-01-01T00:00:00Z","data":{"currency":"EUR"}}`)}})
	await(t, "the record is retried", w.retrying(p))
	if at := w.positions(); at[0] != sent[0] {
		t.Errorf("position %v has passed what was not written", at)
	}
	w.grant(role)
	w.exact(w.oracle(), exactlyOnce)
	await(t, "ready again", p.answers("/readyz", 200, ""))
}

func TestSchemaMissingOrOlder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for what, sql := range map[string]string{
		"older":   "DELETE FROM projector_schema_version WHERE version_id = (SELECT max(version_id) FROM projector_schema_version)",
		"missing": "DROP TABLE projector_schema_version",
	} {
		w.exec("BEGIN; " + sql + "; COMMIT")
		p := w.start()
		if status := p.exit(soon); status != 1 {
			t.Errorf("%s schema: exit status %d, want 1", what, status)
		}
		if !strings.Contains(p.log(), "projector migrate") {
			t.Errorf("%s schema: the remedy is not named", what)
		}
		if what == "missing" {
			break // the table is already dropped
		}
	}
}

func TestTopicMissingAtStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.partitions = 2
	w.name(strings.ToLower(t.Name()) + "-" + fmt.Sprint(seed(t)))
	p := w.start()
	p.waits(w.topic)
	w.createTopic(t, w.topic, w.partitions, nil)
	w.produce(w.shortStream())
	w.exact(w.oracle(), exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
	w.atRest()
}
