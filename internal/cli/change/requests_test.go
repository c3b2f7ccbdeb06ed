package change_test

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/readmodel/balance"
	"projector/readmodel/rebuild"
	"projector/readmodel/turnover"
)

const requestKeys = "id at action requested_by reason records state decided_by topic dlq_topic"

// The function underFourEyes returns a stage with several dead letters, on which changes need approval,
// and the stage of a login that may approve them.
func underFourEyes(t *testing.T) (s, other *clitest.Stage) {
	t.Helper()
	s = clitest.NewStage(t)
	s.SeveralDeadLetters()
	other = colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	return s, other
}

// The function colleague returns a copy of the stage s that uses another login. This login is a
// superuser. Package e2e tests the rights of the roles.
func colleague(t *testing.T, s *clitest.Stage) *clitest.Stage {
	t.Helper()
	name := "eyes_" + s.Topic[strings.LastIndexAny(s.Topic, "-_.")+1:]
	s.Exec(fmt.Sprintf("CREATE ROLE %q LOGIN SUPERUSER PASSWORD 'other'", name))
	t.Cleanup(func() {
		if _, err := s.Pool.Exec(t.Context(), fmt.Sprintf("DROP ROLE IF EXISTS %q", name)); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "other")
	other := *s
	other.URL = u.String()
	return &other
}

// The function requested runs a command and returns the number of the request that it stored.
func requested(t *testing.T, s *clitest.Stage, args ...string) string {
	t.Helper()
	id := strings.TrimSpace(s.Must(append(args, "--yes")...))
	if strings.Trim(id, "0123456789") != "" || id == "" {
		t.Fatalf("%v printed %q, want the number of a request alone", args, id)
	}
	return id
}

func TestFourEyes(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	other := colleague(t, s)
	clitest.Contains(t, s.Must("migrate", "--four-eyes=on"), "four eyes are on")

	skip := []string{"account", "skip", "acc-a", "--version=2", "--reason=lost, INC-1", "--actor=ann"}
	clitest.Contains(t, s.Must(skip...), "nothing was changed, add --yes")
	id := requested(t, s, skip...)
	clitest.Contains(t, s.Must("account", "show", "acc-a", "--output=json"), `"version":1,`)
	listed := s.Lines("requests", "--state=open")
	clitest.Equal(t, clitest.Pick(listed, "id", "action", "reason", "records", "state", "decided_by"), id+" skip lost, INC-1 1 open null")
	clitest.Equal(t, clitest.Keys(t, s.Must("requests", "--output=json")), requestKeys)
	clitest.Contains(t, s.Must("requests", "show", id), "account skip --version=2", "--actor=ann", "would skip version 2",
		"nothing was changed, another login does it by projector approve "+id+"\n")

	clitest.Contains(t, s.Refused(exit.Failed, "approve", id, "--reason=mine"), "request "+id+" was made by ", "another login has to approve it")
	// The database also refuses a login that approves its own request, because a program other than
	// projector might not refuse it.
	if _, err := s.Pool.Exec(t.Context(), "UPDATE repair_request SET state = 'approved', decision_reason = 'mine' WHERE id = $1", id); err == nil ||
		!strings.Contains(err.Error(), "another login has to approve it") {
		t.Errorf("a login approves its own request in the database: %v", err)
	}
	s.Refused(exit.Usage, "approve", id)
	clitest.Contains(t, other.Must("approve", id, "--reason=checked"), "skipped version 2", "approved")
	clitest.Contains(t, s.Must("account", "show", "acc-a", "--output=json"), `"version":4,`)
	trail := s.Lines("audit", "--action=skip")
	clitest.Equal(t, clitest.Pick(trail, "actor", "reason"), "ann lost, INC-1")
	if by := trail[0]["approved_by"]; by == nil || by != trail[0]["db_user"] || by == listed[0]["requested_by"] {
		t.Errorf("approved by %v", by)
	}
	clitest.Equal(t, clitest.Pick(trail, "request_id", "requested_by"), id+" "+fmt.Sprint(listed[0]["requested_by"]))
	s.Await("SELECT approval_reason = 'checked' FROM dlq_action WHERE action = 'skip'")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", id, "--reason=twice"), "is approved already")

	id = requested(t, s, "dlq", "discard", "--class=malformed_payload", "--reason=rubbish")
	clitest.Equal(t, clitest.Keys(t, other.Must("reject", id, "--reason=no", "--output=json")), requestKeys)
	clitest.Equal(t, clitest.Pick(s.Lines("requests", "--state=rejected"), "id", "action"), id+" discard")
	if shown := s.Must("requests", "show", id, "--brokers="+strings.Join(s.Addrs, ",")); !strings.HasSuffix(shown, "would discard 2 dead letters of 1 account; nothing was changed\n") {
		t.Errorf("a rejected request: %s", shown)
	}
	clitest.Contains(t, other.Refused(exit.Failed, "approve", "77", "--reason=x"), "no request 77")

	// The request does not store the flags of the outbox, so the approver must give them.
	s.Exec("CREATE TABLE outbox AS SELECT 'acc-a' AS key, $1::text AS value, 5::bigint AS version", clitest.EventOf("acc-a", 5, `"16"`))
	server := []string{"--outbox-url=" + s.URL, "--outbox-query=SELECT key, value FROM outbox WHERE key = ANY ($1) AND version = ANY ($2)"}
	id = requested(t, s, append([]string{"gaps", "fetch", "--account=acc-a"}, server...)...)
	s.Await("SELECT NOT array_to_string(arguments, ' ') LIKE '%outbox%' FROM repair_request WHERE id = $1", id)
	clitest.Contains(t, s.Must("account", "show", "acc-a", "--output=json"), `"waiting_for_version":5`)
	clitest.Contains(t, other.Refused(exit.Usage, "approve", id, "--reason=compared"), "--outbox-url (OUTBOX_URL): say where")
	clitest.Equal(t, clitest.Pick(s.Lines("requests", "--state=open"), "id"), id)
	clitest.Contains(t, other.Must(append([]string{"requests", "show", id}, server...)...), "BALANCE AFTER", "22.25           38.25")
	plan := other.Lines(append([]string{"requests", "show", id}, server...)...)[0]["plan"].([]any)[0].(map[string]any)
	clitest.Equal(t, clitest.Pick([]map[string]any{plan}, "version", "plan", "old_amount", "new_amount", "currency", "balance_before", "balance_after"),
		"5 will_apply null 16 EUR 22.25 38.25")
	clitest.Contains(t, other.Must(append([]string{"approve", id, "--reason=compared"}, server...)...), "1 applied", "approved")
	clitest.Equal(t, clitest.Pick(s.Lines("audit", "--action=fetch"), "version", "result"), "5 applied")

	s.Must("migrate", "--four-eyes=off")
	clitest.Contains(t, s.Must("dlq", "discard", "--class=malformed_payload", "--reason=rubbish", "--yes"), "discarded")
	clitest.Equal(t, clitest.Pick(s.Lines("audit", "--action=four_eyes"), "result"), "on, off")
}

// TestChangedPlansAreRefused shows that nothing is done if the plan has changed since the request.
func TestChangedPlansAreRefused(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc-c", 1, `"1"`))
	s.SeveralDeadLetters()
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	s.Exec("UPDATE account_balance SET balance = balance + 1 WHERE account_id = 'acc-a'")
	again := requested(t, s, "rebuild", "--limit=0") // one account would be replaced, and it is not listed
	few := requested(t, s, "rebuild", "--max-differences=1")
	s.Exec("UPDATE account_balance SET balance = balance + 1 WHERE account_id = 'acc-c'")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", few, "--reason=x"), "2 accounts would change", "request "+few+" is refused, for it cannot be planned any more")
	s.Exec("UPDATE account_balance SET balance = balance - 1 WHERE account_id = 'acc-a'")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", again, "--reason=x"), "request "+again+" is refused, for the plan has changed since", "nothing was changed")
	s.Exec("UPDATE account_balance SET balance = balance - 1 WHERE account_id = 'acc-c'")
	skip := requested(t, s, "account", "skip", "acc-a", "--version=2", "--reason=lost")
	replay := requested(t, s, "dlq", "replay", "--account=acc-a")
	discard := requested(t, s, "dlq", "discard", "--since=24h", "--reason=all of them")
	s.Produce(clitest.EventOf("acc-a", 2, `"1"`), `secret too`)
	s.Consuming(nil)
	for id, why := range map[string]string{skip: "it cannot be planned any more", replay: "the plan has changed since", discard: "the plan has changed since"} {
		clitest.Contains(t, other.Refused(exit.Failed, "approve", id, "--reason=x"), "request "+id+" is refused, for "+why, "nothing was changed")
	}
	clitest.Equal(t, clitest.Pick(s.Lines("requests"), "action", "state"), "rebuild refused, rebuild refused, skip refused, replay refused, discard refused")
	clitest.Equal(t, clitest.Pick(s.Lines("audit"), "action"), "four_eyes")
}

// TestAPassingRefusalLeavesTheRequestOpen approves while another rebuild is running, and while an
// instance reads the group's topic. Both end by themselves, so the request can be approved later.
func TestAPassingRefusalLeavesTheRequestOpen(t *testing.T) {
	s, other := underFourEyes(t)
	s.Exec("UPDATE account_balance SET balance = balance + 1 WHERE account_id = 'acc-a'")
	again := requested(t, s, "rebuild")
	shadow, err := rebuild.OpenShadow(t.Context(), s.Pool, balance.Definition{}, 100, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, other.Refused(exit.Failed, "approve", again, "--reason=x"), "another rebuild of this database is under way; wait until it has ended")
	clitest.Equal(t, clitest.Pick(s.Lines("requests", "--state=open"), "id"), again)
	if err := shadow.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.Must("approve", again, "--reason=x")

	remove := requested(t, s, "position", "remove", "--group=account-balance-projector", "--reason=renamed")
	s.Produce(clitest.EventOf("acc-z", 1, `"1"`)) // applied when the instance reads the topic
	s.Consuming(func() {
		clitest.Contains(t, other.Refused(exit.Failed, "approve", remove, "--reason=x"), "stop all of its instances first")
	})
	clitest.Equal(t, clitest.Pick(s.Lines("requests", "--state=open"), "id"), remove)
}

// TestApprovePrintsOneDocument shows that the JSON of approve contains the results, and that they are
// not printed as text.
func TestApprovePrintsOneDocument(t *testing.T) {
	s, other := underFourEyes(t)
	id := requested(t, s, "account", "skip", "acc-a", "--version=2", "--reason=lost")
	status, out, errOut := other.Command("approve", id, "--reason=x", "--output=json")
	if status != exit.OK || errOut != "" {
		t.Fatalf("status %d, and on the standard error: %q", status, errOut)
	}
	clitest.Equal(t, clitest.Keys(t, out), requestKeys+" results")
	clitest.Contains(t, out, `"state":"approved"`, `"results":[{"account_id":"acc-a","version":2,`)
}

// TestAnApproverWithOtherBrokers approves with brokers that do not have the topics of the request. The
// request stays open, because only the approver's flags are wrong.
func TestAnApproverWithOtherBrokers(t *testing.T) {
	s, other := underFourEyes(t)
	elsewhere, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(elsewhere.Close)
	for _, args := range [][]string{
		{"pause", "--all", "--reason=x"},
		{"dlq", "replay", "--account=acc-a", "--to-topic=" + s.Topic, "--reason=x"},
	} {
		id := requested(t, s, args...)
		wrong := *other
		wrong.Addrs = elsewhere.ListenAddrs()
		clitest.Contains(t, wrong.Refused(exit.Failed, "approve", id, "--reason=checked"), "does not exist on these brokers")
		clitest.Equal(t, clitest.Pick(s.Lines("requests", "--state=open"), "id"), id)
		other.Must("approve", id, "--reason=checked")
	}
	s.Must("migrate", "--four-eyes=off")
}

// TestEveryChangeIsRequested shows for further commands that their changes can be requested and
// approved.
func TestEveryChangeIsRequested(t *testing.T) {
	s, other := underFourEyes(t)
	s.Exec("UPDATE account_balance SET balance = 1 WHERE account_id = 'acc-a'")
	for _, args := range [][]string{
		{"rebuild"},
		{"pause", "--partition=0", "--reason=x"},
		{"resume", "--all", "--through=1", "--reason=x"},
		{"position", "set", "--partition=0", "--start", "--reason=x"},
		{"dlq", "replay", "--account=acc-b", "--to-topic=" + s.Topic},
	} {
		before := clitest.Pick(s.Lines("position"), "position", "state")
		id := requested(t, s, args...)
		clitest.Equal(t, clitest.Pick(s.Lines("position"), "position", "state"), before)
		other.Must("approve", id, "--reason=checked")
		s.Await("SELECT approved_by IS NOT NULL FROM dlq_action ORDER BY id DESC LIMIT 1")
	}
	clitest.Equal(t, clitest.Pick(s.Lines("requests"), "action", "records", "state"),
		"rebuild 1 approved, pause 1 approved, resume 1 approved, position_set 1 approved, replay 2 approved")
}

// TestAPruningIsRequested shows that a pruning needs approval. The reason is that after a pruning
// with a short retention, a redelivered event could be counted twice. The audit trail records a
// pruning even if the four-eyes policy is off.
func TestAPruningIsRequested(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec("INSERT INTO inbox (message_id, handler, processed_at) SELECT n::text, 'daily_turnover', now() - interval '30 days' FROM generate_series(1, 3) AS n")
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	id := strings.TrimSpace(s.Must("inbox", "prune", "--retention=1h", "--reason=short of disk"))
	clitest.Contains(t, s.Must("requests", "show", id), "inbox prune --retention=1h0m0s", "daily_turnover: 3 markers are older than 1h0m0s and would be deleted")
	clitest.Equal(t, s.Text("SELECT count(*)::text FROM inbox"), "3")
	clitest.Contains(t, other.Must("approve", id, "--reason=agreed"), "deleted 3 markers", "approved")
	clitest.Equal(t, clitest.Pick(s.Lines("audit", "--action=prune"), "projection", "reason", "result"), "daily_turnover short of disk markers older than 1h0m0s")
	s.Await("SELECT approved_by IS NOT NULL FROM dlq_action WHERE action = 'prune'")
	s.Exec("INSERT INTO inbox (message_id, handler, processed_at) VALUES ('5', 'daily_turnover', now())")
	clitest.Equal(t, s.Must("inbox", "prune"), "deleted 0 markers\n") // without old markers there is no request and no row in the audit trail
	s.Must("migrate", "--four-eyes=off")
	s.Exec("INSERT INTO inbox (message_id, handler, processed_at) VALUES ('4', 'daily_turnover', now() - interval '30 days')")
	clitest.Equal(t, s.Must("inbox", "prune"), "deleted 1 markers\n")
	clitest.Equal(t, s.Must("inbox", "prune"), "deleted 0 markers\n")
	clitest.Equal(t, s.Text("SELECT count(*) || ' ' || (SELECT count(*) FROM inbox) FROM dlq_action WHERE action = 'prune'"), "2 1")
}

// TestApproveProposesForTheRequestedReader expects that a command in an error of a request has the
// flags of the requested change. Those of the commands that show and approve it choose other rows.
func TestApproveProposesForTheRequestedReader(t *testing.T) {
	s, other := underFourEyes(t)
	skip := requested(t, s, "account", "skip", "acc-a", "--version=2", "--reason=lost")
	replay := requested(t, s, "dlq", "replay", "--account=acc-a")
	s.Exec(`UPDATE projector_position SET mapping = replace(mapping, '"first_version":1', '"first_version":0')`)
	servers := []string{"--database-url=" + other.URL, "--brokers=" + strings.Join(s.Addrs, ","), "--topic=another", "--log-level=error"}
	for id, reader := range map[string]string{skip: " --projection=account_balance", replay: " --topic=" + s.Topic} {
		for _, command := range [][]string{{"requests", "show", id}, {"approve", id, "--reason=checked"}} {
			var out, errOut bytes.Buffer
			if status := clitest.Execute(t.Context(), append(command, servers...), &out, &errOut); status != exit.Failed {
				t.Errorf("%v: status %d\n%s", command, status, out.String())
			}
			clitest.Contains(t, errOut.String(), "projector rebuild"+reader+" --first-version=1 --yes")
		}
	}
	clitest.Equal(t, clitest.Pick(s.Lines("requests", "--state=open"), "id"), skip+", "+replay)
}

// TestRequestsAreWhatTheyAreListedAs copies a request by SQL with another action, number of
// records, actor or reason. The copy is refused.
func TestRequestsAreWhatTheyAreListedAs(t *testing.T) {
	s, other := underFourEyes(t)
	id := requested(t, s, "account", "skip", "acc-a", "--version=2", "--reason=lost", "--actor=ann")
	for _, lie := range []string{
		"'pause', records, actor, reason", "action, 0, actor, reason", "action, records, 'bob', reason", "action, records, actor, 'harmless'",
	} {
		var copied int
		if err := s.Pool.QueryRow(t.Context(), `INSERT INTO repair_request (action, records, actor, reason, arguments, file_flags, file_names, file_contents, plan_sha256)
			SELECT `+lie+`, arguments, file_flags, file_names, file_contents, plan_sha256 FROM repair_request WHERE id = $1 RETURNING id`, id).Scan(&copied); err != nil {
			t.Fatal(err)
		}
		clitest.Contains(t, other.Refused(exit.Failed, "approve", fmt.Sprint(copied), "--reason=x"), "made by hand", "nothing was changed")
		s.Await("SELECT state = 'refused' FROM repair_request WHERE id = $1", copied)
	}
	clitest.Contains(t, other.Must("approve", id, "--reason=checked"), "skipped version 2")
}

// TestApproversMayHaveAnotherTimeZone shows that the plan of a rebuild does not depend on settings of
// a login. The state of an account has a time.
func TestApproversMayHaveAnotherTimeZone(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	other := colleague(t, s)
	u, err := url.Parse(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(fmt.Sprintf("ALTER ROLE %q SET timezone = 'Asia/Tokyo'", u.User.Username()))
	s.Must("migrate", "--four-eyes=on")
	s.Exec("UPDATE account_balance SET balance = 1 WHERE account_id = 'acc-a'")
	clitest.Contains(t, other.Must("approve", requested(t, s, "rebuild"), "--reason=checked"), "1 account inserted or replaced")
}

// TestAnInterruptedApproval shows what people read about a request that was approved, but was not
// carried out, or only in part.
func TestAnInterruptedApproval(t *testing.T) {
	s, other := underFourEyes(t)
	skip := []string{"account", "skip", "acc-a", "--version=2", "--reason=lost"}
	killed := requested(t, s, skip...)
	approver, err := pgx.Connect(t.Context(), other.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = approver.Close(t.Context()) }()
	// This is the state if the program is killed between the decision and the change.
	if _, err := approver.Exec(t.Context(), "UPDATE repair_request SET state = 'approved', decision_reason = 'checked' WHERE id = $1", killed); err != nil {
		t.Fatal(err)
	}
	const undone = "the audit trail has no row of it: unless its approval is still running, request the change again"
	clitest.Contains(t, other.Refused(exit.Failed, "approve", killed, "--reason=again"), "is approved already, by eyes_", undone)
	clitest.Contains(t, s.Must("requests", "show", killed), "approved by eyes_", undone)

	s.Exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '0A000'; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON account_balance FOR EACH ROW EXECUTE FUNCTION refuse()`)
	failed := requested(t, s, skip...)
	clitest.Contains(t, other.Refused(exit.Failed, "approve", failed, "--reason=checked"), "0A000",
		"request "+failed+" stays approved, and cannot be approved again: `projector audit` shows what was done; if something is missing, request it again")
	s.Exec("DROP TRIGGER refuse ON account_balance")
	done := requested(t, s, skip...)
	if out := other.Must("approve", done, "--reason=checked"); strings.Contains(out, "stays approved") {
		t.Errorf("of a change that was carried out: %s", out)
	}
	const row = "the audit trail has 1 row of it; if its approval was interrupted, request the rest again"
	clitest.Contains(t, other.Refused(exit.Failed, "approve", done, "--reason=twice"), "is approved already, by eyes_", row)
	clitest.Equal(t, clitest.Pick(s.Lines("requests"), "state"), "approved, approved, approved")
}

// TestARebuildThatOnlyReplacesTheMapping requests a rebuild with another mapping, by which no row
// differs. This is a change, because instances with the other mapping are refused until then.
func TestARebuildThatOnlyReplacesTheMapping(t *testing.T) {
	s := clitest.NewStage(t)
	path := filepath.Join(t.TempDir(), "mapping.yaml")
	t.Setenv("EVENT_MAPPING", path)
	write := func(correlation string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("fields: {correlationId: "+correlation+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	write("two")
	clitest.Contains(t, other.Must("approve", requested(t, s, "rebuild"), "--reason=checked"), "the stored mapping was replaced")
	clitest.Equal(t, s.Text("SELECT (mapping LIKE '%two%')::text FROM projector_position"), "true")
	s.Consuming(nil)
}

// TestPruningDoesNotChangeTheRebuildOfASum requests the rebuild of a sum and prunes its inbox before the
// approval, as every running instance does each minute. The rebuild then adds more markers.
func TestPruningDoesNotChangeTheRebuildOfASum(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection(turnover.Name)
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"1"`), clitest.EventOf("a", 3, `"1"`))
	s.Consuming(nil)
	other := colleague(t, s)
	prune := func(id string) {
		s.Exec("UPDATE inbox SET processed_at = now() - interval '8 days' WHERE message_id = $1", id)
		clitest.Contains(t, s.Must("inbox", "prune"), "deleted 1 markers")
	}
	prune("a-1")
	s.Must("migrate", "--four-eyes=on")
	s.Exec("UPDATE daily_turnover SET credited = 2")
	again := requested(t, s, "rebuild")
	clitest.Contains(t, s.Must("requests", "show", again, "--brokers="+strings.Join(s.Addrs, ",")), "would insert or replace 1 row", "would mark 1 events")
	s.Exec("UPDATE repair_policy SET four_eyes = false")
	prune("a-2")
	s.Exec("UPDATE repair_policy SET four_eyes = true")
	clitest.Contains(t, other.Must("approve", again, "--reason=checked"), "1 row inserted or replaced", "2 events were marked")
	clitest.Equal(t, s.Text("SELECT credited::text FROM daily_turnover"), "3.00")
}

