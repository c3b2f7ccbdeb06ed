package rebuild_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// The function correct replays dead letters with a corrected text. The argument selection is the
// flag that selects the dead letters.
func correct(s *clitest.Stage, selection, old, text string) {
	s.T.Helper()
	path := filepath.Join(s.T.TempDir(), "corrected.jsonl")
	s.Must("dlq", "export", selection, "--file="+path)
	exported, err := os.ReadFile(path)
	if err != nil {
		s.T.Fatal(err)
	}
	if !strings.Contains(string(exported), old) {
		s.T.Fatalf("nothing to correct in %s", exported)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(exported), old, text)), 0o600); err != nil {
		s.T.Fatal(err)
	}
	s.Must("dlq", "replay", "--from-file="+path, "--reason=typed", "--yes")
}

// balanceOf returns an account's version and balance.
func balanceOf(s *clitest.Stage, account string) string {
	s.T.Helper()
	return s.Text("SELECT version || ' ' || balance FROM account_balance WHERE account_id = $1", account)
}

// TestRebuildKeepsACorrectedGapEvent shows that a rebuild recognizes a corrected event by the audit
// trail, because the class of the dead letter does not show the correction.
func TestRebuildKeepsACorrectedGapEvent(t *testing.T) {
	s := clitest.NewStage(t)
	t.Setenv("PARK_LIMIT", "1")
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 3, `"4"`), clitest.EventOf("a", 4, `"10"`), clitest.EventOf("a", 2, `"2"`))
	s.Consuming(nil)
	clitest.Equal(t, balanceOf(s, "a"), "3 7.00")
	correct(s, "--account=a", `\"10\"`, `\"80\"`)
	clitest.Equal(t, balanceOf(s, "a"), "4 87.00")
	d := rebuildJSON(s, "--yes")
	clitest.Equal(t, kindsOf(d), "a corrected 4 4")
	clitest.Equal(t, balanceOf(s, "a"), "4 87.00")
}

// TestRebuildKeepsACorrectionOfARefusedRow shows that a rebuild preserves a correction even if the
// database would now accept the original event.
func TestRebuildKeepsACorrectionOfARefusedRow(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Exec("ALTER TABLE account_balance ADD CONSTRAINT few CHECK (balance < 50)")
	s.Produce(clitest.EventOf("a", 1, `"5"`), clitest.EventOf("a", 2, `"60"`))
	s.Consuming(nil)
	correct(s, "--account=a", `\"60\"`, `\"6\"`)
	clitest.Equal(t, balanceOf(s, "a"), "2 11.00")
	s.Exec("ALTER TABLE account_balance DROP CONSTRAINT few")
	clitest.Equal(t, kindsOf(rebuildJSON(s, "--yes")), "a corrected 2 2")
	clitest.Equal(t, balanceOf(s, "a"), "2 11.00")
}

// TestCorrectionsOfAnotherProjectionDoNotCount shows that a correction in account_statement is not
// a correction in account_balance.
func TestCorrectionsOfAnotherProjectionDoNotCount(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec("ALTER TABLE account_statement ADD CONSTRAINT few CHECK (amount < 50)")
	s.Produce(clitest.EventOf("a", 1, `"5"`), clitest.EventOf("a", 2, `"60"`))
	s.Consuming(nil)
	t.Setenv("PROJECTION", "account_statement")
	s.Consuming(nil)
	correct(s, "--account=a", `\"60\"`, `\"6\"`)
	t.Setenv("PROJECTION", "")
	clean(s)
	s.Exec("UPDATE account_balance SET balance = 1")
	clitest.Equal(t, kindsOf(rebuildJSON(s, "--yes")), "a different 2 2")
	clitest.Equal(t, balanceOf(s, "a"), "2 65.00")
}

