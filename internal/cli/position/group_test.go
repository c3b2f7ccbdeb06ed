package position_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// TestAGroupWithoutPositionsIsRefused shows that a change is refused if its group has no positions.
// The name of such a group is usually mistyped, so a pause would stop nothing.
func TestAGroupWithoutPositionsIsRefused(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	for _, command := range [][]string{
		{"pause", "--all"}, {"resume", "--all"}, {"position", "set", "--all", "--start"},
	} {
		mistyped := slices.Concat(command, []string{"--group=account_balance_projector", "--reason=INC", "--yes"})
		clitest.Contains(t, s.Refused(exit.Failed, mistyped...), `group "account_balance_projector"`, "has no positions of account_balance",
			"those that have are account-balance-projector", "--new-group")
	}
	s.Await("SELECT count(*) = 1 FROM projector_position")
	clitest.Equal(t, clitest.Pick(s.Lines("audit"), "action"), "")
	clitest.Contains(t, s.Must("pause", "--all", "--group=new", "--new-group", "--reason=not yet", "--yes"),
		"group new, projection account_balance\n", "partition 0: paused")
	clitest.Contains(t, s.Must("position", "set", "--all", "--start", "--reason=x"), "group account-balance-projector, projection account_balance\n")
}

// TestChangesNameTheirReader shows that the JSON output names the group and the projection too.
func TestChangesNameTheirReader(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	for _, change := range [][]string{{"pause", "--all"}, {"pause", "--all", "--yes"}, {"resume", "--all"}} {
		out := s.Must(append(change, "--reason=x", "--output=json")...)
		clitest.Equal(t, clitest.Keys(t, out), "topic partition state group projection")
		clitest.Contains(t, out, `"group":"account-balance-projector","projection":"account_balance"}`)
	}
	clitest.Equal(t, clitest.Keys(t, s.Must("position", "set", "--all", "--start", "--reason=x", "--output=json")),
		"topic partition from to unread_skipped result group projection")
}

func TestResumeSaysThatAPartitionWasNotPaused(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	clitest.Contains(t, s.Must("resume", "--all", "--reason=x"), "partition 0: would be resumed; it was neither paused nor stopped by the breaker")
	s.Must("pause", "--all", "--reason=new column", "--actor=me", "--yes")
	clitest.Contains(t, s.Must("resume", "--all", "--reason=x"), "partition 0: would be resumed\n  it is paused: paused by me: new column\n")
	clitest.Equal(t, strings.Split(s.Must("resume", "--all", "--reason=x", "--yes"), "\n")[1], "partition 0: resumed")
}

