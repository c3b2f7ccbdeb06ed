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

// TestAnEventThatIsDiscardedAfterThePlan discards an event between the plan and the execution of a
// repair. Only a replay of a discarded event applies it.
func TestAnEventThatIsDiscardedAfterThePlan(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(r *readmodel.RepairRecord)
		want string
	}{
		"fetched": {func(r *readmodel.RepairRecord) {
			r.Record.Partition, r.Action.Kind = projection.NoPartition, readmodel.ActionFetch
		}, "EUR 5.00 2 open a-2 false -"},
		"replayed":            {func(*readmodel.RepairRecord) {}, "EUR 5.00 2 open a-2 false -"},
		"replayed on purpose": {func(r *readmodel.RepairRecord) { r.Revokes = true }, "EUR 13.00 3 open a-3 false -"},
	} {
		t.Run(name, func(t *testing.T) {
			pool, w := startWorker(t)
			w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 2, "4", "EUR"))
			w.MustFlush()
			format := readmodeltest.JSONFormat(t)
			decisions := readmodel.NewDecisions(pool, balance.Definition{})
			r := repair.New(readmodel.RepairConfig{Pool: pool, Formats: event.Always(format), FirstVersion: 1, Decisions: decisions})
			records := readmodeltest.ReplayOf(format, credit("a", 3, "8", "EUR"))
			action := records[0].Action
			c.set(records[0])
			if err := r.Plan(t.Context(), records); err != nil || readmodel.EffectOf(records[0].Decision) != readmodel.EffectApplied {
				t.Fatalf("plan: %+v, error %v", records[0].Decision, err)
			}
			action.Kind, action.Result, action.Projection, action.Reason = readmodel.ActionDiscard, readmodel.ResultDiscarded, readmodel.BalanceName, "x"
			subject := readmodel.Subject{AccountID: "a", Version: 3}
			if _, err := r.Discard(t.Context(), []readmodel.Discard{{Subject: subject, Action: action}}); err != nil {
				t.Fatal(err)
			}
			err := r.Apply(t.Context(), records, nil)
			if discarded := err != nil && strings.Contains(err.Error(), `account "a" version 3 was discarded meanwhile`); discarded == records[0].Revokes {
				t.Errorf("apply: %v", err)
			}
			expect(t, current(t, pool, "a"), c.want)
		})
	}
}
