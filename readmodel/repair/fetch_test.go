package repair_test

import (
	"strings"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/repair"
)

// TestAnEventThatIsDiscardedWhileItIsFetched discards an event after the outbox has returned it.
func TestAnEventThatIsDiscardedWhileItIsFetched(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 2, "4", "EUR"))
	w.MustFlush()
	format := readmodeltest.JSONFormat(t)
	decisions := readmodel.NewDecisions(pool, balance.Definition{})
	r := repair.New(readmodel.RepairConfig{Pool: pool, Formats: event.Always(format), FirstVersion: 1, Decisions: decisions})
	records := readmodeltest.ReplayOf(format, credit("a", 3, "8", "EUR"))
	records[0].Record.Partition, records[0].Action.Kind = projection.NoPartition, readmodel.ActionFetch
	if err := r.Plan(t.Context(), records); err != nil || readmodel.EffectOf(records[0].Decision) != readmodel.EffectApplied {
		t.Fatalf("plan: %+v, error %v", records[0].Decision, err)
	}
	version := int64(3)
	if _, err := r.Discard(t.Context(), []readmodel.Discard{{
		Subject: readmodel.Subject{AccountID: "a", Version: version},
		Action: readmodel.Action{
			Kind: readmodel.ActionDiscard, Projection: readmodel.BalanceName, Actor: "me", Reason: "x", Result: readmodel.ResultDiscarded,
			AccountID: "a", Version: &version, Class: event.VersionGap, Topic: partition.Topic, Offset: 2,
		},
	}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(t.Context(), records, nil); err == nil || !strings.Contains(err.Error(), `account "a" version 3 was discarded meanwhile`) {
		t.Errorf("apply: %v", err)
	}
	expect(t, current(t, pool, "a"), "EUR 5.00 2 open a-2 false -")
}
