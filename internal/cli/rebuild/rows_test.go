package rebuild_test

import (
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// onDay returns an event with another day and currency.
func onDay(event, day, currency string) string {
	return strings.NewReplacer("2026-01-01", day, "EUR", currency).Replace(event)
}

func produceDays(s *clitest.Stage) {
	s.T.Helper()
	s.Produce(
		clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"2.50"`), clitest.EventOf("b", 1, `"4"`), "secret",
		onDay(clitest.EventOf("a", 3, `"8"`), "2026-01-02", "EUR"), onDay(clitest.EventOf("c", 1, `"16"`), "2026-01-02", "USD"),
		onDay(clitest.EventOf("c", 2, `"32"`), "2026-01-03", "JPY"), clitest.EventOf("b", 1, `"4"`), clitest.EventOf("b", 2, `4`),
	)
}

var damagedRows = map[string]struct {
	statements []string
	plan       string
	counts     string // the counts "different replaced removed", without --remove
	audit      string
}{
	"account_statement": {
		[]string{
			`UPDATE account_statement SET amount = 99.00 WHERE account_id = 'a' AND version = 2`,
			`DELETE FROM account_statement WHERE account_id = 'b'`,
			`INSERT INTO account_statement (account_id, version, event_id, event_type, occurred_at) VALUES ('z', 7, 'z-7', 'AccountOpened', now())`,
		},
		"a 2 different, b 1 missing, z 7 unknown", "account_id version kind",
		"a 2 account_statement (a,2): different replaced night, b 1 account_statement (b,1): missing replaced night, z 7 account_statement (z,7): unknown removed night",
	},
	"daily_turnover": {
		[]string{
			`UPDATE daily_turnover SET credited = credited + 0.001, events = events - 1 WHERE day = '2026-01-01'`,
			`DELETE FROM daily_turnover WHERE currency = 'USD'`,
			`INSERT INTO daily_turnover VALUES ('2026-02-01', 'EUR', 1.00, 0.00, 1)`,
		},
		"2026-01-01 EUR different, 2026-01-02 USD missing, 2026-02-01 EUR unknown", "day currency kind",
		"daily_turnover (2026-01-01,EUR): different replaced night, daily_turnover (2026-01-02,USD): missing replaced night, daily_turnover (2026-02-01,EUR): unknown removed night",
	},
}

func TestRebuildPutsRowsRight(t *testing.T) {
	for name, damage := range damagedRows {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewStage(t)
			s.UseProjection(name)
			produceDays(s)
			s.Consuming(nil)
			right, marked := rowsOf(s, name), rowsOf(s, "inbox")
			clean(s)
			clitest.Contains(t, s.Must("rebuild", "--check"), "all rows of "+name+" can be rebuilt from topic "+s.Topic)
			for _, statement := range damage.statements {
				s.Exec(statement)
			}
			wrong := rowsOf(s, name)

			plan := rebuildJSON(s)
			clitest.Equal(t, clitest.Pick(differencesOf(plan), strings.Fields(damage.counts)...), damage.plan)
			counts := []string{"projection", "different", "left_alone", "changed", "replaced", "removed", "markers", "result"}
			clitest.Equal(t, clitest.Pick([]map[string]any{plan}, counts...), name+" 3 0 0 0 0 0 null")
			clitest.Contains(t, s.Must("rebuild", "--limit=1"), "would insert or replace 2 rows; nothing was changed", "1 rows the topic has no event of", "different")
			clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes", "--max-differences=1"), "2 ", "would change", "--max-differences")
			clitest.Equal(t, rowsOf(s, name), wrong)

			done := rebuildJSON(s, "--yes", "--max-differences=2", "--actor=night")
			clitest.Equal(t, clitest.Pick([]map[string]any{done}, counts...), name+" 3 0 2 2 0 0 rebuilt")
			if now := rowsOf(s, name); !strings.HasPrefix(now, right) || strings.Count(now, "\n") != strings.Count(right, "\n")+1 {
				t.Errorf("without --remove:\n%s\nwant, and one row more:\n%s", now, right)
			}
			done = rebuildJSON(s, "--yes", "--remove", "--actor=night")
			clitest.Equal(t, clitest.Pick([]map[string]any{done}, counts...), name+" 1 0 1 0 1 0 rebuilt")
			clitest.Equal(t, rowsOf(s, name), right)
			clitest.Equal(t, rowsOf(s, "inbox"), marked)
			clean(s, "--yes")

			audit := s.Text(`SELECT string_agg(concat_ws(' ', account_id, version, reason, result, actor), ', ' ORDER BY id)
				FROM dlq_action WHERE action = 'rebuild'`)
			clitest.Equal(t, audit, damage.audit)
			s.Produce(clitest.EventOf("b", 3, `"0.50"`), clitest.EventOf("a", 2, `"2.50"`))
			s.Consuming(nil)
			clean(s)
		})
	}
}

// A rebuild adds markers to the inbox for the events that it counts. Otherwise these events would
// be counted again.
func TestRebuildOfTheTurnoverMarksWhatItCounts(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("daily_turnover")
	t.Setenv("CURRENCIES", "EUR")
	s.Produce(clitest.EventOf("a", 1, `"1"`), onDay(clitest.EventOf("a", 2, `"2"`), "2026-01-01", "USD"), clitest.EventOf("b", 1, `"4"`))
	s.Consuming(nil)
	clitest.Equal(t, rowsOf(s, "daily_turnover"), "(2026-01-01,EUR,5.00,0.00,2)")
	t.Setenv("CURRENCIES", "EUR,USD") // a rebuild counts events that were dead-lettered before
	s.Exec(`DELETE FROM inbox WHERE message_id = 'b-1'`)
	clitest.Contains(t, s.Must("rebuild"), "would mark 2 events")
	d := rebuildJSON(s, "--yes")
	clitest.Equal(t, clitest.Pick([]map[string]any{d}, "different", "replaced", "markers"), "1 1 2")
	const right = "(2026-01-01,EUR,5.00,0.00,2)\n(2026-01-01,USD,2.00,0.00,1)"
	clitest.Equal(t, rowsOf(s, "daily_turnover"), right)
	clitest.Equal(t, rowsOf(s, "inbox"), "a-1 a-2 b-1")
	clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "a 2 resolved")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--account=a", "--yes"), "result"), "duplicate")

	// All records are read again.
	s.Exec(`UPDATE projector_position SET next_offset = 0, judged_until = 0, set_by_hand = true`)
	s.Consuming(nil)
	clitest.Equal(t, rowsOf(s, "daily_turnover"), right)
}

func TestRebuildOfATurnoverWhoseInboxWasPruned(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("daily_turnover")
	produceDays(s)
	s.Consuming(nil)
	right := rowsOf(s, "daily_turnover")
	s.Exec(`UPDATE inbox SET processed_at = now() - interval '30 days'`)
	s.Must("inbox", "prune")
	clitest.Equal(t, rowsOf(s, "inbox"), "")
	clean(s, "--yes")
	s.Exec(`UPDATE daily_turnover SET credited = credited + 1 WHERE currency = 'EUR'`)
	d := rebuildJSON(s, "--yes")
	clitest.Equal(t, clitest.Pick([]map[string]any{d}, "replaced", "markers"), "2 6")
	clitest.Equal(t, rowsOf(s, "daily_turnover"), right)
	// After the pruning it was unknown which events were counted, so the rebuild has added markers
	// for all events.
	s.Exec(`DELETE FROM daily_turnover WHERE currency = 'EUR'`)
	d = rebuildJSON(s, "--yes")
	clitest.Equal(t, clitest.Pick([]map[string]any{d}, "replaced", "markers"), "2 0")
	clitest.Equal(t, rowsOf(s, "daily_turnover"), right)
	clitest.Equal(t, rowsOf(s, "inbox"), "a-1 a-2 a-3 b-1 c-1 c-2")
	produceDays(s) // all events again
	s.Consuming(nil)
	clitest.Equal(t, rowsOf(s, "daily_turnover"), right)
}

// TestRebuildSparesRowsThatComeLaterInTheTopic sets positions back. Then the rows contain records
// after these positions, and a rebuild must not change them.
func TestRebuildSparesRowsThatComeLaterInTheTopic(t *testing.T) {
	for name, want := range map[string]string{"account_statement": "b 2 ahead", "daily_turnover": "2026-01-01 EUR ahead"} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewStage(t)
			s.UseProjection(name)
			// PostgreSQL puts an id with a space in quotes when it shows a row as text.
			last := strings.Replace(clitest.EventOf("b", 2, `"1"`), `"b-2"`, `"b 2"`, 1)
			s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("b", 1, `"1"`), last)
			s.Consuming(nil)
			right := rowsOf(s, name)
			s.Exec(`UPDATE projector_position SET next_offset = 2, judged_until = 2`)
			d := rebuildJSON(s, "--yes", "--remove")
			fields := strings.Fields(damagedRows[name].counts)
			clitest.Equal(t, clitest.Pick(differencesOf(d), fields...), want)
			clitest.Equal(t, clitest.Pick([]map[string]any{d}, "different", "left_alone", "changed"), "0 1 0")
			clitest.Equal(t, rowsOf(s, name), right)
			s.Consuming(nil)
			clean(s)
			clitest.Equal(t, rowsOf(s, name), right)
		})
	}
}

// Rows that an earlier release has written have no partition and offset, but these rows are
// correct. Rows that a rebuild adds or replaces have a partition and offset.
func TestRebuildLeavesRowsWithoutAPlaceAlone(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("account_statement")
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"2"`), clitest.EventOf("a", 3, `"3"`), clitest.EventOf("a", 4, `"4"`))
	s.Consuming(nil)
	s.Exec(`UPDATE account_statement SET source_partition = NULL, source_offset = NULL`)
	s.Exec(`UPDATE account_statement SET source_partition = 7, source_offset = 7 WHERE version = 4`) // the partition and offset of the first delivery
	s.Must("rebuild", "--check")
	s.Exec(`UPDATE account_statement SET amount = 9 WHERE version = 2`)
	s.Exec(`DELETE FROM account_statement WHERE version = 3`)
	clitest.Equal(t, clitest.Pick([]map[string]any{rebuildJSON(s, "--yes")}, "different", "replaced"), "2 2")
	clitest.Equal(t, clitest.Pick(s.Lines("account", "statement", "a"), "version", "amount", "partition", "offset"),
		"1 1 null null, 2 2 0 1, 3 3 0 2, 4 4 7 7")
}

