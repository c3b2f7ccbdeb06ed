package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// recreate deletes the topic and creates it again, without its records, and does what
// the runbook says then: the group begins at the first record of the new one.
func (s *stage) recreate() {
	s.t.Helper()
	admin := kadm.NewClient(s.client)
	if _, err := admin.DeleteTopic(s.t.Context(), s.topic); err != nil {
		s.t.Fatal(err)
	}
	if _, err := admin.DeleteGroups(s.t.Context(), "account-balance-projector"); err != nil {
		s.t.Fatal(err)
	}
	s.exec("DELETE FROM projector_position")
	if _, err := admin.CreateTopic(s.t.Context(), 1, -1, nil, s.topic); err != nil {
		s.t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.addrs...)) // the other one knows the old topic
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	s.client, s.produced = client, 0
}

// After "topic recreated" the topic does not have the history of most accounts. That is
// no reason to remove them.
func TestRebuildRefusesATopicThatTheRowsDidNotComeFrom(t *testing.T) {
	s := newStage(t)
	for n := range 8 {
		s.produce(eventOf(fmt.Sprintf("acc-%d", n), 1, `"1"`))
	}
	s.consuming(nil)
	s.recreate()
	for n := range 4 {
		s.produce(eventOf(fmt.Sprintf("acc-%d", n), 1, `"1"`))
	}
	s.consuming(nil)
	right := s.projected()

	const remedy = "DELETE FROM projector_source"
	contains(t, s.refused(exitFailed, "rebuild", "--yes"), "another topic of this name", remedy)
	contains(t, s.refused(exitFailed, "rebuild", "--yes", "--remove"), remedy)
	equal(t, s.projected(), right)
	s.exec("DELETE FROM projector_position") // the next start finds nothing
	s.consuming(nil)
	contains(t, s.refused(exitFailed, "rebuild", "--yes"), remedy)

	// Somebody knows better.
	s.exec(`DELETE FROM projector_source s USING projector_position p WHERE s.topic = p.topic AND s.topic_id <> p.topic_id`)
	d := s.rebuildJSON("--yes")
	equal(t, kindsOf(d), "acc-4 unknown 1 null, acc-5 unknown 1 null, acc-6 unknown 1 null, acc-7 unknown 1 null")
	equal(t, pick([]map[string]any{d}, "different", "changed", "replaced", "removed"), "4 0 0 0")
	equal(t, s.projected(), right)
}

// Rows that came from a topic of another name stay known, too.
func TestRebuildRemembersOtherTopics(t *testing.T) {
	s := newStage(t)
	s.produce(eventOf("a", 1, `"1"`))
	s.consuming(nil)
	s.exec(`INSERT INTO projector_source SELECT projection, 'elsewhere', 'id' FROM projector_source`)
	contains(t, s.refused(exitFailed, "rebuild", "--yes"), "topic elsewhere", "projector_source")
	s.must("rebuild", "--partial")
	s.exec(`UPDATE projector_source SET projection = 'daily_turnover' WHERE topic = 'elsewhere'`)
	s.clean()
}

// Accounts the topic has no event of are removed only when that is asked for.
func TestRebuildRemovesNothingUnasked(t *testing.T) {
	s := newStage(t)
	s.produce(eventOf("a", 1, `"1"`), eventOf("b", 1, `"1"`), eventOf("c", 1, `"1"`))
	s.consuming(nil)
	right := s.projected()
	s.exec(`UPDATE account_balance SET balance = 9 WHERE account_id = 'a'`)
	s.exec(`DELETE FROM account_balance WHERE account_id = 'b'`)
	s.exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('x', 'EUR', 1, 1), ('y', 'EUR', 1, 1)`)

	plan := s.must("rebuild")
	contains(t, plan, "would replace 2 accounts", "2 accounts the topic has no event of", "--remove")
	counts := []string{"different", "changed", "replaced", "removed", "result"}
	d := s.rebuildJSON()
	equal(t, pick([]map[string]any{d}, counts...), "4 0 0 0 null")
	equal(t, fmt.Sprint(d["kinds"]), "map[ahead:0 corrected:0 different:1 hold:0 missing:1 moved:0 unknown:2]")

	d = s.rebuildJSON("--yes")
	equal(t, kindsOf(d), "a different 1 1, b missing null 1, x unknown 1 null, y unknown 1 null")
	equal(t, pick([]map[string]any{d}, counts...), "4 2 2 0 rebuilt")
	equal(t, s.projected(), right+"\n(x,EUR,1,1,open,,)\n(y,EUR,1,1,open,,)")
	contains(t, s.must("rebuild", "--yes"), "0 accounts were replaced and 0 removed", "2 accounts the topic has no event of", "--remove")

	contains(t, s.must("rebuild", "--remove"), "would replace 0 accounts and remove 2")
	t.Setenv("PROJECTOR_REMOVE", "true")
	equal(t, pick([]map[string]any{s.rebuildJSON("--yes")}, counts...), "2 2 0 2 rebuilt")
	equal(t, s.projected(), right)
	contains(t, s.refused(exitUsage, "rebuild", "--partial"), "--remove", "--partial")
}

// More differences than expected are a reason to look, not to go on.
func TestRebuildChangesNoMoreThanItIsAllowed(t *testing.T) {
	s := newStage(t)
	for n := range 6 {
		s.produce(eventOf(fmt.Sprintf("acc-%d", n), 1, `"1"`))
	}
	s.consuming(nil)
	right := s.projected()
	s.exec(`UPDATE account_balance SET balance = 9 WHERE account_id < 'acc-3'`)
	s.exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('x', 'EUR', 1, 1)`)
	wrong := s.projected()

	status, out, errOut := s.command("rebuild", "--yes", "--max-differences=2", "--output=json")
	if status != exitFailed || !strings.Contains(out, `"different":4`) || !strings.Contains(out, `"changed":0`) || !strings.Contains(out, `"result":null`) {
		t.Errorf("status %d, %s", status, out)
	}
	contains(t, errOut, "3 accounts would change", "--max-differences", "nothing was changed")
	equal(t, s.projected(), wrong)
	contains(t, s.refused(exitFailed, "rebuild", "--yes", "--remove", "--max-differences=3"), "4 accounts would change")
	equal(t, s.projected(), wrong)
	s.must("rebuild", "--max-differences=0") // a plan is a plan
	t.Setenv("PROJECTOR_MAX_DIFFERENCES", "3")
	equal(t, pick([]map[string]any{s.rebuildJSON("--yes")}, "replaced", "removed"), "3 0")
	s.rebuildJSON("--yes", "--remove")
	equal(t, s.projected(), right)
	contains(t, s.refused(exitUsage, "rebuild", "--max-differences=-1"), "--max-differences")
}
