package change_test

import (
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// TestADiscardThatParksAnotherEvent requests the discard of a parked event of whose version the DLQ has
// other events. The request is refused if another event than the shown one would be parked.
func TestADiscardThatParksAnotherEvent(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`), clitest.Undated("a", 3, `"9.00"`), clitest.Corrected("a", 3, `"3.00"`))
	s.Consuming(nil)
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")

	discard := []string{"dlq", "discard", "--account=a", "--offset=1", "--reason=void"}
	id := requested(t, s, discard...)
	s.Produce(clitest.EventOf("b", 1, `"1.00"`))
	s.Consuming(nil) // other events do not matter
	show := append([]string{"requests", "show", id}, s.Servers([]string{"approve"})[1:]...)
	clitest.Contains(t, s.Must(show...), "would be parked instead")
	clitest.Contains(t, other.Must("approve", id, "--reason=checked"), "is parked instead")
	clitest.Equal(t, s.Text("SELECT event_id FROM parked_event"), "a-3-corrected")

	// The event that was to be parked instead is discarded before the approval.
	s.Produce(withOtherID(clitest.EventOf("a", 3, `"4.00"`)))
	s.Consuming(nil)
	first := requested(t, s, "dlq", "discard", "--account=a", "--offset=3", "--reason=void")
	second := requested(t, s, "dlq", "discard", "--account=a", "--offset=5", "--reason=void")
	other.Must("approve", second, "--reason=checked")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", first, "--reason=checked"), "plan")
	clitest.Equal(t, s.Text("SELECT event_id FROM parked_event"), "a-3-corrected")
}

func withOtherID(event string) string { return strings.Replace(event, `"a-3"`, `"a-3-again"`, 1) }
