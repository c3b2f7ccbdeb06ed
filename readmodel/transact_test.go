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
	"projector/readmodel/readmodeltest"
)

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
	err = readmodeltest.NewRepair(t, openPoolAt(t, through), 0).Apply(ctx, readmodeltest.ReplayOf(readmodeltest.JSONFormat(t), credit("a", 1, "1", "EUR")), nil)
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
	if err := readmodeltest.NewRepair(t, pool, 0).Apply(t.Context(), readmodeltest.ReplayOf(w.Format, credit("a", 2, "2", "EUR")), nil); err != nil {
		t.Fatal(err)
	}
	expect(t, readmodeltest.Current(t, pool, "a"), "EUR 7.00 3 open a-3 false -")
}
