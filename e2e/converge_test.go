package e2e_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// oracle returns an oracle that has processed the present contents of the topic.
func (w *world) oracle() *testbank.Oracle {
	w.t.Helper()
	o := testbank.New(testbank.IgnoredType)
	o.Decide(w.read(w.topic))
	return o
}

// The method exact waits until all records are consumed. It then expects the read model and the DLQ
// to equal those of the oracle.
func (w *world) exact(o *testbank.Oracle, allow compare.Repeats) {
	w.t.Helper()
	await(w.t, "every record consumed", w.arrived)
	await(w.t, "the read model is the oracle's", func() string { return w.differences(o) })
	if wrong := w.deadLetters(o, allow); wrong != "" {
		w.t.Error(wrong)
	}
}

// The method conserved expects the program's counters to equal those of the oracle. It compares the
// outcomes by partition, the dead letters by class, and the healed events.
func (w *world) conserved(p *program, o *testbank.Oracle) {
	w.t.Helper()
	counters := map[string]int{}
	for partition, n := range o.Outcomes {
		for outcome, want := range n.ByName() {
			name := fmt.Sprintf(`projector_records_total{outcome=%q,partition="%d",projection="account_balance",topic=%q}`, outcome, partition, w.topic)
			counters[name] = want
		}
	}
	classes := map[string]int{}
	for _, l := range o.DeadLetters {
		classes[l.Class]++
	}
	for class, want := range classes {
		counters[fmt.Sprintf(`projector_dead_letters_total{class=%q,projection="account_balance",topic=%q}`, class, w.topic)] = want
	}
	counters[`projector_healed_events_total{projection="account_balance"}`] = o.Healed
	await(w.t, "the counters are the oracle's", p.counted(counters))
}

// The method counted returns a check for await. It succeeds when the counters have the given values.
// The program counts after a transaction is committed, so a counter can be later than the rows.
func (p *program) counted(counters map[string]int) func() string {
	return func() string {
		var wrong []string
		got := p.metrics()
		for name, want := range counters {
			if got[name] != float64(want) {
				wrong = append(wrong, fmt.Sprintf("%s: got %v, want %d", name, got[name], want))
			}
		}
		return strings.Join(wrong, "\n")
	}
}

// atRest expects that the offsets in Kafka equal the positions in the database, as they must after
// SIGTERM.
func (w *world) atRest() {
	w.t.Helper()
	if committed, positions := w.committed(), w.positions(); !maps.Equal(committed, positions) {
		w.t.Errorf("committed offsets in Kafka %v, positions in the database %v", committed, positions)
	}
}

func TestMixedStreamConverges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	w.produce(testbank.Generate(testbank.Options{
		Seed: seed(t), Records: scaled(50_000), Partitions: w.partitions, Accounts: scaled(2500), Rivals: true, Transactions: true,
	}))
	o := w.oracle()
	p := w.start()
	w.exact(o, exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))
	w.conserved(p, o)
	p.terminate()
	w.atRest()
}

func TestWholeTopicRedelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.produce(testbank.Generate(testbank.Options{
		Seed: seed(t), Records: scaled(12_000), Partitions: w.partitions, Accounts: 300, Transactions: true,
	}))
	o := w.oracle()
	first := w.start()
	w.exact(o, exactlyOnce)
	first.terminate()

	before, sent := w.physical(), len(o.DeadLetters)
	o.Decide(w.read(w.topic))
	again := &testbank.Oracle{}
	again.DeadLetters = o.DeadLetters[sent:]
	w.group += "-again"
	second := w.start()
	await(t, "every record consumed again", w.arrived)
	second.terminate()
	w.atRest()
	if wrong := w.deadLetters(again, exactlyOnce); wrong != "" {
		t.Error(wrong)
	}
	if !maps.Equal(before, w.physical()) {
		t.Error("a row of account_balance was written")
	}
	if wrong := w.differences(o); wrong != "" {
		t.Error(wrong)
	}
}
