package repair_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"projector/faulttest/pgproxy"
	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/repair"
)

func skipOf(account string, version int64) repair.Skip {
	return repair.Skip{AccountID: account, Version: version, Actor: "me", Reason: "lost at the source"}
}

func TestSkipPassesOverExactlyTheExpectedVersion(t *testing.T) {
	pool, w := startWorker(t)
	const poison = `{"eventId":"p-3","eventType":"FundsCredited","accountId":"p","version":%d,"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":1,"currency":"EUR"}}`
	w.MustFold(
		credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"), credit("a", 4, "8", "EUR"), credit("a", 6, "32", "EUR"),
		fmt.Sprintf(poison, 1), credit("p", 2, "2", "EUR"),
		credit("new", 2, "2", "EUR"),
	)
	w.MustFlush()
	repairer := newRepair(t, pool, 0)
	changed, stale, refused := (*repair.SkipRefused)(nil), skipOf("a", 2), skipOf("a", 2)
	stale.Planned = &repair.SkippedEvent{EventID: "a-2"} // the event is no longer known
	refused.Planned, refused.Refused = new(repair.SkippedEvent), true
	for _, skip := range []repair.Skip{stale, refused} {
		if _, err := repairer.Skip(t.Context(), skip); !errors.As(err, &changed) || !strings.Contains(changed.Error(), "has changed") {
			t.Errorf("the plan was another one, or was refused: %v", err)
		}
	}
	cases := []struct {
		name    string
		skip    repair.Skip
		refused bool
		healed  int
		want    string
	}{
		{"too early", skipOf("a", 1), true, 0, "EUR 1.00 1 open a-1 true 2"},
		{"too late", skipOf("a", 5), true, 0, "EUR 1.00 1 open a-1 true 2"},
		{"a version never seen", skipOf("a", 2), false, 2, "EUR 13.00 4 open a-4 true 5"},
		{"the same again", skipOf("a", 2), true, 0, "EUR 13.00 4 open a-4 true 5"},
		{"a poison event", skipOf("p", 1), false, 1, "EUR 2.00 2 open p-2 false -"},
		{"the first version, nothing behind it read", skipOf("new", 1), false, 1, "EUR 2.00 2 open new-2 false -"},
	}
	for _, c := range cases {
		_, err := repairer.PlanSkip(t.Context(), c.skip)
		var refused *repair.SkipRefused
		if errors.As(err, &refused) != c.refused {
			t.Errorf("%s: plan %v", c.name, err)
		}
		done, err := repairer.Skip(t.Context(), c.skip)
		if errors.As(err, &refused) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: error %v", c.name, err)
		}
		if done.Healed != c.healed {
			t.Errorf("%s: healed %d, want %d", c.name, done.Healed, c.healed)
		}
		expect(t, current(t, pool, c.skip.AccountID), c.want)
	}
	if _, err := repairer.PlanSkip(t.Context(), skipOf("unheard of", 1)); err == nil {
		t.Error("an account of which nothing is known was to be skipped")
	}
	if n := count(t, pool, "SELECT count(*) FROM dlq_action WHERE action = 'skip' AND result = 'skipped'"); n != 3 {
		t.Errorf("%d skips on record, want 3", n)
	}
}

// TestASkipWhoseCommitIsNotAnswered loses the reply to a COMMIT. The version has been skipped, so
// the command must not report a refusal.
func TestASkipWhoseCommitIsNotAnswered(t *testing.T) {
	database := devtest.Database(t)
	pool := openPoolAt(t, database)
	w := newWorker(t, pool, partition)
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"))
	w.MustFlush()

	proxy, through, err := pgproxy.ListenBefore(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	proxy.LoseReplies(func() bool { return proxy.Lost() == 0 })
	done, err := newRepair(t, openPoolAt(t, through), 0).Skip(t.Context(), skipOf("a", 2))
	if err != nil || done.Healed != 1 || proxy.Lost() != 1 {
		t.Errorf("healed %d, error %v, %d replies lost", done.Healed, err, proxy.Lost())
	}
	expect(t, current(t, pool, "a"), "EUR 5.00 3 open a-3 false -")
	if n := count(t, pool, "SELECT count(*) FROM dlq_action"); n != 1 {
		t.Errorf("%d actions on record, want 1", n)
	}
}

func TestAnAccountMayBeSkippedFromItsVeryFirstVersion(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 3, "4", "EUR"))
	w.MustFlush()
	repairer := newRepair(t, pool, 0)
	if _, err := repairer.Skip(t.Context(), skipOf("a", 1)); err != nil {
		t.Fatal(err)
	}
	expect(t, current(t, pool, "a"), "- 0 1 open - true 2")
	if _, err := repairer.Skip(t.Context(), skipOf("a", 2)); err != nil {
		t.Fatal(err)
	}
	expect(t, current(t, pool, "a"), "EUR 4.00 3 open a-3 false -")
}