// TestResumeThroughTheEnd runs `resume --through=END`, as the breaker's message proposes. Then the
// records before the end of each partition do not count for its breaker.
func TestResumeThroughTheEnd(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`), clitest.EventOf("acc", 2, `"1"`))
	s.Consuming(nil)
	clitest.Contains(t, s.Must("resume", "--all", "--through=END", "--reason=x", "--yes"), "records below 2 do not count for the breaker")
	s.Await("SELECT breaker_through = 2 FROM projector_position")
	clitest.Equal(t, clitest.Pick(s.Lines("audit"), "result"), "from running to running, through 2")
	s.Must("resume", "--all", "--reason=x", "--yes")
	s.Await("SELECT breaker_through = 2 FROM projector_position")
	for _, wrong := range []string{"-1", "end of it", "1e3"} {
		clitest.Contains(t, s.Refused(exit.Usage, "resume", "--all", "--through="+wrong, "--reason=x"), "--through")
	}
}

// TestAGroupThatKafkaForgotIsRemoved removes a group that Kafka does not know. Brokers delete a
// group that was not used for days.
func TestAGroupThatKafkaForgotIsRemoved(t *testing.T) {
	broker := devtest.Fake(t, devstack.FakeOptions{})
	s := clitest.StageOn(t, broker.Addrs())
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	broker.Cluster.ControlKey(kmsg.DescribeGroups.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		broker.Cluster.KeepControl()
		response := request.ResponseKind().(*kmsg.DescribeGroupsResponse)
		for _, name := range request.(*kmsg.DescribeGroupsRequest).Groups {
			group := kmsg.NewDescribeGroupsResponseGroup()
			group.Group, group.State, group.ErrorCode = name, "Dead", kerr.GroupIDNotFound.Code
			response.Groups = append(response.Groups, group)
		}
		return response, nil, true
	})
	status, _, said := s.Command("position")
	clitest.Equal(t, fmt.Sprint(status, " ", said), "0 Kafka does not know group account-balance-projector: nobody owns the partitions\n")
	clitest.Contains(t, s.Must("position", "remove", "--group=account-balance-projector", "--reason=x", "--yes"), "partition 0: position 1 removed")
}

// TestOwnersDuringARebalance shows that a partition keeps its owner while an instance joins or leaves.
// In that time Kafka reports no assignments.
func TestOwnersDuringARebalance(t *testing.T) {
	broker := devtest.Fake(t, devstack.FakeOptions{})
	s := clitest.StageOn(t, broker.Addrs())
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	var owner string
	if err := s.Pool.QueryRow(t.Context(), "SELECT owner FROM projector_position").Scan(&owner); err != nil {
		t.Fatal(err)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("position"), "owner"), "null")
	answer := func(state string, code int16) {
		broker.Cluster.ControlKey(kmsg.DescribeGroups.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
			response := request.ResponseKind().(*kmsg.DescribeGroupsResponse)
			for _, name := range request.(*kmsg.DescribeGroupsRequest).Groups {
				group := kmsg.NewDescribeGroupsResponseGroup()
				group.Group, group.State, group.ProtocolType, group.ErrorCode = name, state, "consumer", code
				group.Members = append(group.Members, kmsg.NewDescribeGroupsResponseGroupMember())
				response.Groups = append(response.Groups, group)
			}
			return response, nil, true
		})
	}
	for _, state := range []string{"PreparingRebalance", "CompletingRebalance"} {
		answer(state, 0)
		status, out, said := s.Command("position", "--output=json")
		clitest.Equal(t, fmt.Sprint(status, " ", said), "0 group account-balance-projector is in a rebalance: the owners shown are those before it\n")
		clitest.Contains(t, out, `"owner":"`+owner+`"`)
	}
	clitest.Contains(t, s.Must("position"), "no instance owns: 0")
	answer("", kerr.GroupAuthorizationFailed.Code)
	status, out, said := s.Command("position")
	clitest.Contains(t, said, "who owns the partitions is not known: missing ACL: DESCRIBE on group")
	if status != 0 || strings.Contains(out, "no instance owns") {
		t.Errorf("status %d, with owners that are not known:\n%s", status, out)
	}
}

func TestRunOnAnotherTopicIsRefused(t *testing.T) {
	s := clitest.NewStage(t)
	s.Consuming(func() { s.Await("SELECT count(*) = 1 FROM projector_position") }) // a topic without records
	s.Topic = devtest.Topic(t, s.Addrs, 1)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	first := s.Topic
	s.Topic = devtest.Topic(t, s.Addrs, 1)
	clitest.Contains(t, refusedRun(s, "--group=another"), "the rows of account_balance came from topic "+first, "--another-topic")
	s.Await("SELECT count(*) = 2 FROM projector_position")
	s.Produce(clitest.EventOf("other", 1, `"1"`))
	t.Setenv("PROJECTOR_ANOTHER_TOPIC", "true")
	s.Consuming(nil)
	s.Await("SELECT count(*) = 2 FROM account_balance")
	t.Setenv("PROJECTOR_ANOTHER_TOPIC", "")
	s.Consuming(nil) // the group exists again
}

func TestLagIsWatchedUntilNothingIsLeft(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`), clitest.EventOf("acc", 2, `"1"`))
	for _, test := range []struct {
		flags []string
		want  int
	}{
		{[]string{"--watch"}, 0},
		{[]string{"--watch", "--until-zero"}, exit.Failed}, // records are left: what follows && in a script must not run
	} {
		ctx, stop := context.WithCancel(t.Context())
		out := &stopAfter{lines: 3, stop: stop}
		args := s.Servers(append([]string{"lag", "--interval=10ms", "--output=json"}, test.flags...))
		if status := clitest.Execute(ctx, args, out, &bytes.Buffer{}); out.seen < 3 || status != test.want {
			t.Errorf("%v: ended with records left, after %d looks, with %d, want %d", test.flags, out.seen, status, test.want)
		}
		stop()
	}
	s.Consuming(nil)
	clitest.Equal(t, clitest.Pick(lag(s, "--watch", "--until-zero", "--interval=10ms"), lagFields...), "0 2 2 0")
	clitest.Equal(t, clitest.Pick(lag(s, "--until-zero"), lagFields...), "0 2 2 0")
}

// TestALogThatLostItsEndIsNotRead shows that `lag --until-zero` does not end at a partition whose log
// has lost its end. The log may have unread records below the position.
func TestALogThatLostItsEndIsNotRead(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc", 1, `"1"`), clitest.EventOf("acc", 2, `"1"`))
	s.Consuming(nil)
	for _, test := range []struct{ change, want string }{
		{"next_offset = 5", "0 5 2 null stopped"},                                           // no instance has noticed it yet
		{"next_offset = 2, stopped_reason = 'the log has lost its end'", "0 2 2 0 stopped"}, // records were appended since
	} {
		s.Exec("UPDATE projector_position SET " + test.change)
		clitest.Equal(t, clitest.Pick(lag(s), append(lagFields, "state")...), test.want)
		_, _, said := s.Command("lag")
		clitest.Contains(t, said, "the log has lost its end")
		ctx, stop := context.WithCancel(t.Context())
		out := &stopAfter{lines: 3, stop: stop}
		args := s.Servers([]string{"lag", "--until-zero", "--interval=10ms", "--output=json"})
		if clitest.Execute(ctx, args, out, &bytes.Buffer{}); out.seen < 3 {
			t.Errorf("%s: ended after %d looks", test.change, out.seen)
		}
		stop()
	}
}
