package rebuild_test

import (
	"testing"
	"time"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// A rebuild needs all partitions. It waits for a leader election and names the partition without a
// leader.
func TestRebuildNamesAPartitionWithoutALeader(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.Events(1)
	s.Consuming(nil)
	back := s.LoseLeader(s.Topic)
	began := time.Now()
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild"), "partition 1 of topic "+s.Topic, "LEADER_NOT_AVAILABLE", "bring back")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	elected := time.AfterFunc(time.Second, back)
	defer elected.Stop()
	clitest.Contains(t, s.Must("rebuild"), "3 are right")
}
