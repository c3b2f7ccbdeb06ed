package dlq_test

import (
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

func TestDiscardIsOnRecordAndUndoesNothing(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	args := []string{"dlq", "discard", "--reason=known", "--class=version_conflict"}
	clitest.Contains(t, s.Must(args...), "would discard 1 dead letter of 1 account; nothing was changed")
	clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list", "--status=discarded")), "")
	clitest.Equal(t, clitest.Pick(s.Lines(append(args, "--yes", "--actor=auditor")...), "status", "result"), "discarded discarded")
	clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list", "--status=discarded")), "acc-a 1 discarded")
	clitest.Contains(t, s.Must(args...), "nothing to discard")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--class=version_conflict"), "plan"), "")
	s.Refused(exit.Usage, "dlq", "discard", "--yes")
	record := s.Text(`SELECT concat_ws(' ', action, account_id, version, class, dlq_partition, dlq_offset, actor, reason, result, topic, "offset") FROM dlq_action`)
	clitest.Equal(t, record, "discard acc-a 1 version_conflict 0 6 auditor known discarded "+s.Topic+" 7")
}

// TestADiscardCountsAParkedEventOnce reads an event that waits for a gap twice. It has two dead
// letters then, but it is parked once.
func TestADiscardCountsAParkedEventOnce(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 2, `"1"`))
	s.Consuming(nil)
	s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
	s.Consuming(nil)
	discard := []string{"dlq", "discard", "--account=acc", "--reason=known"}
	clitest.Contains(t, s.Must(discard...), "parked events that would be removed: 1;", "would discard 2 dead letters of 1 account")
	clitest.Contains(t, s.Must(append(discard, "--yes")...), "discarded 2 dead letters of 1 account\nparked events removed: 1;")
}

// TestADiscardThatCannotBeRecordedIsNone shows that the command prints no discarded dead letter if
// the audit trail cannot be written.
func TestADiscardThatCannotBeRecordedIsNone(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	for version := 2; version < 22; version++ { // more than one block of the output
		s.Produce(clitest.EventOf("acc", version, `"1"`))
	}
	s.Consuming(nil)
	s.Exec(`ALTER TABLE dlq_action ADD CONSTRAINT closed CHECK (action <> 'discard')`)
	for _, output := range []string{"json", "text"} {
		status, out, _ := s.Command("dlq", "discard", "--reason=known", "--yes", "--output="+output)
		if status != exit.Failed || out != "" {
			t.Errorf("status %d, and said:\n%s", status, out)
		}
	}
}