// TestRebuildLeavesDiscardedEventsOut shows that a rebuild leaves out discarded events until they
// are replayed.
func TestRebuildLeavesDiscardedEventsOut(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Exec("ALTER TABLE account_balance ADD CONSTRAINT few CHECK (balance < 50)")
	s.Produce(clitest.EventOf("a", 1, `"5"`), clitest.EventOf("a", 2, `"60"`), clitest.EventOf("a", 3, `"1"`))
	s.Consuming(nil)
	s.Must("dlq", "discard", "--class=rejected_by_database", "--reason=void", "--yes")
	s.Exec("ALTER TABLE account_balance DROP CONSTRAINT few")
	s.Must("rebuild", "--yes")
	clitest.Equal(t, balanceOf(s, "a"), "1 5.00")
	s.Must("dlq", "replay", "--class=rejected_by_database", "--status=discarded", "--yes")
	clitest.Equal(t, balanceOf(s, "a"), "3 66.00")
	clean(s, "--yes")
	clitest.Equal(t, balanceOf(s, "a"), "3 66.00")
}

// TestRebuildDoesNotCountACorrectedEventAgain produces a corrected event again, valid and with
// another currency. Consumers skip the event, because the inbox has its marker, so a rebuild must
// not add a row for this currency.
func TestRebuildDoesNotCountACorrectedEventAgain(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("daily_turnover")
	s.Produce(clitest.EventOf("a", 1, `"none"`))
	s.Consuming(nil)
	correct(s, "--account=a", `\"none\"`, `\"2\"`)
	s.Produce(strings.Replace(clitest.EventOf("a", 1, `"2"`), "EUR", "USD", 1))
	s.Consuming(nil)
	rows := func() string {
		return s.Text("SELECT string_agg(currency || ' ' || credited, ', ') FROM daily_turnover")
	}
	clitest.Equal(t, rows(), "EUR 2.00")
	rebuildJSON(s, "--yes")
	clitest.Equal(t, rows(), "EUR 2.00")
}

// TestRebuildMarksNoEventOfARowThatItLeavesAlone shows that a dead letter can still be replayed after
// a rebuild that has left its row alone. A marker for the dead letter would make it a duplicate. If
// other rows have to be replaced, the rebuild is refused until the dead letter was replayed.
func TestRebuildMarksNoEventOfARowThatItLeavesAlone(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("daily_turnover")
	s.Exec("ALTER TABLE daily_turnover ADD CONSTRAINT few CHECK (credited < 50)")
	s.Produce(clitest.EventOf("a", 1, `"none"`), clitest.EventOf("b", 1, `"60"`), clitest.EventOf("c", 1, `"4"`), onDay(clitest.EventOf("c", 2, `"8"`), "2026-01-02", "EUR"))
	s.Consuming(nil)
	correct(s, "--account=a", `\"none\"`, `\"2\"`)
	s.Exec("ALTER TABLE daily_turnover DROP CONSTRAINT few")
	const day2 = "\n(2026-01-02,EUR,8.00,0.00,1)"
	done := func() string {
		return clitest.Pick([]map[string]any{rebuildJSON(s, "--yes")}, "left_alone", "markers", "changed")
	}
	clitest.Equal(t, done(), "1 0 0")
	clitest.Equal(t, rowsOf(s, "daily_turnover"), "(2026-01-01,EUR,6.00,0.00,2)"+day2)

	s.Exec(`DELETE FROM daily_turnover WHERE day = '2026-01-02'`)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "the inbox lacks events", "dlq replay")
	clitest.Equal(t, rowsOf(s, "daily_turnover"), "(2026-01-01,EUR,6.00,0.00,2)")
	clitest.Equal(t, rowsOf(s, "inbox"), "a-1 c-1 c-2")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--account=b", "--yes"), "result"), "applied")
	clitest.Equal(t, done(), "1 0 1")
	clitest.Equal(t, rowsOf(s, "daily_turnover"), "(2026-01-01,EUR,66.00,0.00,3)"+day2)
}
