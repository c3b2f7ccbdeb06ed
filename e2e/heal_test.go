package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// credit returns an event of 0.01 EUR.
func credit(account string, version int) *kgo.Record {
	return &kgo.Record{
		Key: []byte(account),
		Value: fmt.Appendf(nil, `{"eventId":"%[1]s-%[2]d","eventType":"FundsCredited","accountId":"%[1]s","version":%[2]d,`+
			`"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":"0.01","currency":"EUR"}}`, account, version),
	}
}

func credits(account string, from, to int) (records []*kgo.Record) {
	for v := from; v <= to; v++ {
		records = append(records, credit(account, v))
	}
	return records
}

func (w *world) append(records ...*kgo.Record) {
	w.t.Helper()
	for _, r := range records {
		r.Topic = w.topic
	}
	if err := w.kafka.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// The method reads returns a check for await. It succeeds when readers see the account in the state
// want.
func (w *world) reads(account, want string) func() string {
	return func() string {
		var got string
		err := w.db.QueryRow(w.t.Context(), `SELECT concat_ws(' ', version, balance, stale::text, waiting_for_version)
			FROM account_balance_current WHERE account_id = $1`, account).Scan(&got)
		if err != nil {
			return err.Error()
		}
		if got != want {
			return fmt.Sprintf("account %s reads %q, want %q", account, got, want)
		}
		return ""
	}
}

// statuses counts the dead letters of the account by the status that `dlq list` shows.
func (w *world) statuses(account string) string {
	w.t.Helper()
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]}
	status, stdout, stderr := once(w.t, env, "dlq", "list", "--topic="+w.topic, "--account="+account, "--output=json")
	if status != 0 {
		w.t.Fatalf("dlq list exits with %d: %s", status, stderr)
	}
	counts := map[string]int{}
	for line := range strings.Lines(stdout) {
		var letter struct{ Status string }
		if err := json.Unmarshal([]byte(line), &letter); err != nil {
			w.t.Fatal(err)
		}
		counts[letter.Status]++
	}
	return fmt.Sprint(counts)
}

func TestAHoleFilledLateHealsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	p := w.start()
	w.append(credits("late", 1, 1)...)
	w.append(credits("late", 3, 10)...)
	w.append(credits("headless", 2, 4)...) // the first event of the account is missing
	await(t, "the hole", w.reads("late", "1 0.01 true 2"))
	await(t, "the hole of an account without a row", w.reads("headless", "true 1"))
	if got := w.statuses("late"); got != "map[waiting:8]" {
		t.Errorf("behind the hole: %s", got)
	}
	w.append(credit("late", 2), credit("headless", 1))
	await(t, "the healing", w.reads("late", "10 0.10 false"))
	await(t, "the healing from nothing", w.reads("headless", "4 0.04 false"))
	if got := w.statuses("late"); got != "map[resolved:8]" {
		t.Errorf("after the healing: %s", got)
	}
	await(t, "the healed events", p.counted(map[string]int{`projector_healed_events_total{projection="account_balance"}`: 11}))
	p.terminate()
}

// TestALongHealingKeepsTheOthersFlowing expects the other accounts of a partition to continue while
// 10,000 parked events of one account are applied.
func TestALongHealingKeepsTheOthersFlowing(t *testing.T) {
	t.Parallel()
	const waiting = 10_000 // the default of --park-limit
	w := newWorld(t, 1)
	p := w.start()
	w.append(credits("held", 1, 1)...)
	w.append(credits("held", 3, waiting+2)...)
	await(t, "the queue behind the hole", w.reads("held", "1 0.01 true 2"))
	await(t, "all parked", func() string {
		var n int
		if err := w.db.QueryRow(t.Context(), "SELECT count(*) FROM parked_event").Scan(&n); err != nil || n != waiting {
			return fmt.Sprintf("%d of %d parked, error %v", n, waiting, err)
		}
		return ""
	})
	// A trigger records how far the healing is at each write of another account. Each transaction is
	// slow, and the first of the healing waits until an event of the other account is in the topic.
	// So an event can be written during the healing even if the test is slow.
	w.slowWrites(150 * time.Millisecond)
	w.exec(`CREATE TABLE seen (healed bigint);
		CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO seen SELECT version FROM account_balance WHERE account_id = 'held'; RETURN NULL; END $$;
		CREATE TRIGGER see AFTER INSERT OR UPDATE ON account_balance
		FOR EACH ROW WHEN (NEW.account_id = 'other') EXECUTE FUNCTION see()`)
	release := w.locked("SELECT FROM account_balance WHERE account_id = 'held' FOR UPDATE")
	w.append(credit("held", 2))
	await(t, "the healing waits", w.waitsForLock)
	start := time.Now()
	w.append(credit("other", 1))
	release()
	// The test sends the next event of the other account when the previous one is in the read model.
	var longest, began time.Duration
	others, between := 1, 0
	for healed := 2; healed < waiting+2; {
		others++
		began = time.Since(start)
		w.append(credit("other", others))
		await(t, "the other account", func() string {
			var version int
			err := w.db.QueryRow(t.Context(), `SELECT coalesce(max(version) FILTER (WHERE account_id = 'other'), 0),
				max(version) FILTER (WHERE account_id = 'held') FROM account_balance`).Scan(&version, &healed)
			if err != nil || version != others {
				return fmt.Sprintf("version %d of %d, error %v", version, others, err)
			}
			return ""
		})
		longest = max(longest, time.Since(start)-began)
	}
	err := w.db.QueryRow(t.Context(), "SELECT count(*) FROM seen WHERE healed > 2 AND healed < $1", waiting+2).Scan(&between)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events healed in %v; %d other events were written meanwhile, %d of them in the middle; the longest took %v",
		waiting, time.Since(start).Round(time.Millisecond), others, between, longest.Round(time.Millisecond))
	if between == 0 {
		t.Error("no other event was written while the account healed")
	}
	await(t, "the healing", w.reads("held", "10002 100.02 false"))
	await(t, "the others", w.reads("other", fmt.Sprintf("%d %d.%02d false", others, others/100, others%100)))
	p.terminate()
}

// waitsForLock is a check for await. It succeeds when a session of the database waits for a lock.
func (w *world) waitsForLock() string {
	var waiting int
	err := w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND datname = current_database()`).Scan(&waiting)
	if err != nil || waiting == 0 {
		return fmt.Sprintf("%d sessions, error %v", waiting, err)
	}
	return ""
}