// A skip is undone as its plan showed, or not at all.
func TestAnUnskipWhosePlanHasChanged(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "USD"))
	w.MustFlush()
	repairer := newRepair(t, pool, 0)
	if _, err := repairer.Skip(t.Context(), skipOf("a", 2)); err != nil {
		t.Fatal(err)
	}
	skipped := current(t, pool, "a")
	stale, refused := skipOf("a", 2), skipOf("a", 2)
	stale.Planned, refused.Refused = &repair.SkippedEvent{EventID: "a-2"}, true
	for _, skip := range []repair.Skip{stale, refused} {
		if err := repairer.Unskip(t.Context(), skip); !errors.As(err, new(*repair.SkipRefused)) {
			t.Errorf("the plan was another one, or was refused: %v", err)
		}
		expect(t, current(t, pool, "a"), skipped)
	}
	plan, err := repairer.PlanUnskip(t.Context(), skipOf("a", 2))
	if err != nil {
		t.Fatal(err)
	}
	planned := skipOf("a", 2)
	planned.Planned = &plan.Event
	if err := repairer.Unskip(t.Context(), planned); err != nil {
		t.Fatal(err)
	}
	expect(t, current(t, pool, "a"), "EUR 1.00 1 open a-1 true 2")
}

func TestASkippedEventIsADuplicateWhenItComes(t *testing.T) {
	pool, w := startWorker(t)
	const poison = `{"eventId":"a-2","eventType":"FundsCredited","accountId":"a","version":2,"occurredAt":"2026-01-01T00:00:00Z","data":{}}`
	w.MustFold(credit("a", 1, "1", "EUR"), poison, credit("b", 1, "1", "EUR"), credit("b", 3, "1", "EUR"))
	w.MustFlush()
	repairer := newRepair(t, pool, 0)
	if done, err := repairer.Skip(t.Context(), skipOf("a", 2)); err != nil || done.EventID != "a-2" {
		t.Fatalf("event %q, error %v", done.EventID, err)
	}
	if _, err := repairer.Skip(t.Context(), skipOf("b", 2)); err != nil {
		t.Fatal(err)
	}
	w.MustClaim("me", w.Next)
	w.MustFold(poison, credit("b", 2, "1", "EUR"))
	if o := w.MustFlush().Outcomes; o[projection.Duplicate] != 2 {
		t.Errorf("outcomes %v, want two duplicates", o)
	}
	expect(t, current(t, pool, "a"), "EUR 1.00 2 open a-2 false -")
}

// TestASkipAfterTheClaimIsReported skips a version after the consumer has read the decisions. The
// consumer reads the decisions again because it reads the account.
func TestASkipAfterTheClaimIsReported(t *testing.T) {
	pool := openPool(t)
	w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.Decisions = readmodel.NewDecisions(pool, balance.Definition{}) })
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"), credit("b", 1, "1", "EUR"), credit("b", 1, "1", "EUR"))
	if f := w.MustFlush(); f.Outcomes[projection.Duplicate] != 1 || len(f.Skipped) != 0 {
		t.Errorf("outcomes %v, skipped %v before the skip", f.Outcomes, f.Skipped)
	}
	if _, err := newRepair(t, pool, 0).Skip(t.Context(), skipOf("a", 2)); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"when it arrives", "when it arrives again"} {
		w.MustFold(credit("a", 2, "2", "EUR"))
		if f := w.MustFlush(); len(f.Skipped) != 1 || f.Skipped[0].AccountID != "a" || f.Skipped[0].Version != 2 {
			t.Errorf("%s: skipped %v, want version 2 of a", when, f.Skipped)
		}
	}
}

