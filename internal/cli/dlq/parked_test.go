package dlq_test

import (
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

func TestACorrectionThatComesWhileItsAccountWaits(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.Undated("a", 3, `"4.00"`), clitest.EventOf("a", 4, `"8.00"`))
		s.Consuming(nil)
		s.Produce(clitest.Corrected("a", 3, `"4.00"`))
		s.Consuming(nil)
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "15.00 at 4")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
	})
}

func TestADiscardedEventIsNotApplied(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`), clitest.EventOf("a", 4, `"8.00"`))
		s.Consuming(nil)
		discard := []string{"dlq", "discard", "--account=a", "--offset=1", "--reason=void"}
		clitest.Contains(t, s.Must(discard...), "parked events that would be removed: 1", "would discard 1 dead letter of 1 account; nothing was changed", "stays at the version before it", "dlq replay --status=discarded")
		clitest.Contains(t, s.Must(append(discard, "--yes")...), "discarded 1 dead letter of 1 account\n", "parked events removed: 1")
		clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "received_version", "waiting_events"), "a 2 4 1")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
		clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "received_version", "waiting_events"), "a 3 4 1")

		// The event stays discarded when its record is read again from the start.
		s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")

		s.Produce(clitest.Corrected("a", 3, `"4.00"`)) // a new record is a new event
		s.Consuming(nil)
		clitest.Equal(t, state(), "15.00 at 4")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list", "--account=a", "--offset=1")), "a 3 discarded")
	})
}

// TestADiscardWithAnotherMappingIsRefused discards without the mapping of run, with which the event has
// another account. The discard would name this account, and the event would still be applied.
func TestADiscardWithAnotherMappingIsRefused(t *testing.T) {
	s := clitest.NewStage(t)
	path := s.UseMapping("fields: {accountId: iban}\n")
	produce := func(version int, amount string) {
		s.Produce(strings.Replace(clitest.EventOf("customer", version, amount), "{", `{"iban":"a",`, 1))
	}
	produce(1, `"1.00"`)
	produce(3, `"1000000.00"`)
	s.Consuming(nil)
	discard := []string{"dlq", "discard", "--offset=1", "--reason=void", "--yes"}
	t.Setenv("EVENT_MAPPING", "")
	clitest.Contains(t, s.Refused(exit.Failed, discard...), "another --mapping (EVENT_MAPPING)")
	t.Setenv("EVENT_MAPPING", path)
	clitest.Contains(t, s.Must(discard...), "parked events removed: 1")
	produce(2, `"2.00"`)
	s.Consuming(nil)
	clitest.Equal(t, s.Text("SELECT balance::text FROM account_balance"), "3.00")
}

// TestADiscardOfEverythingIsReversed discards all dead letters, and then replays those with the
// status discarded. The dead letters whose events are applied become resolved.
func TestADiscardOfEverythingIsReversed(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"4.00"`), clitest.EventOf("a", 4, `"8.00"`), clitest.EventOf("b", 2, `"1.00"`))
		s.Consuming(nil)
		plan := s.Must("dlq", "discard", "--reason=all")
		clitest.Contains(t, plan, "would discard 3 dead letters of 2 accounts;", "stays at the version before it")
		if first, _, _ := strings.Cut(plan, "\n"); !strings.HasPrefix(first, "no filter is given") || !strings.Contains(first, "discarded, 3 in all") {
			t.Errorf("the first line is %q", first)
		}
		if plan := s.Must("dlq", "discard", "--reason=all", "--account=a"); strings.Contains(plan, "no filter is given") {
			t.Errorf("with a filter: %s", plan)
		}
		s.Must("dlq", "discard", "--reason=all", "--yes")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "a 3 discarded, a 4 discarded, b 2 discarded")
		lines, _ := s.Some("dlq", "replay", "--status=discarded", "--yes")
		clitest.Equal(t, clitest.Pick(lines, "account_id", "received_version", "result"), "a 3 applied, a 4 applied, b 2 waiting")
		clitest.Equal(t, state(), "15.00 at 4")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "a 3 resolved, a 4 resolved, b 2 discarded")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list", "--status=discarded")), "b 2 discarded")
	})
}

// One event with a mistyped version must not make its account wait for ever.
func TestADiscardFreesAnAccountFromAMistypedVersion(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 1700000, `"5.00"`))
		s.Consuming(nil)
		s.Must("dlq", "discard", "--account=a", "--reason=mistyped", "--yes")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
		clitest.Contains(t, s.Must("account", "show", "a", "--output=json"), `"stale":false`, `"parked":[]`)
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
	})
}

// An event beyond the park limit can be discarded too. The event stays discarded when its record is
// read again.
func TestADiscardOfWhatIsBeyondTheParkLimit(t *testing.T) {
	t.Setenv("PARK_LIMIT", "2")
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`))
		for version := 3; version <= 7; version++ {
			s.Produce(clitest.EventOf("a", version, `"1.00"`))
		}
		s.Consuming(nil)
		for range 2 { // the second discard changes nothing
			s.Must("dlq", "discard", "--account=a", "--offset=3,4", "--status=open,waiting,discarded", "--reason=void", "--yes")
			clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "waiting_events"), "a 2 3")
		}
		s.Must("dlq", "discard", "--account=a", "--offset=5", "--reason=void", "--yes")
		clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "waiting_events"), "a 2 2")
		s.Produce(clitest.EventOf("a", 2, `"1.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "4.00 at 4")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
		s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
		s.Consuming(nil)
		clitest.Equal(t, s.Must("dlq", "replay", "--account=a", "--status=open,ready,waiting"), "nothing to replay\n")
		clitest.Equal(t, state(), "4.00 at 4")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
	})
}

// TestADiscardWhileAConsumerRuns shows that a running consumer does not apply an event that is
// discarded meanwhile.
func TestADiscardWhileAConsumerRuns(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"4.00"`))
		s.Consuming(func() {
			s.Must("dlq", "discard", "--account=a", "--reason=void", "--yes")
			s.Produce(clitest.EventOf("a", 2, `"2.00"`), clitest.Corrected("a", 3, `"8.00"`))
			s.Await("SELECT coalesce(sum(next_offset), 0) = $1 FROM projector_position", s.Produced)
		})
		clitest.Equal(t, state(), "11.00 at 3")
		clitest.Contains(t, s.Must("dlq", "discard", "--account=a", "--status=resolved,ready,waiting", "--reason=void", "--yes"), "discarded 0 dead letters")
	})
}

func TestAnAppliedEventIsNotDiscarded(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"4.00"`), clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Contains(t, s.Must("dlq", "discard", "--account=a", "--status=resolved", "--reason=void", "--yes"),
			"not discarded, because the read model has passed their versions: 1", "discarded 0 dead letters")
		clitest.Equal(t, s.Text("SELECT count(*)::text FROM dlq_action WHERE action = 'discard'"), "0")
		clitest.Equal(t, state(), "7.00 at 3")
	})
}
