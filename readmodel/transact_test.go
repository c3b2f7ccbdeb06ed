package readmodel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"projector/faulttest/pgproxy"
	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/readmodel"
)

// TestAReplayWhoseCommitIsNotAnswered loses the reply to the first COMMIT. The records are applied
// once, and the audit trail has them once.
func TestAReplayWhoseCommitIsNotAnswered(t *testing.T) {
	database := devtest.Database(t)
	pool := openPoolAt(t, database)
	proxy, through, err := pgproxy.ListenBefore(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	proxy.LoseReplies(func() bool { return proxy.Lost() == 0 })
	records := replayOf(jsonFormat(t), credit("a", 1, "1", "EUR"), credit("a", 2, "2", "EUR"))
	if err := newRepair(t, openPoolAt(t, through), 0).Apply(t.Context(), records, nil); err != nil {
		t.Fatal(err)
	}
	expect(t, effects(records), "applied applied")
	expect(t, current(t, pool, "a"), "EUR 3.00 2 open a-2 false -")
	if n := count(t, pool, "SELECT count(*) FROM dlq_action WHERE result = 'applied'"); n != 2 || proxy.Lost() != 1 {
		t.Errorf("%d actions, want 2; %d replies lost", n, proxy.Lost())
	}
}

// In TestACommitNobodyCanAskAbout, the reply to the COMMIT is lost, and then the database cannot be
// queried. The error names the transaction and the remedy.
func TestACommitNobodyCanAskAbout(t *testing.T) {
	database := devtest.Database(t)
	proxy, through, err := pgproxy.ListenBefore(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	proxy.LoseReplies(func() bool { cancel(); return true })
	err = newRepair(t, openPoolAt(t, through), 0).Apply(ctx, replayOf(jsonFormat(t), credit("a", 1, "1", "EUR")), nil)
	var unknown *readmodel.CommitUnknownError
	if !errors.As(err, &unknown) || unknown.Transaction == "" || !strings.Contains(err.Error(), "run the command again") {
		t.Errorf("error %v, want a CommitUnknownError", err)
	}
}

// TestTheDefaultIsolationLevelDoesNotMatter shows that every write uses READ COMMITTED, even if the
// database's default is SERIALIZABLE.
func TestTheDefaultIsolationLevelDoesNotMatter(t *testing.T) {
	pool := openPoolAt(t, devtest.Database(t)+"&default_transaction_isolation=serializable")
	if _, err := pool.Exec(t.Context(), `CREATE FUNCTION only_read_committed() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF current_setting('transaction_isolation') <> 'read committed' THEN RAISE EXCEPTION 'isolation level'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER only_read_committed BEFORE INSERT OR UPDATE ON account_balance FOR EACH ROW EXECUTE FUNCTION only_read_committed();
		CREATE TRIGGER only_read_committed BEFORE INSERT ON dlq_action FOR EACH ROW EXECUTE FUNCTION only_read_committed();
		CREATE TRIGGER only_read_committed BEFORE UPDATE ON projector_position FOR EACH ROW EXECUTE FUNCTION only_read_committed();`); err != nil {
		t.Fatal(err)
	}
	w := newWorker(t, pool, partition)
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"))
	w.MustFlush()
	if err := newRepair(t, pool, 0).Apply(t.Context(), replayOf(w.Format, credit("a", 2, "2", "EUR")), nil); err != nil {
		t.Fatal(err)
	}
	expect(t, current(t, pool, "a"), "EUR 7.00 3 open a-3 false -")
}

// TestARepairLocksAccountsInTheOrderOfBytes shows that a repair locks accounts in the same order as
// consumers, for every collation of the database. Otherwise a repair and a consumer could deadlock.
func TestARepairLocksAccountsInTheOrderOfBytes(t *testing.T) {
	pool := openPool(t)
	if _, err := pool.Exec(t.Context(), `ALTER TABLE account_balance DROP CONSTRAINT account_balance_pkey;
		DROP VIEW account_balance_current, account_hold, account_statement_balance;
		ALTER TABLE account_balance ALTER account_id TYPE text COLLATE "en-x-icu", ADD PRIMARY KEY (account_id)`); err != nil {
		t.Fatal(err)
	}
	w := newWorker(t, pool, partition)
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("B", 1, "1", "EUR"), credit("a", 1, "1", "EUR"))
	w.MustFlush()
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := holder.Exec(t.Context(), "SELECT FROM account_balance WHERE account_id = 'B' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	repaired := make(chan error, 1)
	go func() {
		records := replayOf(w.Format, credit("a", 2, "1", "EUR"), credit("B", 2, "1", "EUR"))
		repaired <- newRepair(t, pool, 0).Apply(t.Context(), records, nil)
	}()
	for count(t, pool, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the repair waits for nothing")
		}
	}
	if _, err := holder.Exec(t.Context(), "SELECT FROM account_balance WHERE account_id = 'a' FOR UPDATE NOWAIT"); err != nil {
		t.Errorf("account a is locked before B: %v", err)
	}
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-repaired; err != nil {
		t.Error(err)
	}
}
