//go:build citus

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// onCitus returns a test environment with its own schema for the tables. TEST_CITUS_URL is the URL
// of the coordinator. This URL must not set search_path.
func onCitus(t *testing.T, partitions int32) *world {
	t.Helper()
	named := os.Getenv("TEST_CITUS_URL")
	u, err := url.Parse(named)
	if named == "" || err != nil {
		t.Fatal("TEST_CITUS_URL must name a database on a coordinator of Citus, e.g. postgres://postgres@host:5432/postgres")
	}
	schema := fmt.Sprintf("projector_test_%d", time.Now().UnixNano())
	conn, err := pgx.Connect(t.Context(), named)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = conn.Exec(t.Context(), "CREATE SCHEMA "+schema); err == nil {
		err = conn.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // this needs a new connection, because a test may have killed the node
		awaitWithin(t, patience, "the schema is dropped", func() string { return dropSchema(named, schema) })
	})
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return newWorldOn(t, devtest.Broker(t).Addrs(), u.String(), partitions)
}

// dropSchema drops a schema on all nodes. It returns "" or the reason why it failed. It can fail
// because a killed node had prepared a transaction, which locks the tables until Citus recovers it.
func dropSchema(databaseURL, schema string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SET lock_timeout = '5s'; DROP SCHEMA "+schema+" CASCADE"); err != nil {
		return err.Error()
	}
	return ""
}

// TestOnCitus projects a stream with gaps onto distributed tables and kills an instance in the
// middle. Then it repairs accounts, opens accounts, verifies and reads. The results must be the
// same as on a single server. A rebuild must be refused, because Citus does not support it.
func TestOnCitus(t *testing.T) {
	w := onCitus(t, 4)
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0], "KAFKA_TOPIC=" + w.topic, "KAFKA_GROUP=" + w.group}
	must := func(args ...string) string {
		t.Helper()
		status, stdout, stderr := once(t, env, args...)
		if status != 0 {
			t.Fatalf("%v: exit %d: %s", args, status, stderr)
		}
		return stdout
	}
	must("migrate")
	total := scaled(10_000)
	records := testbank.Generate(testbank.Options{Seed: seed(t), Records: total, Partitions: w.partitions, Accounts: 500})
	w.produce(records[:total/8])
	plain := w.start("--park-limit=60")
	await(t, "rows and parked events in tables that are not distributed", w.passed(int64(total/8)))
	plain.terminate()
	for range 2 { // the second run must have nothing to do
		must("migrate", "--citus")
	}
	if _, _, said := once(t, env, "migrate", "status"); !strings.Contains(said, "distributed by Citus: account_balance (") {
		t.Errorf("migrate status says %s", said)
	}
	w.produce(records[total/8 : total/2])
	a, b := w.start("--park-limit=60"), w.start("--park-limit=60")
	await(t, "half way", w.passed(int64(total/4)))
	a.kill()
	w.evict()
	finish := w.feed(records[total/2:], total/50, 5*time.Millisecond)
	finish()
	o := w.oracle()
	w.exact(o, repeated)

	w.append(credits("waits", 1, 1)...)
	w.append(credits("waits", 3, 100)...)
	await(t, "the hole", w.reads("waits", "1 0.01 true 2"))
	if gaps := must("gaps", "--output=json"); !strings.Contains(gaps, `"waits"`) {
		t.Errorf("gaps: %s", gaps)
	}
	must("account", "skip", "waits", "--version=2", "--reason=test", "--yes")
	must("dlq", "replay", "--account=waits", "--reason=test", "--yes")
	for _, account := range []string{"left-1", "left-2"} { // discards the dead letters of several accounts beyond the park limit
		w.append(credits(account, 1, 1)...)
		w.append(credits(account, 3, 100)...)
		await(t, "the hole", w.reads(account, "1 0.01 true 2"))
	}
	await(t, "every record consumed", w.arrived)
	must("dlq", "discard", "--class=version_gap", "--reason=test", "--yes")
	for _, account := range []string{"left-1", "left-2"} {
		await(t, "nothing waits", w.reads(account, "1 0.01 false"))
	}
	await(t, "the repair", w.reads("waits", "100 0.99 false"))
	var reached int64
	if err := w.db.QueryRow(t.Context(), "SELECT projector_await('waits', 100, '1s')").Scan(&reached); err != nil || reached != 100 {
		t.Errorf("projector_await: %d, %v", reached, err)
	}
	if _, err := w.db.Exec(t.Context(), "UPDATE account_balance SET version = 1 WHERE account_id = 'waits'"); err == nil {
		t.Error("a version was lowered")
	}
	must("account", "show", "waits")

	if n := w.open(map[string]testbank.Row{"opened": {Version: 4, Balance: "10.00", Currency: "EUR", Status: "open", LastEventID: "opened-4"}}); n != 1 {
		t.Errorf("%d accounts opened", n)
	}
	w.append(credits("opened", 4, 6)...)
	await(t, "what follows the opening", w.reads("opened", "6 10.02 false"))
	ledger := w.rows()
	maps.DeleteFunc(ledger, func(_ string, r testbank.Row) bool { return !r.Exists }) // accounts that wait for their first event
	must("verify", "--ledger="+w.ledger(ledger), "--sample=1000")
	wrong := ledger["opened"]
	wrong.Balance = "10.03"
	ledger["opened"] = wrong
	if status, stdout, _ := once(t, env, "verify", "--ledger="+w.ledger(ledger)); status != 1 || !strings.Contains(stdout, "opened") {
		t.Errorf("verify of a wrong balance: exit %d: %s", status, stdout)
	}
	statements := *w
	statements.group += "-statement"
	entries := statements.start("--projection=account_statement")
	await(t, "the statement", func() string {
		if status, stdout, said := once(t, env, "account", "statement", "opened"); status != 0 || strings.Count(stdout, "opened-") < 2 {
			return stdout + said
		}
		return ""
	})
	entries.terminate()

	if status, _, said := once(t, env, "rebuild"); status != 1 || !strings.Contains(said, "is distributed by Citus") {
		t.Errorf("rebuild: exit %d: %s", status, said)
	}
	await(t, "ready", b.answers("/readyz", 200, ""))
	b.terminate()
	w.atRest()
}
