package rebuild_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/devstack/devtest"
)

// recreate deletes the topic and creates it again without records. It then follows the runbook, so
// the group begins at the first record of the new topic.
func recreate(s *clitest.Stage) {
	s.T.Helper()
	admin := kadm.NewClient(s.Client)
	if _, err := admin.DeleteTopic(s.T.Context(), s.Topic); err != nil {
		s.T.Fatal(err)
	}
	if _, err := admin.DeleteGroups(s.T.Context(), "account-balance-projector"); err != nil {
		s.T.Fatal(err)
	}
	s.Exec("DELETE FROM projector_position")
	if _, err := admin.CreateTopic(s.T.Context(), 1, -1, nil, s.Topic); err != nil {
		s.T.Fatal(err)
	}
	s.Client, s.Produced = devtest.Client(s.T, s.Addrs), 0 // the other client has the id of the old topic
}

// A topic that was recreated lacks earlier events, here all events of four accounts. A rebuild must
// not remove these accounts.
func TestRebuildRefusesATopicThatTheRowsDidNotComeFrom(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	for n := range 8 {
		s.Produce(clitest.EventOf(fmt.Sprintf("acc-%d", n), 1, `"1"`))
	}
	s.Consuming(nil)
	recreate(s)
	for n := range 4 {
		s.Produce(clitest.EventOf(fmt.Sprintf("acc-%d", n), 1, `"1"`))
	}
	s.Consuming(nil)
	right := projected(s)

	const remedy = "topic recreated"
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "another topic of this name", remedy)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes", "--remove"), remedy)
	clitest.Equal(t, projected(s), right)
	s.Exec("DELETE FROM projector_position") // the next start finds no position
	s.Consuming(nil)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), remedy)

	// A person deletes the entry of the old topic by SQL. This declares that all rows come from the
	// present topic.
	s.Exec(`DELETE FROM projector_source s USING projector_position p WHERE s.topic = p.topic AND s.topic_id <> p.topic_id`)
	d := rebuildJSON(s, "--yes")
	clitest.Equal(t, kindsOf(d), "acc-4 unknown 1 null, acc-5 unknown 1 null, acc-6 unknown 1 null, acc-7 unknown 1 null")
	clitest.Equal(t, clitest.Pick([]map[string]any{d}, "different", "changed", "replaced", "removed"), "4 0 0 0")
	clitest.Equal(t, projected(s), right)
}

// A rebuild is also refused if rows came from a topic with another name.
func TestRebuildRemembersOtherTopics(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Exec(`INSERT INTO projector_source SELECT projection, 'elsewhere', 'id' FROM projector_source`)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "topic elsewhere", "projector_source")
	s.Must("rebuild", "--partial")
	s.Exec(`UPDATE projector_source SET projection = 'daily_turnover' WHERE topic = 'elsewhere'`)
	clean(s)
}

