package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"projector/internal/testbank"
)

// TestRefusedRowIsIsolated makes PostgreSQL refuse the row of one account from version 9 on, in the
// middle of a batch.
func TestRefusedRowIsIsolated(t *testing.T) {
	t.Parallel()
	const account, version = "acc-00000007", 9
	w := newWorld(t, 2)
	w.exec(fmt.Sprintf(`ALTER TABLE account_balance ADD CONSTRAINT bank_rule CHECK (account_id <> '%s' OR version < %d)`, account, version))
	w.produce(testbank.Generate(testbank.Options{Seed: seed(t), Records: scaled(10_000), Partitions: w.partitions, Accounts: 60, Clean: true}))
	ends := w.ends(w.topic)
	o := testbank.New(testbank.IgnoredType)
	o.Refuse = func(a string, v int64) bool { return a == account && v >= version }
	o.Decide(w.read(w.topic))
	classes := map[string]int{}
	for _, l := range o.DeadLetters {
		classes[l.Class]++
	}
	if classes["rejected_by_database"] == 0 || classes["version_gap"] == 0 {
		t.Fatalf("the stream does not show what is tested: %v", classes)
	}
	p := w.start()
	w.exact(o, exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))
	w.conserved(p, o)
	await(t, "a line about the refused row", p.logged("23514 check_violation", "bank_rule"))
	if log := p.log(); strings.Contains(log, "Failing row") || strings.Contains(log, "amount") {
		t.Error("the log tells the refused row")
	}

	// The constraint is dropped and the event is sent again. The events that wait for it are then
	// applied.
	w.exec(`ALTER TABLE account_balance DROP CONSTRAINT bank_rule`)
	for i := range o.DeadLetters {
		if l := &o.DeadLetters[i]; l.Class == "rejected_by_database" {
			w.produce([]testbank.Record{{Partition: l.Record.Partition, Key: l.Record.Key, Value: l.Record.Value}})
			break
		}
	}
	o.Refuse = nil
	o.Decide(recordsFrom(w.read(w.topic), ends))
	w.exact(o, exactlyOnce)
	p.terminate()
	w.atRest()
}

// TestARowTooLargeForAnIndexIsIsolated puts an index on a column. One event of a batch has a value
// that is too large for the index (SQLSTATE 54000). Only this event must be dead-lettered.
func TestARowTooLargeForAnIndexIsIsolated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`CREATE INDEX correlated ON account_statement (correlation_id)`)
	rng := random(seed(t))
	large := make([]byte, 6000)
	for i := range large {
		large[i] = byte('a' + rng.IntN(26)) // random text, because the value must not be compressible
	}
	var records []testbank.Record
	for v := 1; v <= 500; v++ {
		correlation := fmt.Sprint("c-", v)
		if v == 250 {
			correlation = string(large)
		}
		records = append(records, testbank.Record{Key: []byte("acc-1"), Value: fmt.Appendf(nil,
			`{"eventId":"e-%d","eventType":"FundsCredited","accountId":"acc-1","version":%d,"occurredAt":"2026-01-01T00:00:00Z",`+
				`"correlationId":%q,"data":{"amount":"1.00","currency":"EUR"}}`, v, v, correlation)})
	}
	w.produce(records)
	p := w.start("--projection=account_statement")
	await(t, "all but one entry", func() string {
		var entries, large int
		err := w.db.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE version = 250) FROM account_statement`).Scan(&entries, &large)
		if err != nil || entries != 499 || large != 0 {
			return fmt.Sprintf("%d entries, %d of the large event, error %v", entries, large, err)
		}
		return ""
	})
	await(t, "the dead letter", func() string {
		for _, r := range w.read(w.dlq) {
			for _, h := range r.Headers {
				if h.Key == "__projector.errors.class" && string(h.Value) == "rejected_by_database" {
					return ""
				}
			}
		}
		return "none yet"
	})
	await(t, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
}

// TestARefusedRowInAShortQueue makes PostgreSQL refuse one of the events that wait after a gap. The
// waiting events are applied together with the event that closes the gap.
func TestARefusedRowInAShortQueue(t *testing.T) {
	t.Parallel()
	const last, refused = 300, 150
	w := newWorld(t, 1)
	w.exec(fmt.Sprintf(`ALTER TABLE account_balance ADD CONSTRAINT bank_rule CHECK (version < %d)`, refused))
	record := func(v int) testbank.Record {
		return testbank.Record{Key: []byte("acc-1"), Value: fmt.Appendf(nil,
			`{"eventId":"e-%d","eventType":"FundsCredited","accountId":"acc-1","version":%d,"occurredAt":"2026-01-01T00:00:00Z",`+
				`"data":{"amount":"1.00","currency":"EUR"}}`, v, v)}
	}
	var waiting []testbank.Record
	for v := 2; v <= last; v++ {
		waiting = append(waiting, record(v))
	}
	count := func(want int, query string) func() string {
		return func() string {
			var n int
			if err := w.db.QueryRow(t.Context(), query).Scan(&n); err != nil || n != want {
				return fmt.Sprintf("%d, want %d, error %v", n, want, err)
			}
			return ""
		}
	}
	p := w.start()
	w.produce(waiting)
	await(t, "all wait", count(last-1, "SELECT count(*) FROM parked_event"))
	w.produce([]testbank.Record{record(1)})
	await(t, "all before the refused one are applied", count(1, fmt.Sprintf("SELECT count(*) FROM account_balance WHERE version = %d", refused-1)))
	await(t, "the refused one is the gap", count(1, fmt.Sprintf(
		"SELECT count(*) FROM account_hold WHERE class = 'rejected_by_database' AND expected_version = %d", refused)))
	p.terminate()
}