func TestAPassedOverVersionAndTheRealEventRace(t *testing.T) {
	pool, format := openPool(t), jsonFormat(t)
	skips := 0
	for round := range 20 {
		account := fmt.Sprintf("acc-%d", round)
		p := readmodel.Partition{Group: "g", Topic: "events", Number: int32(round)}
		before := newLiveConsumer(pool, format, p, []string{credit(account, 1, "1", "EUR"), credit(account, 3, "4", "EUR")})
		if err := before.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		live := newLiveConsumer(pool, format, p, []string{credit(account, 1, "1", "EUR"), credit(account, 3, "4", "EUR"), credit(account, 2, "2", "EUR")})
		var (
			race    sync.WaitGroup
			refused *repair.SkipRefused
		)
		race.Go(func() {
			if err := live.run(t.Context()); err != nil {
				t.Errorf("consumer: %v", err)
			}
		})
		race.Go(func() {
			if _, err := newRepair(t, pool, 0).Skip(t.Context(), skipOf(account, 2)); err != nil && !errors.As(err, &refused) {
				t.Errorf("skip: %v", err)
			}
		})
		race.Wait()
		want := fmt.Sprintf("EUR 7.00 3 open %s-3 false -", account)
		if refused == nil {
			skips++
			want = fmt.Sprintf("EUR 5.00 3 open %s-3 false -", account)
		}
		expect(t, current(t, pool, account), want)
	}
	if n := count(t, pool, "SELECT count(*) FROM dlq_action WHERE action = 'skip'"); n != 20 {
		t.Errorf("%d skips on record, want 20", n)
	}
	if n := count(t, pool, "SELECT count(*) FROM dlq_action WHERE result = 'skipped'"); n != skips {
		t.Errorf("%d skips are said to have won, %d have", n, skips)
	}
	t.Logf("the skip won %d of 20", skips)
}

func TestManyParkedEventsHealInPieces(t *testing.T) {
	pool := openPool(t)
	w := newWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkLimit = 2000 })
	w.MustClaim("me", projection.NoOffset)
	for v := 2; v <= 1090; v++ { // more events than one transaction of the repair applies
		w.MustFold(credit("a", v, "1", "EUR"))
	}
	w.MustFlush()
	steps, healed := 0, 0
	err := newRepair(t, pool, 100).Apply(t.Context(), replayOf(w.Format, credit("a", 1, "1", "EUR")),
		func(s readmodel.Step) {
			steps++
			if healed += s.Healed; s.Healed > 100 {
				t.Errorf("a piece of %d, want 100 at most", s.Healed)
			}
		})
	if err != nil || healed != 1089 {
		t.Fatalf("healed %d in %d steps, error %v", healed, steps, err)
	}
	expect(t, current(t, pool, "a"), "EUR 1090.00 1090 open a-1090 false -")
}

