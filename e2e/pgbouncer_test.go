//go:build pgbouncer && linux

package e2e_test

import (
	"context"
	"os"
	"testing"
	"time"

	"projector/internal/devstack"
	"projector/internal/testbank"
)

// The method pooled starts a PgBouncer in transaction mode for the test's database. It returns the
// URL of the database through PgBouncer.
func (w *world) pooled(connections int) string {
	w.t.Helper()
	door, through, err := devstack.PgBouncer(w.t.Context(), w.url, connections)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = door.Close(context.Background()) })
	return through
}

// TestThroughPgBouncer runs two instances through PgBouncer, kills one of them, and makes repairs.
// PgBouncer is in transaction mode and has fewer connections than there are partitions.
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

// TestThroughPgBouncerOwn runs two instances of a custom projection through PgBouncer and kills one
// of them. It also runs commands that read through PgBouncer.
func TestThroughPgBouncerOwn(t *testing.T) {
	const connections, file = 3, "--projection-file=../docs/examples/loyalty.sql"
	tables, err := os.ReadFile("../docs/examples/tables.sql")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 6)
	w.exec(string(tables))
	pooled := w.pooled(connections)
	random := random(seed(t))
	events := drawOwn(random, 60, 60, examples[0].types)
	records := events.stream(random, w.partitions)
	a, b := w.startOn(pooled, file), w.startOn(pooled, file)
	finish := w.feed(records, len(records)/50, 10*time.Millisecond)
	await(t, "half way", w.passed(int64(len(records)/2)))
	a.kill()
	w.evict()
	finish()
	await(t, "every record consumed", w.arrived)
	loyalty := book{query: examples[0].query, want: func([]testbank.Record) map[string]string { return events.loyalty() }}
	await(t, "the table is the oracle's", w.differs(loyalty, nil))
	await(t, "ready", b.Answers("/readyz", 200, ""))
	env := []string{"DATABASE_URL=" + pooled, "KAFKA_BROKERS=" + w.addrs[0]}
	for _, args := range [][]string{{"projection", "check", "../docs/examples/loyalty.sql"}, {"gaps", file}, {"account", "show", "acc-1", file}} {
		if status, _, stderr := once(t, env, args...); status != 0 {
			t.Errorf("%v: exit %d: %s", args, status, stderr)
		}
	}
	b.terminate()
}
