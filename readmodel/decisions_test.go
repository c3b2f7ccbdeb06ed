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

// TestADiscardOfVersionZero discards the event of version 0, which accounts have with --first-version=0,
// and an event whose version could not be read. Neither is taken for the other.
func TestADiscardOfVersionZero(t *testing.T) {
	pool := openPool(t)
	decisions := readmodel.NewDecisions(pool, balance.Definition{})
	discard := func(account string, version *int64, offset int64) {
		t.Helper()
		if err := readmodel.RecordActions(t.Context(), pool, []readmodel.Action{{
			Kind: readmodel.ActionDiscard, Projection: readmodel.BalanceName, Topic: partition.Topic, Partition: partition.Number, Offset: offset,
			AccountID: account, Version: version, Class: event.MalformedPayload, Actor: "me", Reason: "x", Result: readmodel.ResultDiscarded,
		}}); err != nil {
			t.Fatal(err)
		}
	}
	record := func(account string, version int64, identity event.Identity, entry int32, offset int64) (r projection.DecodedRecord) {
		r.Record = projection.Record{Topic: partition.Topic, Partition: partition.Number, Offset: offset, Timestamp: 1}
		r.Record.Entry = entry
		r.Decoded.Identity, r.Decoded.Event.AccountID, r.Decoded.Event.Version = identity, account, version
		return r
	}
	discard("a", new(int64), 0)
	discard("b", nil, 1)
	if err := decisions.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	records := []projection.DecodedRecord{
		record("a", 0, event.Identified, 0, 0),
		record("a", 3, event.Identified, 0, 0), // another event at the offset, because the topic was created again
		record("a", 0, event.Identified, 2, 0),
		record("b", 3, event.Identified, 0, 1), // its version can be read now
		record("b", 0, event.Unidentified, 0, 1),
		record("b", 0, event.Unidentified, 2, 1),
		record("b", 0, event.Identified, 2, 1), // another entry of the same record
	}
	decisions.MarkDiscarded(records)
	var got []bool
	for i := range records {
		got = append(got, records[i].Discarded)
	}
	same(t, "discarded", fmt.Sprint(got), "[true false true true true true false]")
	for account, want := range map[string]string{"a": "0 true", "b": "0 false"} {
		version, is := decisions.FirstDiscarded(account, 0)
		same(t, "first discarded of "+account, fmt.Sprint(version, is), want)
	}
}
