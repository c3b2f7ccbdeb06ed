package change_test

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

const requestKeys = "id at action requested_by reason records state decided_by topic dlq_topic"

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
	rebuild := requested(t, s, "rebuild", "--limit=0") // one account would be replaced, and it is not listed
	few := requested(t, s, "rebuild", "--max-differences=1")
	s.Exec("UPDATE account_balance SET balance = balance + 1 WHERE account_id = 'acc-c'")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", few, "--reason=x"), "2 accounts would change", "request "+few+" is refused, for it cannot be planned any more")
	s.Exec("UPDATE account_balance SET balance = balance - 1 WHERE account_id = 'acc-a'")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", rebuild, "--reason=x"), "request "+rebuild+" is refused, for the plan has changed since", "nothing was changed")
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

// TestAFileIsKeptWithItsRequest shows that a request stores the content of its file, so the
// approver does not need the file.
func TestAFileIsKeptWithItsRequest(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	file := filepath.Join(t.TempDir(), "poison.jsonl")
	s.Must("dlq", "export", "--account=acc-b", "--class=malformed_payload", "--file="+file)
	exported, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	corrected := strings.ReplaceAll(string(exported), `\"amount\":7.5`, `\"amount\":\"7.5\"`)
	if err := os.WriteFile(file, []byte(corrected), 0o600); err != nil {
		t.Fatal(err)
	}
	id := requested(t, s, "dlq", "replay", "--from-file="+file, "--reason=INC-2")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(file, "none")) // the folder does not exist, as in the container image
	shown := append([]string{"requests", "show", id}, s.Servers([]string{"approve"})[1:]...)
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(corrected)))
	clitest.Contains(t, s.Must(shown...), "--from-file: poison.jsonl", sum, "1 will_apply", "topic "+s.Topic+", DLQ topic "+s.Topic+".dlq")
	clitest.Equal(t, s.Must("requests", "show", id, "--file=poison.jsonl"), corrected)
	clitest.Equal(t, s.Must("requests", "show", id, "--file=from-file"), corrected)
	clitest.Contains(t, s.Refused(exit.Failed, "requests", "show", id, "--file=other"), "from-file (poison.jsonl)")

	// Only people who may approve may see amounts and balances.
	clitest.Contains(t, other.Must(shown...), "0.00            7.50", "BALANCE AFTER", `old value        {`, `"amount":7.5,`, `"amount":"7.5",`)
	document := other.Lines(shown...)[0]
	plan := document["plan"].([]any)[0].(map[string]any)
	clitest.Equal(t, clitest.Pick([]map[string]any{plan}, "plan", "altered", "old_amount", "new_amount", "currency", "balance_before", "balance_after"),
		"will_apply true null 7.5 EUR 0 7.5")
	clitest.Contains(t, other.Must("approve", id, "--reason=checked"), "1 applied")
	trail := s.Lines("audit", "--account=acc-b")
	clitest.Equal(t, clitest.Pick(trail, "reason", "altered"), "INC-2 true")
	clitest.Contains(t, s.Must("account", "show", "acc-b", "--output=json"), `"balance":8.50`)
}

