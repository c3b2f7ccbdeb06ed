package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// slowRows limits the number of balances that PostgreSQL can write per second, as a worn-out disk
// or an added trigger would.
func (w *world) slowRows(perSecond int) {
	w.t.Helper()
	w.exec(fmt.Sprintf(`CREATE FUNCTION slow_row() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_sleep(%f); RETURN NEW; END $$;
		CREATE TRIGGER slow_row BEFORE INSERT OR UPDATE ON account_balance FOR EACH ROW EXECUTE FUNCTION slow_row();`, 1/float64(perSecond)))
}

// TestASlowDatabaseGetsProgress produces more records than the database can write within the
// deadline of one attempt.
func TestASlowDatabaseGetsProgress(t *testing.T) {
	t.Parallel()
	for perSecond, accounts := range map[int]int{900: 40_000, 100: 10_000} {
		t.Run(fmt.Sprintf("%d rows a second", perSecond), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.slowRows(perSecond)
			records := make([]*kgo.Record, accounts)
			for i := range records {
				records[i] = credit(fmt.Sprintf("acc-%06d", i), 1)
			}
			w.append(records...)
			p := w.start()
			started := time.Now()
			await(t, "progress", w.passed(1))
			t.Logf("first progress after %s, to %d", time.Since(started).Round(time.Millisecond), sum(w.positions()))
			at := sum(w.positions())
			await(t, "more progress", w.passed(at+1))
			await(t, "ready", p.answers("/readyz", 200, ""))
			p.terminate()
			w.atRest()
		})
	}
}
