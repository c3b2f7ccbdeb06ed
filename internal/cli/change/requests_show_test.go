package change_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// TestAFileIsKeptWithItsRequest shows that a request stores the content of its file, so the
// approver does not need the file.
func TestAFileIsKeptWithItsRequest(t *testing.T) {
	s, other := underFourEyes(t)
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

// TestARebuildShowsItsBalances shows that the plan of a rebuild shows the balances before and after
// it to people who may approve it. Without the balances, a difference would not be visible in an
// account that differs only in its balance.
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

// TestShowSaysThatThePlanHasChanged shows a request whose plan is another one than when it was
// requested. An approver must not believe that approve would carry out the shown plan.
func TestShowSaysThatThePlanHasChanged(t *testing.T) {
	s, other := underFourEyes(t)
	skip := requested(t, s, "account", "skip", "acc-a", "--version=2", "--reason=lost")
	discard := requested(t, s, "dlq", "discard", "--class=malformed_payload", "--reason=rubbish")
	replay := requested(t, s, "dlq", "replay", "--account=acc-a")
	// warned shows a request and returns whether its approval would be refused.
	warned := func(id, output, plan string) bool {
		t.Helper()
		status, out, errOut := other.Command(append([]string{"requests", "show", id, "--output=" + output}, s.Servers([]string{"approve"})[1:]...)...)
		if status != exit.OK || !strings.Contains(out, plan) {
			t.Fatalf("status %d, %q is not in\n%s%s", status, plan, out, errOut)
		}
		const text = "` would refuse this request, for the plan has changed since"
		warns := strings.Contains(errOut, "`projector approve "+id+text)
		if output == "json" && strings.Contains(out, `"warning":"`+"`projector approve "+id+text+`"`) != warns {
			t.Errorf("the document of request %s has another warning than the standard error:\n%s%s", id, out, errOut)
		}
		return warns
	}
	approves := "another login does it by projector approve " + skip
	for _, id := range []string{skip, discard, replay} {
		if warned(id, "text", "acc-") || warned(id, "json", `"plan"`) {
			t.Errorf("request %s is as it was requested", id)
		}
	}
	s.Exec("UPDATE account_balance SET balance = balance + 1 WHERE account_id = 'acc-a'")
	for _, output := range []string{"text", "json"} {
		if !warned(skip, output, "11.25") || warned(discard, output, "acc-b") {
			t.Errorf("the skip has changed and the discard has not, as %s", output)
		}
	}
	if out := other.Must("requests", "show", skip); strings.Contains(out, approves) {
		t.Errorf("a plan that would be refused: %s", out)
	}
	s.Exec("UPDATE account_balance SET balance = balance - 1 WHERE account_id = 'acc-a'")
	if warned(skip, "text", approves) {
		t.Error("the skip is as it was requested again")
	}
	clitest.Contains(t, other.Must("approve", skip, "--reason=x"), "skipped version 2")
}
