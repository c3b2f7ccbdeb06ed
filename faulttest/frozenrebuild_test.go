//go:build faults

package faulttest

import (
	"syscall"
	"time"

	"projector/e2e/wait"
)

const (
	// swapLimit is the longest time that a rebuild may block the consumers' positions. The rebuild
	// blocks them in its swap, which is the transaction that replaces rows.
	swapLimit = 30 * time.Second
	// swapGrace is the time that consumers have after swapLimit to continue.
	swapGrace = 10 * time.Second
	// spoilt is the number of wrong accounts. It is below the number at which a rebuild needs a
	// confirmation.
	spoilt = 50
	// swapping is the application_name of the rebuild's sessions.
	swapping = "rebuild-to-be-frozen"
)

// rebuilding returns the faults of a rebuild that runs while consumers run.
func rebuilding() []fault {
	return []fault{{name: "rebuild frozen in its swap", strike: rebuildFrozen, setting: setting{during: 80 * time.Second}}}
}

// rebuildFrozen freezes a rebuild, as a hypervisor does, in the middle of its swap. The rebuild
// then holds locks. The consumers must continue while the rebuild is still frozen.
func rebuildFrozen(s *scene) (hits int) {
	s.uncounted = true // a flush may not receive the answer to its COMMIT
	s.linger()
	for range 5 {
		s.spoil()
		before := s.rebuilt()
		rebuild := s.beginRebuild("&application_name=" + swapping)
		s.await("the rebuild is in the middle of its swap", func() string {
			select {
			case <-rebuild.Ended():
				s.t.Fatalf("the rebuild ended before it could be stopped: %s%s", rebuild.Log(), rebuild.out)
			default:
			}
			return s.count(swaps, 1)()
		})
		rebuild.Freeze()
		began := time.Now()
		s.await("nothing is executed for the rebuild", s.count(swaps+" AND state = 'active'", 0))
		if s.count(swaps, 1)() == "" {
			hits++
			s.movesWhileFrozen(began)
		}
		rebuild.Signal(syscall.SIGCONT)
		status := rebuild.Exit(2 * time.Minute)
		if done := s.rebuilt() - before; done != 0 && done != spoilt || (status == 0) != (done == spoilt) {
			s.t.Errorf("the rebuild that was stopped exits with %d and has replaced %d accounts of %d: %s", status, done, spoilt, rebuild.Log())
		}
		if hits > 0 {
			s.t.Logf("thawed, it exits with %d: %s", status, rebuild.Log())
			break
		}
	}
	s.exec("DROP TRIGGER linger ON account_balance; DROP FUNCTION linger()")
	again := s.beginRebuild("")
	if status := again.Exit(2 * time.Minute); status != 0 {
		s.t.Errorf("the next rebuild exits with %d: %s", status, again.Log())
	}
	return hits
}

// swaps is a query that counts the sessions of the rebuild in a transaction that writes balances.
const swaps = `SELECT count(*) FROM pg_stat_activity a
	WHERE application_name = '` + swapping + `' AND EXISTS (
		SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.granted
		AND l.relation = 'public.account_balance'::regclass AND l.mode = 'RowExclusiveLock')`

// linger slows the swap down to a second or two, so the test can freeze it in the middle.
func (s *scene) linger() {
	s.t.Helper()
	s.exec(`CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_sleep(0.02); RETURN coalesce(NEW, OLD); END $$;
		CREATE TRIGGER linger BEFORE INSERT OR UPDATE OR DELETE ON account_balance
		FOR EACH ROW WHEN (current_setting('application_name') = '` + swapping + `') EXECUTE FUNCTION linger();`)
}

// spoil sets wrong balances for some accounts that have no further events.
func (s *scene) spoil() {
	s.t.Helper()
	accounts := s.newcomers(spoilt)
	s.sendAndAwait(accounts)
	ids := make([]string, len(accounts))
	for i := range accounts {
		ids[i] = string(accounts[i].Key)
	}
	s.exec("ALTER TABLE account_balance DISABLE TRIGGER a_version_audit")
	s.exec("UPDATE account_balance SET balance = balance + 1 WHERE account_id = ANY ($1)", ids)
	s.exec("ALTER TABLE account_balance ENABLE TRIGGER a_version_audit")
}

// The method rebuilt returns how many accounts the rebuilds have replaced.
func (s *scene) rebuilt() (n int) {
	s.t.Helper()
	check(s.t, s.db.QueryRow(s.t.Context(), "SELECT count(*) FROM dlq_action WHERE action = 'rebuild'").Scan(&n))
	return n
}

func (s *scene) beginRebuild(params string) *command {
	s.t.Helper()
	url := s.url
	defer func() { s.url = url }()
	s.url += params
	return s.command("rebuild", "--yes")
}

// movesWhileFrozen expects every partition to move while the rebuild is frozen.
func (s *scene) movesWhileFrozen(stopped time.Time) {
	s.t.Helper()
	every := make([]int32, s.setting.partitions)
	for p := range every {
		every[p] = int32(p)
	}
	moves := s.moves(every...)
	check(s.t, s.producer.Send(s.t.Context(), s.newcomers(10*len(every))))
	wait.Until(s.t, swapLimit+swapGrace-time.Since(stopped), "every partition moves beside a frozen rebuild", moves)
	s.t.Logf("every partition has moved %s after the rebuild was stopped", time.Since(stopped).Round(100*time.Millisecond))
}
