package position_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/devstack/devtest"
)

// TestPositionSetInATopicJustRecreated sets a position before the consumer has noticed that the
// topic was recreated.
func TestPositionSetInATopicJustRecreated(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	adm := kadm.NewClient(s.Client)
	s.Consuming(func() {
		if _, err := adm.DeleteTopic(t.Context(), s.Topic); err != nil {
			t.Fatal(err)
		}
		if _, err := adm.CreateTopic(t.Context(), 1, 1, nil, s.Topic); err != nil {
			t.Fatal(err)
		}
		s.Client.PurgeTopicsFromProducing(s.Topic)
		s.Produce(clitest.EventOf("b", 1, `"1"`), clitest.EventOf("b", 2, `"1"`))
		s.Must("position", "set", "--all", "--start", "--new-topic", "--reason=x", "--yes")
		s.Await("SELECT next_offset = 2 AND (SELECT count(*) = 2 FROM account_balance) FROM projector_position")
	})
}

// TestANewTopicAndAPrunedInbox sets a position in a topic that was recreated and repeats events. The
// inbox no longer has the markers of these events, so the plan warns that they would count twice.
func TestANewTopicAndAPrunedInbox(t *testing.T) {
	s := turnoverStage(t, "7 days")
	s.Exec("DELETE FROM inbox")
	adm := kadm.NewClient(s.Client)
	if _, err := adm.DeleteTopic(t.Context(), s.Topic); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.CreateTopic(t.Context(), 1, 1, nil, s.Topic); err != nil {
		t.Fatal(err)
	}
	s.Client.PurgeTopicsFromProducing(s.Topic)
	s.Produce(clitest.EventOf("a", 1, `"20"`))
	status, out, said := s.Command("position", "set", "--all", "--start", "--new-topic", "--reason=x")
	if status != exit.OK {
		t.Errorf("status %d", status)
	}
	clitest.Contains(t, out, "would be set from 3 to 0")
	clitest.Contains(t, said, "the inbox of daily_turnover remembers what was counted since", "would count twice")
	_, _, said = s.Command("position", "set", "--all", "--start", "--reason=x")
	if strings.Contains(said, "would count twice") {
		t.Error(said) // refused, so nothing can count twice
	}

	s.Topic = devtest.Topic(t, s.Addrs, 1)
	s.Produce(clitest.EventOf("a", 1, `"20"`))
	status, out, said = s.Command("position", "set", "--all", "--time=1h", "--reason=x", "--yes")
	if status != exit.OK {
		t.Errorf("status %d", status)
	}
	clitest.Contains(t, out, "set from - to 0")
	clitest.Contains(t, said, "would count twice")
}