// TestEveryChangeIsRequested shows for further commands that their changes can be requested and
// approved.
func TestEveryChangeIsRequested(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
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

// TestARebuildShowsItsBalances shows that the plan of a rebuild has the balances before and after it,
// for people who may approve it: an account may differ only in its balance.
func TestARebuildShowsItsBalances(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("acc-a", 1, `"1"`), clitest.EventOf("acc-b", 1, `"2"`), clitest.EventOf("acc-c", 1, `"3"`))
	s.Consuming(nil)
	s.Exec(`UPDATE account_balance SET balance = 91.50 WHERE account_id = 'acc-a'`)
	s.Exec(`DELETE FROM account_balance WHERE account_id = 'acc-b'`)
	s.Exec(`INSERT INTO account_balance (account_id, version, balance, currency, status) VALUES ('acc-x', 3, 7.00, 'EUR', 'open')`)
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	if out := s.Must("rebuild") + s.Must("rebuild", "--output=json"); strings.Contains(out, "91.5") || strings.Contains(strings.ToLower(out), "balance_before") {
		t.Errorf("a rebuild prints balances: %s", out)
	}
	for _, c := range []struct{ removal, plan string }{
		{"--remove=false", "acc-a different EUR 91.5 1, acc-b missing EUR null 2, acc-x unknown EUR 7 7"},
		{"--remove", "acc-a different EUR 91.5 1, acc-b missing EUR null 2, acc-x unknown EUR 7 null"},
	} {
		id := requested(t, s, "rebuild", c.removal)
		shown := append([]string{"requests", "show", id}, s.Servers([]string{"approve"})[1:]...)
		clitest.Contains(t, other.Must(shown...), "BALANCE BEFORE", "91.50", "1.00  EUR")
		plan := other.Lines(shown...)[0]["plan"].([]any)[0].(map[string]any)
		var differences []map[string]any
		for _, d := range plan["differences"].([]any) {
			differences = append(differences, d.(map[string]any))
		}
		clitest.Equal(t, clitest.Pick(differences, "account_id", "kind", "currency", "balance_before", "balance_after"), c.plan)
		other.Must("reject", id, "--reason=only shown")
	}
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

// TestRequestsMadeByHandNameNoServer inserts requests by SQL. Such a request cannot send the
// approver's passwords to another server, and it cannot read the approver's files.
func TestRequestsMadeByHandNameNoServer(t *testing.T) {
	s := clitest.NewStage(t)
	other := colleague(t, s)
	for _, arguments := range []string{
		`{run,"{}"}`, `{"migrate up","{\"FourEyes\":\"off\"}"}`, `{"account skip","null"}`, `{"dlq replay","[]"}`, `{pause,"{}",--brokers=evil:9092}`,
		// These requests have the form of an earlier version of the program.
		`{dlq,replay,--brokers=evil:9092}`, `{pause,--all,--reason=x,--database-url=postgres://evil}`,
		`{dlq,replay,--from-file=/etc/hostname,--reason=x}`, `{dlq,replay,--mapping=/etc/hostname}`, `{dlq,replay,--yes=true}`,
		`{pause,--all,--reason=x,--sasl-username=me}`, `{pause,--all,--reason=x,--brokers,evil}`, `{migrate,--four-eyes=off}`, `{run}`, `{}`,
	} {
		var id int
		err := s.Pool.QueryRow(t.Context(), `INSERT INTO repair_request (action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor)
			VALUES ('replay', $1::text[], '{}', '{}', '{}', 'x', 1, 'me') RETURNING id`, arguments).Scan(&id)
		if err != nil {
			t.Fatal(err)
		}
		clitest.Contains(t, other.Refused(exit.Failed, "approve", fmt.Sprint(id), "--reason=x"), "was made by hand")
		s.Await("SELECT state = 'refused' FROM repair_request WHERE id = $1", id)
	}
}

// TestARequestIsReadOnlyAsTheProgramStoresIt shows that a request is refused if an option is added,
// removed, repeated or in another form. A request that names a local file, or the file of another
// flag, is refused too.
func TestARequestIsReadOnlyAsTheProgramStoresIt(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	id := requested(t, s, "pause", "--all", "--reason=x")
	copied := func(options, flags, names, contents string) (id string) {
		if err := s.Pool.QueryRow(t.Context(), `INSERT INTO repair_request (action, records, actor, reason, arguments, file_flags, file_names, file_contents, plan_sha256)
			SELECT action, records, actor, reason, ARRAY[arguments[1], `+options+`], `+flags+`, `+names+`, `+contents+`, plan_sha256 FROM repair_request WHERE action = 'pause' LIMIT 1
			RETURNING id::text`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, forged := range []string{
		copied(`overlay(arguments[2] PLACING '{"DatabaseURL":"postgres://evil",' FROM 1 FOR 1)`, "'{}'", "'{}'", "'{}'"),
		copied(`overlay(arguments[2] PLACING '{"Brokers":["evil:9092"],' FROM 1 FOR 1)`, "'{}'", "'{}'", "'{}'"),
		copied(`replace(arguments[2], '"NewGroup":false,', '')`, "'{}'", "'{}'", "'{}'"),
		copied(`replace(arguments[2], '"NewGroup"', '"All":true,"NewGroup"')`, "'{}'", "'{}'", "'{}'"),
		copied(`arguments[2] || ' '`, "'{}'", "'{}'", "'{}'"), copied(`lower(arguments[2])`, "'{}'", "'{}'", "'{}'"),
		copied(`replace(arguments[2], '"ProjectionFile":""', '"ProjectionFile":"/etc/hostname"')`, "'{}'", "'{}'", "'{}'"),
		copied(`replace(arguments[2], '"ProjectionFile":""', '"ProjectionFile":"hostname"')`, "'{}'", "'{}'", "'{}'"),
		copied(`replace(arguments[2], '"ProjectionFile":""', '"ProjectionFile":"hostname"')`, "'{mapping}'", "'{hostname}'", "'{x}'"),
		copied(`arguments[2]`, "'{projection-file}'", "'{hostname}'", "'{x}'"),
	} {
		clitest.Contains(t, s.Refused(exit.Failed, "requests", "show", forged), "was made by hand, or by another version")
		clitest.Contains(t, other.Refused(exit.Failed, "approve", forged, "--reason=x"), "was made by hand, or by another version", "nothing was changed")
		s.Await("SELECT state = 'refused' FROM repair_request WHERE id = $1", forged)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("position"), "state"), "running")
	group := copied(`replace(replace(arguments[2], '"NewGroup":false', '"NewGroup":true'), '"Group":""', '"Group":"another"')`, "'{}'", "'{}'", "'{}'")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", group, "--reason=x"), "the plan has changed since")
	other.Must("approve", copied("arguments[2]", "'{}'", "'{}'", "'{}'"), "--reason=as it was")
	s.Must("reject", id, "--reason=done already")
}

// TestRequestsAreWhatTheyAreListedAs copies a request by SQL with another action, number of
// records, actor or reason. The copy is refused.
func TestRequestsAreWhatTheyAreListedAs(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
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

// TestAProjectionFileNobodyRanIsRefused shows that a projection file that was never run is refused,
// because its SQL would run with the approver's rights. The file is refused when the change is
// requested, and again in a request that was inserted by SQL.
func TestAProjectionFileNobodyRanIsRefused(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec("CREATE TABLE seen (account_id text, version bigint, PRIMARY KEY (account_id, version))")
	const head = "-- projection: seen\n-- mode: ordered\n-- types: FundsCredited\n-- tables: seen\n"
	text := head + "INSERT INTO seen SELECT account_id, version FROM new_events;\n"
	stored := s.UseCustomProjection("seen", text)
	s.Produce(clitest.EventOf("acc-a", 1, `"1"`), clitest.EventOf("acc-a", 3, `"3"`))
	s.Consuming(nil)
	t.Setenv("PROJECTION_FILE", "")
	other := colleague(t, s)
	s.Must("migrate", "--four-eyes=on")
	// For a known projection, the program compares the text with the stored text. For a new name,
	// there is no stored text.
	unknown := strings.ReplaceAll(text, "projection: seen", "projection: innocent")
	file, lines := filepath.Join(t.TempDir(), "evil.sql"), filepath.Join(t.TempDir(), "forged.jsonl")
	if err := os.WriteFile(file, []byte(unknown), 0o600); err != nil {
		t.Fatal(err)
	}
	exported := s.Must("dlq", "export", "--projection-file="+stored)
	if err := os.WriteFile(lines, []byte(strings.ReplaceAll(exported, `"projection":"seen"`, `"projection":"innocent"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	attack := []string{"dlq", "replay", "--from-file=" + lines, "--not-in-topic", "--reason=x", "--projection-file=" + file}
	clitest.Contains(t, s.Must(attack...), " waiting")
	clitest.Contains(t, s.Refused(exit.Failed, append(attack, "--yes")...), "no projection was run from this text of evil.sql")
	clitest.Equal(t, clitest.Pick(s.Lines("requests"), "id"), "")

	id := requested(t, s, "account", "skip", "acc-a", "--version=2", "--reason=lost", "--projection-file="+stored)
	clitest.Contains(t, s.Must("requests", "show", id), "would skip version 2")
	var forged int
	if err := s.Pool.QueryRow(t.Context(), `INSERT INTO repair_request (action, records, actor, reason, arguments, file_flags, file_names, file_contents, plan_sha256)
		SELECT action, records, actor, reason, arguments, file_flags, file_names, ARRAY[$2::bytea], plan_sha256 FROM repair_request WHERE id = $1 RETURNING id`,
		id, []byte(unknown)).Scan(&forged); err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, s.Refused(exit.Failed, "requests", "show", fmt.Sprint(forged)), "no projection was run from this text")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", fmt.Sprint(forged), "--reason=x"), "no projection was run from this text", "nothing was changed")
	s.Await("SELECT state = 'refused' FROM repair_request WHERE id = $1", forged)
	clitest.Contains(t, other.Must("approve", id, "--reason=checked"), "skipped version 2")
}

// TestBalancesOfALedgerAreShown shows that people who may approve a request of `projector open` see
// the balances of the ledger in its plan.
func TestBalancesOfALedgerAreShown(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	s.Must("migrate", "--four-eyes=on")
	file := filepath.Join(t.TempDir(), "ledger.csv")
	if err := os.WriteFile(file, []byte("account_id,version,balance,currency\nacc-a,2,30.00,EUR\nacc-new,7,12.50,EUR\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := requested(t, s, "open", "--ledger="+file, "--reason=x")
	t.Setenv("TMPDIR", filepath.Join(file, "none"))
	clitest.Contains(t, s.Must("requests", "show", id), "10.25", "30.00", "12.50", "EUR")
	document := s.Lines("requests", "show", id)[0]
	var plan []map[string]any
	for _, row := range document["plan"].([]any) {
		plan = append(plan, row.(map[string]any))
	}
	clitest.Equal(t, clitest.Pick(plan, "account_id", "plan", "balance_before", "balance_after", "currency"),
		"acc-a will_open 10.25 30 EUR, acc-new will_open null 12.5 EUR")
	clitest.Equal(t, clitest.Pick([]map[string]any{document}, "topic"), "null")
}

// TestARequestIsBounded shows that the table of requests limits the size of the files, and the size
// of the other columns together.
func TestARequestIsBounded(t *testing.T) {
	s := clitest.NewStage(t)
	for _, values := range []string{
		"'{x}', ARRAY[convert_to(repeat('x', 64 << 20), 'UTF8'), convert_to(repeat('x', 1 << 20), 'UTF8')], 'me', NULL",
		"ARRAY[repeat('x', 5 << 20)], '{}', 'me', NULL", "'{x}', '{}', 'me', repeat('x', 5 << 20)", "'{x}', '{}', repeat('x', 5 << 20), NULL",
	} {
		_, err := s.Pool.Exec(t.Context(), `INSERT INTO repair_request (action, arguments, file_contents, actor, reason, file_flags, file_names, plan_sha256, records)
			SELECT 'skip', `+values+`, '{}', '{}', 'x', 1`)
		if err == nil || !strings.Contains(err.Error(), "23514") {
			t.Errorf("%.40s: %v", values, err)
		}
	}
	s.Exec(`INSERT INTO repair_request (action, arguments, file_contents, actor, file_flags, file_names, plan_sha256, records)
		VALUES ('skip', '{x}', ARRAY[convert_to(repeat('x', 64 << 20), 'UTF8')], 'me', '{from-file}', '{x}', 'x', 1)`)
}