// A rebuild must preserve corrections by people, because they are only in the database.
func TestRebuildLeavesCorrectedRowsAlone(t *testing.T) {
	for name, want := range map[string]string{"account_statement": "a 2 corrected", "daily_turnover": "2026-01-01 EUR corrected"} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewStage(t)
			s.UseProjection(name)
			s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `2`), onDay(clitest.EventOf("b", 1, `"4"`), "2026-01-02", "EUR"))
			s.Consuming(nil)
			correctAmounts(s)
			right := rowsOf(s, name)
			d := rebuildJSON(s, "--yes", "--remove")
			fields := strings.Fields(damagedRows[name].counts)
			clitest.Equal(t, clitest.Pick(differencesOf(d), fields...), want)
			clitest.Equal(t, clitest.Pick([]map[string]any{d}, "different", "left_alone", "changed"), "0 1 0")
			clitest.Equal(t, rowsOf(s, name), right)
		})
	}
}

func TestRebuildOfRowsRefusesWhatCannotEndWell(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("daily_turnover")
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild"), "no position")
	produceDays(s)
	s.Consuming(nil)
	clitest.Contains(t, s.Refused(exit.Usage, "rebuild", "--partial"), "--partial", "daily_turnover")
	s.Exec(`INSERT INTO projector_source VALUES ('daily_turnover', '` + s.Topic + `', 'old')`)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "another topic of this name")
	s.Exec(`DELETE FROM projector_source WHERE topic_id = 'old'`)
	s.DeleteRecords(2)
	said := s.Refused(exit.Failed, "rebuild", "--check")
	clitest.Contains(t, said, "begins at offset 2")
	if strings.Contains(said, "--partial") {
		t.Errorf("a sum cannot be rebuilt in part: %s", said)
	}
}

// If a topic has lost records, the rows whose events are still in the topic can be corrected.
func TestRebuildOfAPartOfAStatement(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("account_statement")
	s.Produce(clitest.EventOf("old", 1, `"1"`), clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"1"`))
	s.Consuming(nil)
	right := rowsOf(s, "account_statement")
	s.DeleteRecords(1)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "begins at offset 1", "--partial rebuilds the rows")
	s.Exec(`UPDATE account_statement SET amount = 9 WHERE version = 2`)
	d := rebuildJSON(s, "--yes", "--partial")
	clitest.Equal(t, clitest.Pick(differencesOf(d), "account_id", "version", "kind"), "a 2 different, old 1 ahead")
	clitest.Equal(t, rowsOf(s, "account_statement"), right)
}
