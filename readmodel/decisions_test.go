package readmodel_test

import (
	"fmt"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
)

// TestDecisionsAfterARestore restores the database to a time before decisions that were read.
func TestDecisionsAfterARestore(t *testing.T) {
	pool := openPool(t)
	decisions := readmodel.NewDecisions(pool, balance.Definition{})
	discarded := func() string {
		t.Helper()
		if err := decisions.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		records := make([]projection.DecodedRecord, 2)
		for i := range records {
			records[i].Record = projection.Record{Topic: partition.Topic, Partition: partition.Number, Offset: int64(i), Timestamp: 1}
			records[i].Discarded = true
		}
		decisions.MarkDiscarded(records)
		return fmt.Sprint(records[0].Discarded, records[1].Discarded)
	}
	discard := func(offset int64) {
		t.Helper()
		if err := readmodel.RecordActions(t.Context(), pool, []readmodel.Action{{
			Kind: readmodel.ActionDiscard, Projection: readmodel.BalanceName, Topic: partition.Topic, Partition: partition.Number, Offset: offset,
			Class: event.MalformedPayload, Actor: "me", Reason: "x", Result: readmodel.ResultDiscarded,
		}}); err != nil {
			t.Fatal(err)
		}
	}
	const restore = "ALTER TABLE dlq_action DISABLE TRIGGER USER; DELETE FROM dlq_action; ALTER TABLE dlq_action ENABLE TRIGGER USER"

	same(t, "before the first decision", discarded(), "false false")
	discard(0)
	same(t, "after a decision", discarded(), "true false")
	exec(t, pool, restore)
	same(t, "restored to before the decision", discarded(), "false false")
	discard(0)
	same(t, "decided again", discarded(), "true false")
	exec(t, pool, restore)
	discard(1)
	same(t, "restored, and another decision has the same place in the trail", discarded(), "false true")
}
