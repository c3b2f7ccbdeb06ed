package dlq_test

import (
	"testing"

	"projector/internal/cli/clitest"
)

// TestADiscardedEventIsNotFetched discards an event that the outbox still has. An instance and the
// command fetch the event before it, and only a replay of the dead letter applies the event.
func TestADiscardedEventIsNotFetched(t *testing.T) {
	for name, fetch := range map[string]func(s *clitest.Stage, flags []string){
		"by the command": func(s *clitest.Stage, flags []string) {
			lines := s.Lines(append([]string{"gaps", "fetch", "--yes"}, flags...)...)
			clitest.Equal(s.T, clitest.Pick(lines, "version", "result"), "2 applied")
		},
		"by an instance": func(s *clitest.Stage, flags []string) {
			s.T.Setenv("OUTBOX_URL", s.URL)
			s.T.Setenv("OUTBOX_QUERY", outboxQuery)
			s.T.Setenv("OUTBOX_AFTER", "0s")
			running := s.Running()
			s.Await("SELECT version > 1 FROM account_balance WHERE account_id = 'a'")
			running.Stop("")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewStage(t)
			flags := outboxOf(s)
			state := func() string { return s.Text("SELECT balance || ' at ' || version FROM account_balance") }
			s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`), clitest.EventOf("a", 4, `"8.00"`))
			s.Consuming(nil)
			for version, amount := range map[int]string{2: `"2.00"`, 3: `"1000000.00"`} {
				published(s, "a", version, clitest.EventOf("a", version, amount))
			}
			s.Must("dlq", "discard", "--account=a", "--offset=1", "--reason=void", "--yes")
			fetch(s, flags)
			clitest.Equal(t, state(), "3.00 at 2")
			clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "received_version", "waiting_events"), "a 3 4 1")
			clitest.Equal(t, s.Must(append([]string{"gaps", "fetch", "--yes"}, flags...)...), "no account waits for an event that can be fetched\n")

			s.Must("dlq", "replay", "--account=a", "--status=discarded", "--yes")
			clitest.Equal(t, state(), "1000011.00 at 4")
		})
	}
}
