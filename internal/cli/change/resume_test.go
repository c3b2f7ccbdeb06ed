package change_test

import (
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// TestAnotherBreakerIsAnotherPlan requests the command resume after the breaker has opened. The
// approval is refused if the breaker opens for another reason after the request.
func TestAnotherBreakerIsAnotherPlan(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	other := colleague(t, s)
	opens := func(reason string) { s.Exec("UPDATE projector_position SET breaker_reason = $1", reason) }
	opens("500 of them malformed_payload")
	s.Must("migrate", "--four-eyes=on")
	resume := []string{"resume", "--all", "--through=END", "--reason=INC-1"}
	id := requested(t, s, resume...)
	clitest.Contains(t, s.Must("requests", "show", id, "--brokers="+strings.Join(s.Addrs, ",")),
		"group account-balance-projector, projection account_balance", "it is breaker_open: 500 of them malformed_payload")
	opens("900 of them currency_mismatch")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", id, "--reason=fine"), "the plan has changed since")
	s.Await("SELECT breaker_reason IS NOT NULL FROM projector_position")

	s.Produce(clitest.EventOf("acc", 2, `"1"`)) // moves the end of the topic
	id = requested(t, s, resume...)
	clitest.Contains(t, other.Must("approve", id, "--reason=fine"), "records below 2 do not count")
	s.Await("SELECT breaker_reason IS NULL AND breaker_through = 2 FROM projector_position")
}
