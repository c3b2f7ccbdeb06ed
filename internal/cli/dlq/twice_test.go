package dlq_test

import (
	"testing"

	"projector/internal/cli/clitest"
)

// TestEveryDeadLetterOfADiscardedEventIsDiscarded discards one of the two dead letters of an event that
// was read twice. The other one must not apply the event, and a replay takes back the discard of both.
func TestEveryDeadLetterOfADiscardedEventIsDiscarded(t *testing.T) {
	clitest.Ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		t.Helper()
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`))
		s.Consuming(nil)
		s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
		s.Consuming(nil)
		letters := s.Lines("dlq", "list")
		clitest.Equal(t, clitest.Statuses(letters), "a 3 waiting, a 3 waiting")

		s.Must("dlq", "discard", "--dlq-partition="+clitest.Pick(letters[1:], "dlq_partition"), "--dlq-offset="+clitest.Pick(letters[1:], "dlq_offset"), "--reason=void", "--yes")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "a 3 discarded, a 3 discarded")
		clitest.Equal(t, s.Must("dlq", "replay", "--status=open,ready,waiting", "--yes"), "nothing to replay\n")
		clitest.Equal(t, state(), "3.00 at 2")

		s.Must("dlq", "replay", "--status=discarded", "--yes")
		clitest.Equal(t, state(), "1000003.00 at 3")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "a 3 resolved, a 3 resolved")
	})
}
