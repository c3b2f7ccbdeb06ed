package readmodel_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"projector/errclass"
	"projector/faulttest/pgproxy"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/retry"
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
	text := errclass.Safe(err)
	if !regexp.MustCompile(`what became of transaction \d+: run the command again`).MatchString(text) {
		t.Errorf("error %v, shown as %q", err, text)
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

// TestAnIDOfAnotherServerProvesNothing asks about transactions whose ids were given by another
// server. A standby that has taken over without a transaction may have given its id to a
// transaction of a consumer. Only a row of the audit trail or a request shows that a command was
// committed.
func TestAnIDOfAnotherServerProvesNothing(t *testing.T) {
	t.Parallel()
	url := devtest.Database(t)
	pool, unprivileged := openPoolAt(t, url), openPoolAt(t, url+"&role=pg_monitor")
	for name, c := range map[string]struct {
		write   string
		command bool
	}{
		"consumer": {"INSERT INTO inbox (message_id, handler) VALUES ('m', 'daily_turnover')", false},
		"repair":   {"INSERT INTO dlq_action (action, actor, result) VALUES ('skip', 'ann', 'skipped')", true},
		"request": {`INSERT INTO repair_request (action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor)
			VALUES ('skip', '{account,skip}', '{}', '{}', '{}', repeat('a', 64), 1, 'ann')`, true},
	} {
		var here readmodel.Unanswered
		if err := readmodel.Transact(t.Context(), pool, func(tx *readmodel.Tx) (err error) {
			tx.Queue(c.write)
			here, err = tx.Identify(t.Context())
			return err
		}); err != nil {
			t.Fatal(name, err)
		}
		elsewhere := readmodel.Unanswered{ID: here.ID, Server: here.Server.Add(-time.Hour)}
		for asked, want := range map[readmodel.Unanswered]bool{here: true, elsewhere: c.command, {}: false} {
			if committed, err := readmodel.WasCommitted(t.Context(), pool, asked); committed != want || err != nil {
				t.Errorf("%s, server of %v: committed %v, want %v, error %v", name, asked.Server, committed, want, err)
			}
		}
		// The role of `run` may not read the audit trail.
		if committed, err := readmodel.WasCommitted(t.Context(), unprivileged, elsewhere); committed || err != nil {
			t.Errorf("%s, by a role that may not read the trail: committed %v, error %v", name, committed, err)
		}
	}
}

// TestAStandbyIsNotAskedAboutACommit asks a standby about a transaction that the standby has not
// received. An address of several servers, or a pooler, may lead to it while the primary restarts.
// To the standby, the id is one of the future. A command that believed this would run twice.
func TestAStandbyIsNotAskedAboutACommit(t *testing.T) {
	t.Parallel()
	server := devtest.Postgres(t)
	pool := openPoolAt(t, server.URL())
	future := readmodel.Unanswered{ID: "123456789", Server: time.Now()}
	if committed, err := readmodel.WasCommitted(t.Context(), pool, future); committed || err != nil {
		t.Errorf("a primary that has lost the transaction: committed %v, error %v", committed, err)
	}
	exec(t, pool, "DO $$ BEGIN EXECUTE format('COPY (SELECT) TO %L', current_setting('data_directory') || '/standby.signal'); END $$")
	if err := server.Stop(t.Context(), devstack.Fast); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil { // the server is a standby now, because of the file
		t.Fatal(err)
	}
	pool.Reset()
	if committed, err := readmodel.WasCommitted(t.Context(), pool, future); committed || !retry.Passing(err) {
		t.Errorf("a standby: committed %v, error %v, want an error that passes", committed, err)
	}
}

// TestAReadOnlySessionIsNotUsedAgain makes new sessions read-only for a while, as a DBA does before
// a switchover. A session from that time stays read-only, so the next attempt uses another one.
func TestAReadOnlySessionIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	url := devtest.Database(t)
	admin := openPoolAt(t, url)
	alter := func(change string) {
		t.Helper()
		exec(t, admin, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I "+change+"', current_database()); END $$")
	}
	alter("SET default_transaction_read_only = on")
	pool, attempts := openPoolAt(t, url), 0
	err := readmodel.TransactOnce(t.Context(), pool, func(ctx context.Context, tx *readmodel.Tx) error {
		if attempts++; attempts == 1 {
			alter("RESET default_transaction_read_only")
		}
		readmodel.QueueActions(tx, []readmodel.Action{{Kind: readmodel.ActionSkip, Actor: "ann", Result: readmodel.ResultSkipped}})
		return tx.Send(ctx)
	})
	if err != nil || attempts != 2 {
		t.Errorf("%d attempts, error %v", attempts, err)
	}
}
