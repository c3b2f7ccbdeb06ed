package database_test

import (
	"strings"
	"testing"

	"projector/internal/cli/clitest"
)

// TestTheTrailSaysWhere shows for several actions which of the columns for group, topic, partition
// and offset have a value.
func TestTheTrailSaysWhere(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 3, `"1"`), "garbage", clitest.EventOf("b", 1, `"x"`), clitest.EventOf("b", 2, `"1"`))
	s.Consuming(nil)
	s.Must("dlq", "discard", "--class=malformed_payload", "--reason=rubbish", "--yes")
	s.Some("dlq", "replay", "--account=a", "--yes")
	s.Must("account", "skip", "b", "--version=1", "--reason=lost", "--yes")
	s.Must("pause", "--all", "--reason=wait", "--yes")
	s.Must("resume", "--all", "--reason=go", "--yes")
	s.Must("position", "set", "--partition=0", "--offset=2", "--reason=again", "--yes")
	s.Exec("UPDATE account_balance SET balance = 7 WHERE account_id = 'a'")
	s.Must("rebuild", "--yes")
	group := "account-balance-projector account_balance " + s.Topic + " 0 "
	want := []string{
		"discard " + group + "2 0 1 null null discarded",
		"replay " + group + "1 0 0 a 3 waiting",
		"skip null account_balance " + s.Topic + " 0 3 null null b 1 skipped",
		"pause " + group + "5 null null null null from running to paused",
		"resume " + group + "5 null null null null from paused to running",
		"position_set " + group + "2 null null null null from 5 to 2",
		"rebuild null account_balance null null null null null a 1 replaced",
	}
	fields := strings.Fields("action group projection topic partition offset dlq_partition dlq_offset account_id version result")
	clitest.Equal(t, clitest.Pick(s.Lines("audit"), fields...), strings.Join(want, ", "))
	table := strings.Join(strings.Fields(s.Must("audit", "--action=position_set")), " ")
	clitest.Contains(t, table, "from 5 to 2", "account_balance account-balance-projector "+s.Topic+" 0/2")
	clitest.Equal(t, clitest.Pick(s.Lines("audit", "verify"), "rows", "ok"), "7 true")
}
