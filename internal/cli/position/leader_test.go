package position_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

func TestLagNamesAPartitionWithoutALeader(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.Events(1)
	s.Consuming(nil)
	s.Events(2)
	back := s.LoseLeader(s.Topic)

	lines, said := s.Some("lag")
	clitest.Equal(t, clitest.Pick(lines, lagFields...), "0 1 2 1, 1 1 null null, 2 1 2 1")
	if len(lines) != clitest.StagePartitions || lines[1]["lag_seconds"] != nil {
		t.Errorf("the partition without a leader: %v", lines)
	}
	clitest.Contains(t, said, "partition 1 of topic "+s.Topic, "LEADER_NOT_AVAILABLE", "bring back")
	if strings.Contains(said, "partition 0") || strings.Contains(said, "retention") {
		t.Errorf("it says of others what is not so:\n%s", said)
	}
	status, table, said := s.Command("lag")
	clitest.Contains(t, said, "partition 1 of topic "+s.Topic)
	for _, row := range []string{"0 1 2 1", "1 1 ? ? ?", "2 1 2 1", "total ? ?"} {
		if !strings.Contains(clitest.Squeezed(table), "\n"+row) {
			t.Errorf("status %d, and no row %q in\n%s", status, row, table)
		}
	}
	back()
	clitest.Equal(t, clitest.Pick(lag(s.Stage), lagFields...), "0 1 2 1, 1 1 2 1, 2 1 2 1")
}

// A user who watches the lag during an outage must not lose the output.
func TestLagIsWatchedThroughAnOutage(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.Events(1)
	s.LoseLeader(s.Topic)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopAfter{lines: 3 * clitest.StagePartitions, stop: stop}
	var stderr bytes.Buffer
	args := s.Servers([]string{"lag", "--watch", "--interval=10ms", "--output=json"})
	if status := clitest.Execute(ctx, args, out, &stderr); status != exit.OK || out.seen < 3*clitest.StagePartitions {
		t.Errorf("status %d after %d lines", status, out.seen)
	}
	clitest.Contains(t, stderr.String(), "partition 1 of topic "+s.Topic)
}

// TestLagDoesNotWaitForAPartition shows that lag does not wait for a partition whose leader has not
// started yet. Until then, requests for the offsets of the partition are refused.
func TestLagDoesNotWaitForAPartition(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.Events(1)
	s.Fake.Cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: s.Topic, Partitions: []int32{1}, Err: kerr.NotLeaderForPartition, Count: -1,
	})
	lines, said := s.Some("lag")
	clitest.Equal(t, clitest.Pick(lines, lagFields...), "0 null 1 1, 1 null null null, 2 null 1 1")
	clitest.Contains(t, said, "partition 1 of topic "+s.Topic, "NOT_LEADER_FOR_PARTITION")
}

// If one partition has no leader, a consumer continues with the other partitions, is unready, and
// names the partition. The command position names the partition too. When the leader is back, the
// consumer is ready.
func TestAConsumerNamesAPartitionWithoutALeader(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.Events(1)
	back := s.LoseLeader(s.Topic)
	r := s.Running()
	r.AwaitUnready("partition " + s.Topic + "/1 leader")
	s.Await("SELECT coalesce(sum(next_offset) FILTER (WHERE partition <> 1), 0) = 2 FROM projector_position")
	lines, said := s.Some("position")
	clitest.Equal(t, clitest.Pick(lines, "partition", "position", "end"), "0 1 1, 1 null null, 2 1 1")
	clitest.Contains(t, said, "partition 1 of topic "+s.Topic, "bring back")
	back()
	r.AwaitReady()
	r.Stop("")
}

// TestEpochEndsThatNobodyReports sets a position while a broker does not answer the request for the
// ends of leader epochs. These ends only show where a log was truncated.
func TestEpochEndsThatNobodyReports(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.Events(1)
	s.Consuming(nil)
	s.Fake.Cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.Fake.Cluster.KeepControl()
		s.Fake.Cluster.SleepControl(func() { <-t.Context().Done() })
		return nil, nil, false
	})
	clitest.Contains(t, s.Must("position", "set", "--all", "--start", "--reason=x"), "would be set from 1 to 0")
}

// TestAPositionIsSetWithItsLeaderEpoch sets a position to the end of a log. Until a record is read from
// there, only the stored leader epoch shows that the log has lost its end and was written on.
func TestAPositionIsSetWithItsLeaderEpoch(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Produce(clitest.EventOf("a", 2, `"1"`))
	s.Must("position", "set", "--all", "--end", "--skip-unread", "--reason=x", "--yes")
	ends, err := kadm.NewClient(s.Client).ListEndOffsets(t.Context(), s.Topic)
	end, known := ends.Lookup(s.Topic, 0)
	if err != nil || !known || end.LeaderEpoch < 0 {
		t.Fatalf("end %+v, error %v", end, err)
	}
	s.Await("SELECT (next_offset, leader_epoch_at, leader_epoch, judged_until, judged_epoch_at, judged_epoch) = (2, 2, $1::int, 2, 2, $1::int) FROM projector_position", end.LeaderEpoch)
}

// TestWhatIsProcessedMeanwhileStaysProcessed sets positions back while a consumer processes records.
// It processes the last ones after the command has read the ends of the logs.
func TestWhatIsProcessedMeanwhileStaysProcessed(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.Events(1)
	s.Consuming(nil)
	var once sync.Once
	s.Fake.Cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.Fake.Cluster.KeepControl()
		s.Fake.Cluster.SleepControl(func() {
			once.Do(func() {
				s.Events(2)
				s.Exec("UPDATE projector_position SET next_offset = 2, leader_epoch_at = 2, judged_until = 2, judged_epoch_at = 2")
			})
		})
		return nil, nil, false
	})
	clitest.Contains(t, s.Must("position", "set", "--all", "--start", "--reason=x", "--yes"), "set from 2 to 0")
	clitest.Equal(t, s.Text("SELECT string_agg(next_offset || ' ' || judged_until, ', ') FROM projector_position"), "0 2, 0 2, 0 2")
}
