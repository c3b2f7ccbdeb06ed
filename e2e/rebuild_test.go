package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"projector/internal/testbank"
)

// rebuilt is the JSON output of `rebuild`.
type rebuilt struct {
	Checked, Matched, Different, Changed int64
	LeftAlone                            int64 `json:"left_alone"`
	Result                               *string
}

func (w *world) rebuild(more ...string) rebuilt {
	w.t.Helper()
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]}
	args := append([]string{
		"rebuild", "--topic=" + w.topic, "--group=" + w.group, "--ignore-event-types=" + testbank.IgnoredType, "--output=json",
	}, more...)
	status, stdout, stderr := once(w.t, env, args...)
	if status != 0 {
		w.t.Fatalf("rebuild exits with %d: %s", status, stderr)
	}
	var r rebuilt
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		w.t.Fatalf("%v: %s", err, stdout)
	}
	return r
}

// TestRebuildBesideALiveConsumer spoils the read model by hand and rebuilds it while events arrive.
// In the end the read model must equal that of the oracle.
func TestRebuildBesideALiveConsumer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.audit()
	records := testbank.Generate(testbank.Options{
		Seed: seed(t), Records: scaled(30_000), Partitions: w.partitions, Accounts: scaled(1500),
	})
	half, rest := len(records)/2, len(records)*9/10
	w.produce(records[:half])
	p := w.start()
	await(t, "the first half consumed", w.arrived)
	p.terminate()

	w.exec(`UPDATE account_balance SET balance = balance + 1 WHERE abs(hashtext(account_id)) % 10 = 0`)
	w.exec(`DELETE FROM account_balance WHERE abs(hashtext(account_id)) % 10 = 1`)
	w.exec(`DELETE FROM parked_event WHERE abs(hashtext(account_id)) % 10 = 2`)
	w.exec(`INSERT INTO account_balance (account_id, currency, balance, version)
		SELECT 'phantom-' || n, 'EUR', n, n FROM generate_series(1, 20) n`)
	w.exec("TRUNCATE audit") // removes the changes that the test made
	spoilt := w.rows()
	plan := w.rebuild()
	if plan.Different < 20 || plan.Result != nil {
		t.Errorf("%d accounts were spoilt at least, but: %+v", 20, plan)
	}
	if fmt.Sprint(w.rows()) != fmt.Sprint(spoilt) {
		t.Error("a plan has changed the read model")
	}

	p = w.start()
	finish := w.feed(records[half:rest], max(1, len(records)/400), 20*time.Millisecond)
	before := sum(w.positions())
	await(t, "the second half is being consumed", func() string {
		if sum(w.positions()) == before {
			return "no position has moved"
		}
		return ""
	})
	done := w.rebuild("--yes", "--remove", "--max-differences=100000")
	if done.Changed == 0 || done.Result == nil {
		t.Errorf("nothing was rebuilt: %+v", done)
	}
	finish()
	w.produce(records[rest:]) // the consumer continues from the rebuilt rows
	await(t, "every record consumed", w.arrived)
	o := w.oracle()
	await(t, "the read model is the oracle's", func() string { return w.differences(o) })
	if again := w.rebuild(); again.Different != 0 || again.LeftAlone != 0 || again.Checked == 0 {
		t.Errorf("rebuilt again, it differs: %+v", again)
	}
	await(t, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
	w.atRest()
	if n := w.audited(); n != 0 {
		t.Errorf("%d updates did not raise a version", n)
	}
}