// TestARequestedDiscardParksAnotherEvent requests and approves the discard of one of two events of a
// version. What is parked instead is a part of the plan: a request is refused if it has changed.
func TestARequestedDiscardParksAnotherEvent(t *testing.T) {
	s := clitest.NewStage(t)
	third := func(id string) string { return clitest.WithID(id, clitest.EventOf("a", 3, `"3.00"`)) }
	s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`), third("x"))
	s.Consuming(nil)
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	parked := func() string { return s.Text("SELECT coalesce(string_agg(event_id, ' '), '-') FROM parked_event") }
	approved := func(offset, instead, parks string) {
		t.Helper()
		id := requested(t, s, "dlq", "discard", "--account=a", "--offset="+offset, "--reason=void")
		before := parked()
		shown := other.Lines(append([]string{"requests", "show", id}, s.Servers([]string{"approve"})[1:]...)...)[0]
		clitest.Equal(t, clitest.Pick([]map[string]any{shown["plan"].([]any)[0].(map[string]any)}, "parked", "parked_instead"), "true "+instead)
		clitest.Equal(t, parked(), before)
		other.Must("approve", id, "--reason=checked")
		clitest.Equal(t, parked(), parks)
	}
	approved("1", "0/1", "x")

	id := requested(t, s, "dlq", "discard", "--account=a", "--offset=2", "--reason=void")
	s.Produce(third("y"))
	s.Consuming(nil)
	clitest.Contains(t, other.Refused(exit.Failed, "approve", id, "--reason=checked"), "the plan has changed")
	clitest.Equal(t, parked(), "x")
	approved("2", "0/2", "y")
	approved("3", "null", "-")
}