// Accounts without an event in the topic are removed only with --remove.
func TestRebuildRemovesNothingUnasked(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("b", 1, `"1"`), clitest.EventOf("c", 1, `"1"`))
	s.Consuming(nil)
	right := projected(s)
	s.Exec(`UPDATE account_balance SET balance = 9 WHERE account_id = 'a'`)
	s.Exec(`DELETE FROM account_balance WHERE account_id = 'b'`)
	s.Exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('x', 'EUR', 1, 1), ('y', 'EUR', 1, 1)`)

	plan := s.Must("rebuild")
	clitest.Contains(t, plan, "would insert or replace 2 accounts", "2 accounts the topic has no event of", "--remove")
	counts := []string{"different", "changed", "replaced", "removed", "result"}
	d := rebuildJSON(s)
	clitest.Equal(t, clitest.Pick([]map[string]any{d}, counts...), "4 0 0 0 null")
	clitest.Equal(t, fmt.Sprint(d["kinds"]), "map[ahead:0 corrected:0 different:1 hold:0 missing:1 moved:0 unknown:2]")

	d = rebuildJSON(s, "--yes")
	clitest.Equal(t, kindsOf(d), "a different 1 1, b missing null 1, x unknown 1 null, y unknown 1 null")
	clitest.Equal(t, clitest.Pick([]map[string]any{d}, counts...), "4 2 2 0 rebuilt")
	clitest.Equal(t, projected(s), right+"\n(x,EUR,1,1,open,,)\n(y,EUR,1,1,open,,)")
	clitest.Contains(t, s.Must("rebuild", "--yes"), "0 accounts inserted or replaced, 0 removed", "2 accounts the topic has no event of", "--remove")

	clitest.Contains(t, s.Must("rebuild", "--remove"), "would insert or replace 0 accounts and remove 2")
	t.Setenv("PROJECTOR_REMOVE", "true")
	clitest.Equal(t, clitest.Pick([]map[string]any{rebuildJSON(s, "--yes")}, counts...), "2 2 0 2 rebuilt")
	clitest.Equal(t, projected(s), right)
	clitest.Contains(t, s.Refused(exit.Usage, "rebuild", "--partial"), "--remove", "--partial")
}

// A plan says if --yes would be refused. Here the rows were made with another first version, and the
// topic has no event of one of them.
func TestThePlanOfARebuildSaysThatItWouldBeRefused(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('x', 'EUR', 1, 1)`)
	why := []string{"the rows of account_balance were made with", "the topic has no event of 1 of them", "--remove"}
	status, _, said := s.Command("rebuild", "--first-version=0")
	if status != exit.OK {
		t.Errorf("status %d", status)
	}
	clitest.Contains(t, said, append(why, "with --yes this is refused: ")...)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--first-version=0", "--yes"), why...)
}

// If there are more differences than --max-differences allows, the rebuild changes nothing.
func TestRebuildChangesNoMoreThanItIsAllowed(t *testing.T) {
	s := clitest.NewStage(t)
	for n := range 6 {
		s.Produce(clitest.EventOf(fmt.Sprintf("acc-%d", n), 1, `"1"`))
	}
	s.Consuming(nil)
	right := projected(s)
	s.Exec(`UPDATE account_balance SET balance = 9 WHERE account_id < 'acc-3'`)
	s.Exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('x', 'EUR', 1, 1)`)
	wrong := projected(s)

	status, out, errOut := s.Command("rebuild", "--yes", "--max-differences=2", "--output=json")
	if status != exit.Failed || !strings.Contains(out, `"different":4`) || !strings.Contains(out, `"changed":0`) || !strings.Contains(out, `"result":null`) {
		t.Errorf("status %d, %s", status, out)
	}
	clitest.Contains(t, errOut, "3 accounts would change", "--max-differences", "nothing was changed")
	clitest.Equal(t, projected(s), wrong)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes", "--remove", "--max-differences=3"), "4 accounts would change")
	clitest.Equal(t, projected(s), wrong)
	s.Must("rebuild", "--max-differences=0") // without --yes it is only a plan
	t.Setenv("PROJECTOR_MAX_DIFFERENCES", "3")
	// One more row becomes wrong after the comparison, while the positions are locked.
	s.Exec(`CREATE FUNCTION damage() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE account_balance SET balance = 9 WHERE account_id = 'acc-4'; RETURN NULL; END $$`)
	s.Exec("CREATE TRIGGER damage AFTER UPDATE ON projector_position EXECUTE FUNCTION damage()")
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "4 accounts would change")
	clitest.Equal(t, projected(s), wrong)
	s.Exec("DROP TRIGGER damage ON projector_position")
	clitest.Equal(t, clitest.Pick([]map[string]any{rebuildJSON(s, "--yes")}, "replaced", "removed"), "3 0")
	rebuildJSON(s, "--yes", "--remove")
	clitest.Equal(t, projected(s), right)
	clitest.Contains(t, s.Refused(exit.Usage, "rebuild", "--max-differences=-1"), "--max-differences")
}
