package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/devstack/devtest"
)

// TestStopWhileAllAccountsAreRead stops a projector while it reads all accounts in one query. The
// projector does this when it reads the topic again from the start. The query takes longer than a
// stop may take.
func TestStopWhileAllAccountsAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	records := make([]*kgo.Record, 20_000)
	for i := range records {
		records[i] = credit(fmt.Sprintf("acc-%05d", i), 1)
	}
	w.append(records...)
	first := w.start()
	await(t, "every record consumed", w.arrived)
	first.terminate()

	// Another group receives all records again. A row security policy delays each row by 3 ms, so a
	// query for single rows is quick, but a query for all 20,000 rows is slow.
	name, url := w.role("correct-horse")
	w.grant(name)
	w.exec(`CREATE FUNCTION looked_at() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
		BEGIN PERFORM pg_sleep(0.003); RETURN true; END $$;
		ALTER TABLE account_balance ENABLE ROW LEVEL SECURITY;
		CREATE POLICY looked_at ON account_balance USING (looked_at());`)
	w.group += "-again"
	again := w.startOn(url)
	await(t, "all accounts are being read", func() string {
		var n int
		err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND state = 'active' AND query LIKE '%coalesce(last_event_id%LIMIT%' AND pid <> pg_backend_pid()`).Scan(&n)
		if err != nil || n == 0 {
			return fmt.Sprintf("%d backends, error %v", n, err)
		}
		return ""
	})
	began := time.Now()
	again.terminate()
	t.Logf("stopped within %s", time.Since(began).Round(time.Millisecond))
}

// TestStopWhilePostgresIsSilent stops a projector whose database still accepts data but no longer
// answers.
func TestStopWhilePostgresIsSilent(t *testing.T) {
	t.Parallel()
	cluster, url := ownPostgres(t)
	w := newWorldOn(t, devtest.Broker(t).Addrs(), url, 4)
	p := w.startOn(url)
	w.produce(w.shortStream())
	await(t, "every record consumed", w.arrived)
	backends := family(cluster.PID())
	signal(t, backends, syscall.SIGSTOP)
	t.Cleanup(func() { signal(t, backends, syscall.SIGCONT) })
	w.produce(w.shortStream())
	pause(t.Context(), 2*time.Second) // gives the projector time to begin a statement
	began := time.Now()
	p.terminate()
	t.Logf("stopped within %s", time.Since(began).Round(time.Millisecond))
}

func signal(t testing.TB, pids []int, what syscall.Signal) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, what); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatalf("%v to %d: %v", what, pid, err)
		}
	}
}

// family returns the ids of a process and its children, the process first.
func family(pid int) []int {
	pids := []int{pid}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	for _, child := range strings.Fields(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}