// If only the waiting events cannot be applied, the error says that the version is skipped.
func TestASkipWhoseWaitingEventsCannotBeApplied(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"))
	w.MustFlush()
	readmodeltest.Exec(t, pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'no grant' USING ERRCODE = '42501'; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON account_balance FOR EACH ROW WHEN (NEW.version > 2) EXECUTE FUNCTION refuse()`)
	if _, err := newRepair(t, pool, 0).Skip(t.Context(), skipOf("a", 2)); err == nil || !strings.Contains(err.Error(), "version 2 is skipped, but") {
		t.Errorf("the error is %v", err)
	}
	expect(t, current(t, pool, "a"), "EUR 1.00 2 open - true 3")
}

func TestAConsumerNeverWritesOverASkip(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"))
	w.MustFlush()
	w.MustFold(credit("a", 2, "2", "EUR")) // the real event has arrived but is not written yet
	if _, err := newRepair(t, pool, 0).Skip(t.Context(), skipOf("a", 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.VerifyAndFlush(); !errors.Is(err, projection.ErrStale) {
		t.Fatalf("error %v, want ErrStale", err)
	}
	w.MustClaim("me", w.Next-1)
	w.MustFold(credit("a", 2, "2", "EUR"))
	if o := w.MustFlush().Outcomes; o[projection.Duplicate] != 1 {
		t.Errorf("outcomes %v, want a duplicate", o)
	}
	expect(t, current(t, pool, "a"), "EUR 5.00 3 open a-3 false -")
}

func TestRepairsOfOneNewAccountTakeTurns(t *testing.T) {
	pool, format := openPool(t), jsonFormat(t)
	for round := range 30 {
		account := fmt.Sprintf("acc-%d", round)
		// The account is known only by a parked event, and there is no position row to lock.
		_, err := pool.Exec(t.Context(), `INSERT INTO parked_event (account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, value, headers)
			VALUES ($1, 4, 'version_gap', 'x', 1, 'events', 0, 0, 0, $2, '{}')`, account, []byte(credit(account, 4, "8", "EUR")))
		if err != nil {
			t.Fatal(err)
		}
		var (
			race    sync.WaitGroup
			refused *repair.SkipRefused
			records = replayOf(format, credit(account, 1, "1", "EUR"), credit(account, 2, "2", "EUR"))
		)
		race.Go(func() {
			if _, err := newRepair(t, pool, 0).Skip(t.Context(), skipOf(account, 1)); err != nil && !errors.As(err, &refused) {
				t.Errorf("skip: %v", err)
			}
		})
		race.Go(func() {
			if err := newRepair(t, pool, 0).Apply(t.Context(), records, nil); err != nil {
				t.Errorf("replay: %v", err)
			}
		})
		race.Wait()
		want, have := "applied applied", "EUR 3.00"
		if refused == nil {
			want, have = "duplicate applied", "EUR 2.00"
		}
		expect(t, effects(records), want)
		expect(t, current(t, pool, account), fmt.Sprintf("%s 2 open %s-2 true 3", have, account))
	}
}

// TestADiscardOvertakesAConsumerOfAnotherPartition discards an event that the consumer of another
// partition is about to apply. An account's events may be in several partitions, for example after
// partitions were added.
func TestADiscardOvertakesAConsumerOfAnotherPartition(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"))
	w.MustFlush()
	other := newWorker(t, pool, readmodeltest.InPartition(1))
	other.MustClaim("another", projection.NoOffset)
	other.MustFold(credit("a", 2, "2", "EUR")) // and version 3, which waits for it
	_, err := newRepair(t, pool, 0).Discard(t.Context(), []readmodel.Discard{{
		Subject: readmodel.Subject{AccountID: "a", Version: 3},
		Action: readmodel.Action{
			Kind: readmodel.ActionDiscard, Actor: "me", Reason: "x", Result: readmodel.ResultDiscarded,
			AccountID: "a", Class: event.VersionGap, Topic: partition.Topic, Partition: partition.Number, Offset: 1,
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.VerifyAndFlush(); !errors.Is(err, projection.ErrFenced) {
		t.Errorf("the consumer writes what it decided before the discard: %v", err)
	}
	expect(t, current(t, pool, "a"), "EUR 1.00 1 open a-1 false -")
}

// TestARaisedFenceIsDated shows that updated_at of a position is the time of the last change, also
// if only the fence changed.
func TestARaisedFenceIsDated(t *testing.T) {
	pool, w := startWorker(t)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("a", 3, "4", "EUR"), credit("b", 3, "4", "EUR"))
	w.MustFlush()
	repairer := newRepair(t, pool, 0)
	if _, err := repairer.Skip(t.Context(), skipOf("b", 1)); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"unskip": func() error { return repairer.Unskip(t.Context(), skipOf("b", 1)) },
		"discard": func() error {
			version, place := int64(3), projection.RecordRef{Topic: partition.Topic, Partition: partition.Number, Offset: 1}
			_, err := repairer.Discard(t.Context(), []readmodel.Discard{{
				Subject: readmodel.Subject{AccountID: "a", Version: version}, Action: readmodel.Action{
					Kind: readmodel.ActionDiscard, Projection: readmodel.BalanceName, Result: readmodel.ResultDiscarded, AccountID: "a", Version: &version,
					Topic: place.Topic, Offset: place.Offset, DLQTopic: "events.dlq", Class: event.VersionGap, Actor: "me", Reason: "x",
				},
			}})
			return err
		},
	} {
		if _, err := pool.Exec(t.Context(), "UPDATE projector_position SET fence = 1, updated_at = 'epoch'"); err != nil {
			t.Fatal(err)
		}
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := count(t, pool, "SELECT count(*) FROM projector_position WHERE fence > 1 AND updated_at > 'epoch'"); n != 1 {
			t.Errorf("%s: the position does not show the change", what)
		}
	}
}
