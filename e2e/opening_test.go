package e2e_test

import (
	"encoding/csv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// TestATopicWithoutItsBeginning deletes the first half of every partition, as retention does. Some
// accounts are opened from a ledger before anything is consumed. The others are opened while the
// consumer runs, at the versions that the ledger has at that time. In the end every balance must
// equal the balance of an oracle that has processed all events. No event may wait, and a rebuild
// from the shortened topic must find no difference.
func TestATopicWithoutItsBeginning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.produce(testbank.Generate(testbank.Options{Seed: seed(t), Records: scaled(5000), Partitions: w.partitions, Accounts: scaled(150), Clean: true}))
	all, o := w.read(w.topic), w.oracle()
	ends := w.ends(w.topic)
	for partition, end := range ends {
		w.deleteUntil(partition, end/2)
	}
	// The ledger is computed for two times: for the time of the last deleted record, and for a
	// later time.
	then, later := ledgerAt(all, ends, 0.5), ledgerAt(all, ends, 0.7)
	early, late := map[string]testbank.Row{}, map[string]testbank.Row{}
	for i, id := range slices.Sorted(maps.Keys(o.Rows())) {
		switch before, known := then[id]; {
		case i%2 == 0:
			late[id] = later[id]
		case known:
			early[id] = before
		}
	}
	opened := w.open(early)
	p := w.start()
	await(t, "every record consumed", w.arrived)
	await(t, "the others are known to be stale", func() string {
		for id := range late {
			if !w.rows()[id].Stale {
				return id + " is not stale"
			}
		}
		return ""
	})
	opened += w.open(late)
	if opened != len(o.Rows()) {
		t.Errorf("%d of %d accounts were opened", opened, len(o.Rows()))
	}
	await(t, "the read model is that of all events", func() string { return compare.Differences(w.rowsWith(o), o) })
	await(t, "ready", p.answers("/readyz", 200, ""))

	if _, left, _ := w.command("dlq", "list", "--status=open,ready,waiting", "--output=json"); left != "" {
		t.Errorf("dead letters that are not resolved: %s", left)
	}
	if _, summary, _ := w.command("dlq", "summary", "--output=json"); strings.Count(summary, "\n") != 1 || !strings.Contains(summary, `"version_gap"`) {
		t.Errorf("dead letters of the start: %s", summary)
	}
	if status, stdout, said := w.command("rebuild", "--check", "--output=json"); status != 0 || !strings.Contains(stdout, `"complete":true`) {
		t.Errorf("rebuild --check: %d, %s%s", status, stdout, said)
	}
	if again := w.rebuild(); again.Different != 0 || again.LeftAlone != 0 || again.Checked != int64(len(o.Rows())) {
		t.Errorf("rebuilt from the openings it differs: %+v", again)
	}
	if status, stdout, said := once(t, []string{"DATABASE_URL=" + w.url}, "verify", "--ledger="+w.ledger(o.Rows())); status != 0 {
		t.Errorf("verify: %s%s", stdout, said)
	}
	p.terminate()
	w.atRest()
}

// ledgerAt returns the rows that an oracle computes from the first records of each partition. share
// is the fraction of the partition that these records are.
func ledgerAt(records []testbank.Record, ends map[int32]int64, share float64) map[string]testbank.Row {
	o := testbank.New(testbank.IgnoredType)
	o.Decide(slices.DeleteFunc(slices.Clone(records), func(r testbank.Record) bool {
		return float64(r.Offset) >= float64(ends[r.Partition])*share
	}))
	return o.Rows()
}

// ledger writes the rows to a ledger file.
func (w *world) ledger(rows map[string]testbank.Row) string {
	w.t.Helper()
	text := &strings.Builder{}
	lines := csv.NewWriter(text)
	_ = lines.Write([]string{"account_id", "version", "balance", "currency", "status", "last_event_id"})
	for id, r := range rows {
		_ = lines.Write([]string{id, strconv.FormatInt(r.Version, 10), r.Balance, r.Currency, r.Status, r.LastEventID})
	}
	lines.Flush()
	name := filepath.Join(w.t.TempDir(), "ledger.csv")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// open opens the accounts from a ledger file and returns how many it opened.
func (w *world) open(rows map[string]testbank.Row) int {
	w.t.Helper()
	status, stdout, said := once(w.t, []string{"DATABASE_URL=" + w.url}, "open", "--ledger="+w.ledger(rows), "--reason=retention", "--yes", "--output=json")
	if status != 0 {
		w.t.Fatalf("open: exit status %d: %s", status, said)
	}
	return strings.Count(stdout, `"result":"opened"`)
}

// rowsWith returns the rows of the read model. An opened account has no time of a last event, so
// its row gets the time from the oracle.
func (w *world) rowsWith(o *testbank.Oracle) map[string]testbank.Row {
	w.t.Helper()
	rows := w.rows()
	for id, want := range o.Rows() {
		if r := rows[id]; r.LastEventAt.Equal(time.Time{}) {
			r.LastEventAt = want.LastEventAt
			rows[id] = r
		}
	}
	return rows
}
