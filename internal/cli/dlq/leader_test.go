package dlq_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

func TestDeadLettersOfTheOtherPartitions(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.DeadLetters()
	back := s.LoseLeader(s.Topic + ".dlq")
	const others = "0 acc-0 ready, 2 acc-2 ready"
	named := []string{"partition 1 of topic " + s.Topic + ".dlq", "LEADER_NOT_AVAILABLE", "bring back"}

	lines, said := s.Some("dlq", "list")
	clitest.Equal(t, clitest.Pick(lines, "dlq_partition", "account_id", "status"), others)
	clitest.Contains(t, said, named...)
	status, out, said := s.Command("dlq", "list", "--account=acc-1")
	clitest.Contains(t, said, named...)
	if status != exit.Failed || strings.Contains(out, "no dead letters\n") {
		t.Errorf("status %d, and of what was not read it says:\n%s", status, out)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list", "--dlq-partition=0,2"), "dlq_partition", "account_id", "status"), others)
	lines, said = s.Some("dlq", "list", "--dlq-partition=0,1", "--dlq-offset=0")
	clitest.Equal(t, clitest.Pick(lines, "dlq_partition", "account_id"), "0 acc-0")
	clitest.Contains(t, said, named...)

	lines, said = s.Some("dlq", "summary")
	clitest.Equal(t, clitest.Pick(lines, "class", "status", "records"), "malformed_payload ready 2")
	clitest.Contains(t, said, named...)

	lines, said = s.Some("dlq", "export")
	clitest.Equal(t, clitest.Pick(lines, "dlq_partition"), "0, 2")
	clitest.Contains(t, said, named...)
	file := filepath.Join(t.TempDir(), "dead.jsonl")
	clitest.Contains(t, s.Refused(exit.Failed, "dlq", "export", "--file="+file), named...)
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("exported %d dead letters, %v", strings.Count(string(text), "\n"), err)
	}
	clitest.Contains(t, s.Must("dlq", "replay", "--from-file="+file, "--reason=INC-1"), "2 will_apply")

	clitest.Contains(t, s.Must("dlq", "show", "2/0"), "acc-2-1")
	clitest.Contains(t, s.Refused(exit.Failed, "dlq", "show", "1/0"), named...)
	back()
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list"), "account_id"), "acc-0, acc-1, acc-2")
}

// TestRepairsOfAnIncompleteSelectionAreRefused shows that a repair is refused if a partition cannot
// be read, unless the user selects the readable partitions.
func TestRepairsOfAnIncompleteSelectionAreRefused(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.DeadLetters()
	s.LoseLeader(s.Topic + ".dlq")
	for _, args := range [][]string{{"dlq", "replay"}, {"dlq", "discard", "--reason=known"}} {
		lines, said := s.Some(args...)
		clitest.Equal(t, clitest.Pick(lines, "account_id"), "acc-0, acc-2") // the plan for the readable partitions
		clitest.Contains(t, said, "partition 1 of topic "+s.Topic+".dlq")

		lines, said = s.Some(append(args, "--yes")...)
		clitest.Equal(t, clitest.Pick(lines, "account_id"), "")
		clitest.Contains(t, said, "nothing was changed", "--dlq-partition 0,2")
	}
	var changed int
	err := s.Pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM dlq_action) + (SELECT count(*) FROM account_balance)").Scan(&changed)
	if err != nil || changed != 0 {
		t.Fatalf("changed %d rows, %v", changed, err)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "discard", "--reason=known", "--yes", "--dlq-partition=0"), "account_id", "result"), "acc-0 discarded")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--yes", "--dlq-partition=0,2"), "account_id", "result"), "acc-2 applied")
}

// TestOtherEventsInAnUnreadablePartition discards a parked event while another partition of the DLQ
// topic cannot be read. It may have another event of the version, so the command says so.
func TestOtherEventsInAnUnreadablePartition(t *testing.T) {
	t.Parallel()
	s := clitest.NewLeaderStage(t)
	s.Append(&kgo.Record{Key: []byte("in partition 0"), Value: []byte(clitest.EventOf("a", 3, `"1"`))})
	s.Consuming(nil)
	s.LoseLeader(s.Topic + ".dlq")
	discard := []string{"dlq", "discard", "--dlq-partition=0", "--reason=void"}
	for _, args := range [][]string{discard, append(discard, "--yes")} {
		status, out, said := s.Command(args...)
		if status != exit.OK || !strings.Contains(out, "parked events") {
			t.Errorf("status %d: %s%s", status, out, said)
		}
		clitest.Contains(t, out+said, "other events of the same versions", "partition 1 of topic "+s.Topic+".dlq could not be read")
	}
}
