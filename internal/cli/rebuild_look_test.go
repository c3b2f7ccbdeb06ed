package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// checked is what `rebuild --check` says in JSON, and its exit status.
func (s *stage) checked(args ...string) (status int, document map[string]any) {
	s.t.Helper()
	status, out, errOut := s.command(append([]string{"rebuild", "--check", "--output=json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &document); err != nil {
		s.t.Fatalf("%v: %s%s", err, out, errOut)
	}
	equal(s.t, keys(s.t, out), "topic complete reasons partitions")
	return status, document
}

func TestRebuildCheckLooksOnly(t *testing.T) {
	s := newStage(t)
	status, d := s.checked()
	if status != exitFailed || d["complete"] != false {
		t.Errorf("with nothing projected: status %d, %v", status, d)
	}
	contains(t, fmt.Sprint(d["reasons"]), "no position")

	s.produce(eventOf("a", 1, `"1"`), eventOf("a", 2, `"1"`), eventOf("b", 1, `"1"`))
	s.consuming(nil)
	s.exec(`UPDATE account_balance SET balance = 9`)
	before := s.projected()
	status, d = s.checked()
	equal(t, fmt.Sprint(status, " ", d["topic"], " ", d["complete"], " ", d["reasons"], " ", d["partitions"]),
		fmt.Sprintf("0 %s true [] [map[cleanup_policy:delete end:3 log_start:0 partition:0]]", s.topic))
	text := s.must("rebuild", "--check")
	contains(t, text, "PARTITION", "delete", "can be rebuilt from topic "+s.topic)

	if _, err := kadm.NewClient(s.client).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "cleanup.policy", Value: new("compact,delete")},
	}, s.topic); err != nil {
		t.Fatal(err)
	}
	s.deleteRecords(2)
	s.exec(`INSERT INTO projector_source SELECT projection, topic, 'old' FROM projector_source`)
	status, d = s.checked()
	reasons := strings.Join(strings.Split(fmt.Sprint(d["reasons"]), "\n"), " ")
	if status != exitFailed || d["complete"] != false || len(d["reasons"].([]any)) != 3 {
		t.Errorf("status %d, %v", status, d)
	}
	contains(t, reasons, "begins at offset 2", "compacted", "projector_source")
	contains(t, fmt.Sprint(d["partitions"]), "cleanup_policy:compact,delete", "log_start:2", "end:3")
	contains(t, s.refused(exitFailed, "rebuild", "--check"), "begins at offset 2", "3 reasons")
	equal(t, s.projected(), before)

	for _, flag := range []string{"--yes", "--partial", "--remove"} {
		contains(t, s.refused(exitUsage, "rebuild", "--check", flag), "--check", flag)
	}
}

func TestRebuildCheckOfATopicThatIsNotThere(t *testing.T) {
	s := newStage(t)
	s.topic += "-missing"
	status, d := s.checked()
	if status != exitFailed || d["complete"] != false || fmt.Sprint(d["partitions"]) != "[]" {
		t.Errorf("status %d, %v", status, d)
	}
	contains(t, fmt.Sprint(d["reasons"]), "does not exist")
}
