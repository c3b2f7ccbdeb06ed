package position_test

import (
	"sync"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// TestMoreUnreadRecordsThanShownAreNotSkipped sets a position back between the plan and the change of
// the command position set. Another operator may do this, or a failover that has lost transactions.
func TestMoreUnreadRecordsThanShownAreNotSkipped(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`), clitest.EventOf("acc", 2, `"1"`))
	s.Consuming(nil)
	s.Produce("poison")
	set := []string{"position", "set", "--partition=0", "--end", "--skip-unread", "--reason=INC-1"}
	clitest.Contains(t, s.Must(set...), "would be set from 2 to 3, skipping 1 offsets")

	tx, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "UPDATE projector_position SET next_offset = 1"); err != nil {
		t.Fatal(err)
	}
	var (
		status int
		said   string
		ran    sync.WaitGroup
	)
	ran.Go(func() { status, _, said = s.Command(append(set, "--yes")...) })
	s.Await("SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ran.Wait(); status != exit.Failed {
		t.Errorf("status %d", status)
	}
	clitest.Contains(t, said, "partition 0: the position is 1 now: 2 unread offsets would be skipped, and the plan has 1", "nothing was changed")
	clitest.Equal(t, clitest.Pick(s.Lines("position"), "position"), "1")
	clitest.Equal(t, clitest.Pick(s.Lines("audit"), "action"), "")
}
