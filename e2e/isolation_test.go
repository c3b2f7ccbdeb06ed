package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"projector/e2e/oracle"
	"projector/e2e/stream"
)

// TestRefusedRowIsIsolated has PostgreSQL refuse one state of one account in the
// middle of a batch.
func TestRefusedRowIsIsolated(t *testing.T) {
	t.Parallel()
	const account, version = "acc-00000007", 9
	w := newWorld(t, 2)
	w.exec(fmt.Sprintf(`ALTER TABLE account_balance ADD CONSTRAINT bank_rule CHECK (account_id <> '%s' OR version < %d)`, account, version))
	w.produce(stream.Generate(stream.Options{Seed: seed(t), Records: scaled(10_000), Partitions: w.partitions, Accounts: 60, Clean: true}))
	ends := w.ends(w.topic)
	o := oracle.New(stream.IgnoredType)
	o.Refuse = func(a string, v int64) bool { return a == account && v >= version }
	o.Judge(w.read(w.topic))
	classes := map[string]int{}
	for _, l := range o.Letters {
		classes[l.Class]++
	}
	if classes["rejected_by_database"] == 0 || classes["version_gap"] == 0 {
		t.Fatalf("the stream does not show what is tested: %v", classes)
	}
	p := w.start()
	w.exact(o, exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))
	w.conserved(p, o)
	await(t, "a line about the refused row", p.logged("23514", "bank_rule"))
	if log := p.log(); strings.Contains(log, "Failing row") || strings.Contains(log, "amount") {
		t.Error("the log tells the refused row")
	}

	// The rule is lifted and the event sent again: all that waits behind it heals.
	w.exec(`ALTER TABLE account_balance DROP CONSTRAINT bank_rule`)
	for i := range o.Letters {
		if l := &o.Letters[i]; l.Class == "rejected_by_database" {
			w.produce([]stream.Record{{Partition: l.Record.Partition, Key: l.Record.Key, Value: l.Record.Value}})
			break
		}
	}
	o.Refuse = nil
	o.Judge(behind(w.read(w.topic), ends))
	w.exact(o, exactlyOnce)
	p.terminate()
	w.atRest()
}
