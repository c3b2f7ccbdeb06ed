package change_test

import (
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// TestAnotherEventIsNotSkipped requests the skip of a lost version. Then the event of this version
// arrives, so the approval is refused and a person must check the event.
func TestAnotherEventIsNotSkipped(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"4.00"`))
	s.Consuming(nil)
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	skip := requested(t, s, "account", "skip", "a", "--version=2", "--reason=lost")
	s.Produce(clitest.Undated("a", 2, `"1000000.00"`))
	s.Consuming(nil)
	clitest.Contains(t, other.Must("requests", "show", skip), "its event cannot be applied: malformed_payload, event id a-2, record "+s.Topic+"/0/2")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", skip, "--reason=checked"), "the plan has changed", "nothing was changed")
	clitest.Equal(t, s.Text("SELECT version::text FROM account_balance"), "1")

	// Other events that begin to wait are not a reason for a refusal.
	skip = requested(t, s, "account", "skip", "a", "--version=2", "--reason=void")
	s.Produce(clitest.EventOf("a", 4, `"8.00"`))
	s.Consuming(nil)
	clitest.Contains(t, other.Must("approve", skip, "--reason=checked"), "skipped version 2")
	clitest.Equal(t, s.Text("SELECT balance || ' at ' || version FROM account_balance"), "13.00 at 4")
}

func TestAnUnskipIsRequested(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1.00"`))
	s.Consuming(nil)
	s.Must("account", "skip", "a", "--version=2", "--reason=lost", "--nothing-waits", "--yes")
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	unskip := requested(t, s, "account", "unskip", "a", "--version=2", "--reason=found")
	clitest.Equal(t, s.Text("SELECT version::text FROM account_balance"), "2")
	clitest.Contains(t, other.Must("requests", "show", unskip), "account unskip --version=2", "would take back the skip of version 2")
	clitest.Contains(t, other.Must("approve", unskip, "--reason=checked"), "took back the skip of version 2")
	clitest.Equal(t, s.Text("SELECT version::text FROM account_balance"), "1")
	clitest.Equal(t, s.Text("SELECT approval_reason FROM dlq_action WHERE action = 'unskip'"), "checked")
}
