package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
)

// swapHoldsLocks is the longest time that a rebuild may hold the locks of its swap. The swap is the
// transaction that replaces the rows.
const swapHoldsLocks = 30 * time.Second

// TestAFrozenRebuildGivesUp freezes the process of a rebuild after its transaction has replaced the
// rows and before it commits. Consumers must be able to write again soon, and no reader may see a
// mixture of old and new rows. When the process continues, it must report that nothing was changed.
func TestAFrozenRebuildGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	var records []*kgo.Record
	for n := range 20 {
		records = append(records, credits(fmt.Sprintf("a-%02d", n), 1, 2)...)
	}
	w.append(records...)
	p := w.start()
	await(t, "every record consumed", w.arrived)
	right := w.pictured(t.Context())
	w.exec(`UPDATE account_balance SET balance = balance + 1 WHERE account_id < 'a-05'`)
	w.exec(`DELETE FROM account_balance WHERE account_id >= 'a-15'`)
	wrong := w.pictured(t.Context())
	mixed := w.watch(right, wrong)

	before := w.snapshot()

	release := w.lockAudit()
	frozen := launch(t, nil, []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]},
		"rebuild", "--topic="+w.topic, "--group="+w.group, "--yes", "--output=json")
	await(t, "the swap is at its last statement", w.waitingToAudit)
	frozen.Freeze()
	stopped := time.Now()
	if state := w.waitingToAudit(); state != "" { // the statement still waits, so the frozen process has not received an answer
		t.Fatalf("the rebuild was not stopped at its last statement: waiting to audit: %s\n%s", state, frozen.log())
	}
	release()
	w.append(credit("b", 1))
	awaitWithin(t, swapHoldsLocks, "the consumer writes again", w.reads("b", "1 0.01 false"))
	t.Logf("the consumer wrote again %s after the rebuild was stopped", time.Since(stopped).Round(time.Millisecond))
	if now := w.pictured(t.Context()); now != wrong {
		t.Errorf("a rebuild that was given up has changed the balances:\n%s\nwere\n%s", now, wrong)
	}

	frozen.Signal(syscall.SIGCONT)
	if status := frozen.exit(swapHoldsLocks); status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	await(t, "a message that names what happened", frozen.logged("the swap was given up", "nothing was changed"))
	if now := w.pictured(t.Context()); now != wrong {
		t.Errorf("continued, it has changed the balances:\n%s\nwere\n%s", now, wrong)
	}
	if again := w.rebuild("--yes"); again.Changed != 10 {
		t.Errorf("repeated: %+v", again)
	}
	if now := w.pictured(t.Context()); now != right {
		t.Errorf("repeated:\n%s\nwant\n%s", now, right)
	}
	if seen := before(); seen != wrong {
		t.Errorf("a snapshot of before the swap sees\n%s", seen)
	}
	for _, seen := range mixed() {
		t.Errorf("a reader has seen\n%s", seen)
	}
	await(t, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
	w.atRest()
}

// The method pictured returns the accounts whose ids begin with the letter a. It reads them in one
// statement.
func (w *world) pictured(ctx context.Context) (all string) {
	w.t.Helper()
	all, err := w.picture(ctx, w.db)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *world) picture(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (all string, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce(string_agg(concat_ws(' ', account_id, version, balance), ', ' ORDER BY account_id), 'nothing')
		FROM account_balance WHERE account_id LIKE 'a%'`).Scan(&all)
	return all, err
}

// watch polls the accounts. The returned function stops the polling and returns all results that
// are not in the list of allowed results.
func (w *world) watch(allowed ...string) (stop func() []string) {
	ctx, cancel := context.WithCancel(w.t.Context())
	seen := make(chan []string, 1)
	go func() {
		var others []string
		for ctx.Err() == nil {
			all, err := w.picture(ctx, w.db)
			if err == nil && !slices.Contains(allowed, all) && !slices.Contains(others, all) {
				others = append(others, all)
			}
			pause(ctx, 5*time.Millisecond)
		}
		seen <- others
	}()
	return func() []string { cancel(); return <-seen }
}

// snapshot opens a repeatable-read transaction, as a backup does. The returned function reads the
// accounts in this transaction.
func (w *world) snapshot() (look func() string) {
	w.t.Helper()
	tx, err := w.db.BeginTx(w.t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(w.t.Context(), "SELECT count(*) FROM account_balance"); err != nil {
		w.t.Fatal(err)
	}
	w.endsWithTest(tx)
	return func() string {
		w.t.Helper()
		defer func() { _ = tx.Rollback(w.t.Context()) }()
		all, err := w.picture(w.t.Context(), tx)
		if err != nil {
			w.t.Fatal(err)
		}
		return all
	}
}

// lockAudit blocks all writes to the audit trail until the returned function is called.
func (w *world) lockAudit() (release func()) {
	w.t.Helper()
	return w.locked("LOCK TABLE dlq_action IN SHARE MODE")
}

// locked runs a statement that locks something, and holds the locks until the returned function is
// called.
func (w *world) locked(statement string, args ...any) (release func()) {
	w.t.Helper()
	tx, err := w.db.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(w.t.Context(), statement, args...); err != nil {
		w.t.Fatal(err)
	}
	w.endsWithTest(tx)
	return func() {
		w.t.Helper()
		if err := tx.Rollback(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// endsWithTest rolls the transaction back if the test ends early. Otherwise the pool's Close would
// wait for the transaction's connection.
func (w *world) endsWithTest(tx pgx.Tx) {
	ctx := context.WithoutCancel(w.t.Context())
	w.t.Cleanup(func() { _ = tx.Rollback(ctx) })
}

// waitingToAudit is a check for await. It succeeds when a session waits for the lock of the audit
// trail. It filters by database, because the table can have the same oid in the databases of other
// tests.
func (w *world) waitingToAudit() string {
	var waiting int
	err := w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM pg_locks
		WHERE relation = 'dlq_action'::regclass AND NOT granted
		  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waiting)
	if err != nil {
		return err.Error()
	}
	if waiting == 0 {
		return "nobody"
	}
	return ""
}
