//go:build citus

package e2e_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestAFlushOfOneWorker kills a node during the commit of a flush that has written on one worker
// only. Citus commits such a flush without two-phase commit. It commits on the worker first and
// then on the coordinator (docs/decisions/0038). The requirements for the nodes are those of
// TestCitusNodesAreKilled.
func TestAFlushOfOneWorker(t *testing.T) {
	t.Run("the coordinator is killed when the worker has committed", coordinatorAfterWorker)
	t.Run("the worker is killed before it has committed", workerBeforeItsCommit)
}

// oneWorker returns a test environment with one account of version 10, and the nodes. The account's
// row is on nodes[worker].
func oneWorker(t *testing.T) (w *world, nodes map[string]*citusNode, account string, p *program) {
	t.Helper()
	w = distributed(t, 1)
	nodes = citusNodes(t, w)
	u, err := url.Parse(nodes[worker].url)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.db.QueryRow(t.Context(), `
		SELECT account FROM (SELECT 'one-' || i AS account FROM generate_series(1, 100) AS i) AS a
		JOIN pg_dist_shard_placement ON shardid = get_shard_id_for_distribution_column('account_balance', account)
		WHERE nodeport = $1::text::int LIMIT 1`, u.Port()).Scan(&account); err != nil {
		t.Fatalf("no account is on the worker: %v", err)
	}
	p = w.start()
	w.append(credits(account, 1, 10)...)
	await(t, "10 events", w.reads(account, "10 0.10 false"))
	return w, nodes, account, p
}

// The method committing returns a check for await. It succeeds when one transaction waits on the
// worker in its COMMIT and the worker has no prepared transaction.
func (n *citusNode) committing(t *testing.T, wait string) func() string {
	t.Helper()
	return func() string {
		held := n.count(t, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COMMIT%' AND wait_event = '"+wait+"'")
		prepared := n.count(t, "SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE 'citus%'")
		if held != 1 || prepared != 0 {
			return fmt.Sprintf("%d are inside COMMIT, %d are prepared", held, prepared)
		}
		return ""
	}
}

// coordinatorAfterWorker kills the coordinator after the worker has committed. The row then has the
// version of the event, but the position is still before the event. The event is therefore read
// again and counts as a duplicate.
func coordinatorAfterWorker(t *testing.T) {
	w, nodes, account, a := oneWorker(t)
	nodes[worker].holdCommits(t) // the commit waits for a standby that does not exist
	version := 10
	read := func() string { return fmt.Sprintf("%d 0.%d false", version, version) }
	held := nodes[worker].committing(t, "SyncRep")
	await(t, "the worker has committed", func() string {
		missing := held()
		if missing != "" && w.reads(account, read())() == "" { // the node has not yet read its new settings
			version++
			w.append(credits(account, version, version)...)
		}
		return missing
	})
	nodes[coordinator].kill(t)
	a.kill()
	nodes[worker].forget(t)
	nodes[worker].reload(t)
	nodes[coordinator].start(t)
	w.db.Reset()
	await(t, "the row has the event", w.reads(account, read()))
	if at := sum(w.positions()); at != int64(version-1) {
		t.Errorf("the position is %d, want %d: the coordinator was not killed before its own commit", at, version-1)
	}
	w.evict()
	b := w.start()
	w.exact(w.oracle(), exactlyOnce)
	await(t, "ready", b.answers("/readyz", 200, ""))
	name := fmt.Sprintf(`projector_records_total{outcome="duplicate",partition="0",projection="account_balance",topic=%q}`, w.topic)
	if got := b.metrics()[name]; got < 1 { // there are more if Kafka's committed offset is older
		t.Errorf("%v duplicates, want the event that was read again", got)
	}
	version++
	w.append(credits(account, version, version)...)
	await(t, "the next event", w.reads(account, read()))
	b.terminate()
	w.atRest()
}

// workerBeforeItsCommit kills the worker inside COMMIT, before it writes the commit record. The
// whole flush fails, the position does not move, and the flush is retried. A deferred trigger holds
// the worker at this moment.
func workerBeforeItsCommit(t *testing.T) {
	w, nodes, account, a := oneWorker(t)
	var schema, shard string
	if err := w.db.QueryRow(t.Context(), "SELECT current_schema(), get_shard_id_for_distribution_column('account_balance', $1::text)::text", account).Scan(&schema, &shard); err != nil {
		t.Fatal(err)
	}
	nodes[worker].exec(t, fmt.Sprintf(`SET citus.enable_ddl_propagation = off; SET search_path = %s;
		CREATE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(38); RETURN NULL; END';
		CREATE CONSTRAINT TRIGGER hold_commit AFTER INSERT OR UPDATE ON account_balance_%s DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION hold_commit()`, schema, shard))
	holder, err := pgx.Connect(t.Context(), nodes[worker].url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Close(t.Context()) })
	if _, err := holder.Exec(t.Context(), "SELECT pg_advisory_lock(38)"); err != nil {
		t.Fatal(err)
	}
	w.append(credits(account, 11, 11)...)
	await(t, "the worker is about to commit", nodes[worker].committing(t, "advisory"))
	nodes[worker].kill(t)
	await(t, "the flush is tried again", a.answers("/readyz", 503, ""))
	if at := sum(w.positions()); at != 10 {
		t.Errorf("the position is %d while the worker is away, want 10", at)
	}
	nodes[worker].start(t) // the server's end has released the advisory lock
	w.exact(w.oracle(), exactlyOnce)
	await(t, "ready", a.answers("/readyz", 200, ""))
	a.terminate()
	w.atRest()
}
