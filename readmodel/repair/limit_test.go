package repair_test

import (
	"errors"
	"strings"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/repair"
)

// TestAnAccountAtTheHighestVersion has an account at the highest version that an event can have, and
// a parked event of it that is not removed yet. A claim and the queries for parked events compute
// the next version of each account, which this account does not have.
func TestAnAccountAtTheHighestVersion(t *testing.T) {
	const last = projection.LastVersion
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", last, "4", "EUR"), credit("b", 1, "1", "EUR"), credit("b", 3, "4", "EUR"))
	w.MustFlush()
	if _, err := pool.Exec(t.Context(), `UPDATE account_balance SET version = $1 WHERE account_id = 'a'`, int64(last)); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO park_overflow (account_id, lowest_version, highest_version, events, expected_version,
		topic, partition, first_offset, last_offset, first_version) VALUES ('a', 2, $1, 2, 2, $2, $3, 0, 1, 2)`, int64(last), partition.Topic, partition.Number); err != nil {
		t.Fatal(err)
	}
	own := []int32{partition.Number}
	if due, _, err := accountdb.LoadBeyond(t.Context(), pool, readmodel.BalanceName, partition.Topic, own, 1); err != nil || len(due) != 0 {
		t.Errorf("beyond the park limit: %+v, error %v", due, err)
	}
	if overdue, err := accountdb.LoadOverdue(t.Context(), pool, readmodel.BalanceName, partition.Topic, own, 0); err != nil || len(overdue) != 0 {
		t.Errorf("overdue: %v, error %v", overdue, err)
	}
	newWorker(t, pool, partition).MustClaim("another", projection.NoOffset)
	expect(t, current(t, pool, "a"), "EUR 1.00 9223372036854775807 open a-1 false -")

	repairer := newRepair(t, pool, 0)
	skip := skipOf("a", last)
	skip.NothingWaits = true
	var refused *repair.SkipRefused
	if _, err := repairer.PlanSkip(t.Context(), skip); !errors.As(err, &refused) ||
		!strings.Contains(refused.Error(), `account "a" is at version 9223372036854775807, the highest that there is`) {
		t.Errorf("plan: %v", err)
	}
	if _, err := repairer.Skip(t.Context(), skip); !errors.As(err, &refused) {
		t.Errorf("skip: %v", err)
	}
	if n := count(t, pool, "SELECT count(*) FROM dlq_action WHERE reason LIKE '%(no version follows)'"); n != 1 {
		t.Errorf("%d refusals in the audit trail", n)
	}
}

// TestDiscardOfTheHighestVersion discards the only event beyond the park limit of an account.
func TestDiscardOfTheHighestVersion(t *testing.T) {
	const last = projection.LastVersion
	pool, _ := startWorker(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO park_overflow (account_id, lowest_version, highest_version, events, expected_version)
		VALUES ('a', $1, $1, 1, 2)`, int64(last)); err != nil {
		t.Fatal(err)
	}
	of := readmodel.Discard{Subject: readmodel.Subject{AccountID: "a", Version: last}, Action: readmodel.Action{
		Kind: readmodel.ActionDiscard, Actor: "me", Reason: "lost", Result: readmodel.ResultDiscarded,
		Class: event.VersionGap, Topic: partition.Topic, Partition: partition.Number,
	}}
	if _, err := newRepair(t, pool, 0).Discard(t.Context(), []readmodel.Discard{of}); err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool, "SELECT count(*) FROM park_overflow"); n != 0 {
		t.Errorf("%d accounts beyond the park limit", n)
	}
}
