package rebuild_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// The function checked returns the JSON of `rebuild --check` and its exit status.
func checked(s *clitest.Stage, args ...string) (status int, document map[string]any) {
	s.T.Helper()
	status, out, errOut := s.Command(append([]string{"rebuild", "--check", "--output=json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &document); err != nil {
		s.T.Fatalf("%v: %s%s", err, out, errOut)
	}
	clitest.Equal(s.T, clitest.Keys(s.T, out), "topic complete reasons partitions")
	return status, document
}

func TestRebuildCheckLooksOnly(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	status, d := checked(s)
	if status != exit.Failed || d["complete"] != false {
		t.Errorf("with nothing projected: status %d, %v", status, d)
	}
	clitest.Contains(t, fmt.Sprint(d["reasons"]), "no position")

	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"1"`), clitest.EventOf("b", 1, `"1"`))
	s.Consuming(nil)
	s.Exec(`UPDATE account_balance SET balance = 9`)
	before := projected(s)
	status, d = checked(s)
	clitest.Equal(t, fmt.Sprint(status, " ", d["topic"], " ", d["complete"], " ", d["reasons"], " ", d["partitions"]),
		fmt.Sprintf("0 %s true [] [map[cleanup_policy:delete end:3 log_start:0 partition:0]]", s.Topic))
	text := s.Must("rebuild", "--check")
	clitest.Contains(t, text, "PARTITION", "delete", "can be rebuilt from topic "+s.Topic)

	if _, err := kadm.NewClient(s.Client).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "cleanup.policy", Value: new("compact,delete")},
	}, s.Topic); err != nil {
		t.Fatal(err)
	}
	s.DeleteRecords(2)
	s.Exec(`INSERT INTO projector_source SELECT projection, topic, 'old' FROM projector_source`)
	status, d = checked(s)
	reasons := strings.Join(strings.Split(fmt.Sprint(d["reasons"]), "\n"), " ")
	if status != exit.Failed || d["complete"] != false || len(d["reasons"].([]any)) != 3 {
		t.Errorf("status %d, %v", status, d)
	}
	clitest.Contains(t, reasons, "begins at offset 2", "compacted", "projector_source")
	clitest.Contains(t, fmt.Sprint(d["partitions"]), "cleanup_policy:compact,delete", "log_start:2", "end:3")
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--check"), "begins at offset 2", "3 reasons")
	clitest.Equal(t, projected(s), before)

	for _, flag := range []string{"--yes", "--partial", "--remove"} {
		clitest.Contains(t, s.Refused(exit.Usage, "rebuild", "--check", flag), "--check", flag)
	}
}

func TestRebuildCheckOfATopicThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Topic += "-missing"
	status, d := checked(s)
	if status != exit.Failed || d["complete"] != false || fmt.Sprint(d["partitions"]) != "[]" {
		t.Errorf("status %d, %v", status, d)
	}
	clitest.Contains(t, fmt.Sprint(d["reasons"]), "does not exist")
}

// TestRebuildByExitStatus shows that the exit status of --exit-code says whether there is a
// difference.
func TestRebuildByExitStatus(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Must("rebuild", "--exit-code")
	s.Exec(`UPDATE account_balance SET balance = 2; INSERT INTO account_balance (account_id, balance, version) VALUES ('z', 0, 1)`)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--exit-code"), "balances differ")
	s.Must("rebuild")
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--exit-code", "--yes", "--reason=by hand"), "balances differ")
	s.Must("rebuild", "--exit-code", "--yes", "--remove", "--reason=by hand")
	clitest.Equal(t, clitest.Pick(s.Lines("audit", "--action=rebuild"), "account_id", "reason"), "a by hand; different, z by hand; unknown")
}
