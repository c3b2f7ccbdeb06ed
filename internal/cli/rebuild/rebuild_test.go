package rebuild_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

func TestRebuildMendsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(
		clitest.EventOf("a-good", 1, `"1"`), clitest.EventOf("b-balance", 1, `"2.50"`), clitest.EventOf("c-gone", 1, `"3"`), clitest.EventOf("d-behind", 1, `"4"`),
		clitest.EventOf("d-behind", 2, `"4"`), clitest.EventOf("e-held", 1, `"5"`), clitest.EventOf("e-held", 3, `"5"`), clitest.EventOf("e-held", 4, `"5"`),
		clitest.EventOf("f-headless", 2, `"6"`), clitest.EventOf("g-poison", 1, `7`), clitest.EventOf("g-poison", 2, `"7"`), clitest.EventOf("h-status", 1, `"8"`),
		"secret", clitest.EventOf("a-good", 2, `"0.25"`), clitest.EventOf("a-good", 2, `"0.25"`),
	)
	s.Consuming(nil)
	right := projected(s)
	clean(s)
	clitest.Equal(t, projected(s), right)

	s.Exec(`UPDATE account_balance SET balance = balance + 1 WHERE account_id = 'b-balance'`)
	s.Exec(`UPDATE account_balance SET status = 'closed', last_event_id = 'x' WHERE account_id = 'h-status'`)
	s.Exec(`DELETE FROM account_balance WHERE account_id IN ('c-gone', 'd-behind')`)
	s.Exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('d-behind', 'EUR', 4.00, 1), ('z-phantom', 'EUR', 99.00, 5)`)
	s.Exec(`DELETE FROM parked_event WHERE account_id = 'e-held' AND version = 4`)
	s.Exec(`INSERT INTO park_overflow (account_id, lowest_version, highest_version, events, expected_version) VALUES ('f-headless', 7, 9, 3, 1)`)
	wrong := projected(s)

	plan := rebuildJSON(s)
	clitest.Equal(t, kindsOf(plan), "b-balance different 1 1, c-gone missing null 1, d-behind different 1 2, e-held hold 1 1, "+
		"f-headless hold null null, h-status different 1 1, z-phantom unknown 5 null")
	clitest.Equal(t, clitest.Pick([]map[string]any{plan}, "records", "checked", "matched", "different", "left_alone", "changed", "result"), "15 9 2 7 0 0 null")
	clitest.Equal(t, projected(s), wrong)
	table := s.Must("rebuild", "--limit=2")
	clitest.Contains(t, table, "9 accounts compared: 2 are right, 7 are not", "b-balance", "would insert or replace 6 accounts; nothing was changed")
	clitest.Equal(t, projected(s), wrong)

	done := rebuildJSON(s, "--yes", "--remove", "--actor=night shift")
	clitest.Equal(t, clitest.Pick([]map[string]any{done}, "different", "changed", "replaced", "removed", "result"), "7 7 6 1 rebuilt")
	clitest.Equal(t, projected(s), right)
	clean(s, "--yes")

	audit := s.Text(`SELECT string_agg(concat_ws(' ', action, account_id, coalesce(version::text, '-'), reason, result, actor), ', ' ORDER BY account_id)
		FROM dlq_action`)
	clitest.Contains(t, audit, "rebuild b-balance 1 different replaced night shift", "rebuild z-phantom - unknown removed", "rebuild d-behind 2 different")

	// Consumers continue from the rebuilt rows.
	s.Produce(clitest.EventOf("b-balance", 2, `"1"`), clitest.EventOf("c-gone", 2, `"1"`), clitest.EventOf("e-held", 2, `"5"`))
	s.Consuming(nil)
	clean(s)
}

// A rebuild skips the versions that people have skipped.
func TestRebuildHonoursSkips(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(
		clitest.EventOf("known", 1, `"1"`), clitest.EventOf("known", 2, `2`), clitest.EventOf("known", 3, `"4"`),
		clitest.EventOf("absent", 1, `"1"`), clitest.EventOf("absent", 3, `"4"`),
		clitest.EventOf("last", 1, `"1"`), clitest.EventOf("last", 2, `2`),
		clitest.EventOf("headless", 2, `"2"`),
		clitest.EventOf("twice", 1, `"1"`), clitest.EventOf("twice", 2, `1`), clitest.EventOf("twice", 4, `"8"`),
	)
	s.Consuming(nil)
	for _, skip := range []string{"known 2", "absent 2", "last 2", "headless 1", "twice 2", "twice 3"} {
		account, version, _ := strings.Cut(skip, " ")
		s.Must("account", "skip", account, "--version="+version, "--reason=voided", "--yes")
	}
	// The skipped events arrive late and stay skipped.
	s.Produce(clitest.EventOf("known", 2, `"2"`), clitest.EventOf("absent", 2, `"2"`), clitest.EventOf("last", 2, `"2"`), clitest.EventOf("headless", 1, `"1"`),
		clitest.EventOf("twice", 3, `"4"`), clitest.EventOf("twice", 5, `"16"`))
	s.Consuming(nil)
	right := projected(s)
	clitest.Contains(t, right, "(known,EUR,5.00,3", "(absent,EUR,5.00,3", "(last,EUR,1.00,2", "(headless,EUR,2.00,2", "(twice,EUR,25.00,5")
	clean(s)
	s.Exec(`DELETE FROM account_balance`)
	if d := rebuildJSON(s, "--yes"); d["changed"] != 5.0 {
		t.Errorf("%v", d)
	}
	clitest.Equal(t, projected(s), right)
}

// correctAmounts corrects the dead letters whose amount is the number 2, and replays them.
func correctAmounts(s *clitest.Stage) {
	s.T.Helper()
	correct(s, "--status=open", `\"amount\":2,`, `\"amount\":\"2\",`)
}

// A corrected event is only in the database, so a rebuild cannot read it from the topic.
func TestRebuildLeavesCorrectionsAlone(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("mended", 1, `"1"`), clitest.EventOf("mended", 2, `2`), clitest.EventOf("mended", 3, `"4"`),
		clitest.EventOf("overtaken", 1, `"1"`), clitest.EventOf("overtaken", 2, `2`))
	s.Consuming(nil)
	correctAmounts(s)
	s.Produce(clitest.EventOf("overtaken", 2, `"3"`)) // a duplicate of the corrected event, with another amount
	s.Consuming(nil)
	right := projected(s)
	clitest.Contains(t, right, "(mended,EUR,7.00,3", "(overtaken,EUR,3.00,2")
	d := rebuildJSON(s, "--yes")
	clitest.Equal(t, kindsOf(d), "mended corrected 3 1, overtaken corrected 2 2")
	clitest.Equal(t, clitest.Pick([]map[string]any{d}, "different", "left_alone", "changed"), "0 2 0")
	clitest.Equal(t, projected(s), right)
}

func TestRebuildOfATopicThatHasLostRecords(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("old", 1, `"1"`), clitest.EventOf("lost", 1, `"1"`), clitest.EventOf("old", 2, `"1"`), clitest.EventOf("new", 1, `"1"`), clitest.EventOf("new", 2, `"1"`))
	s.Consuming(nil)
	right := projected(s)
	s.DeleteRecords(2)
	said := s.Refused(exit.Failed, "rebuild", "--yes")
	clitest.Contains(t, said, "partition 0", "begins at offset 2", "--partial")

	s.Exec(`UPDATE account_balance SET balance = 99 WHERE account_id = 'new'`)
	d := rebuildJSON(s, "--yes", "--partial")
	clitest.Equal(t, kindsOf(d), "lost ahead 1 null, new different 2 2, old ahead 2 null")
	clitest.Equal(t, projected(s), right)
}

// A topic without its first records is sufficient if every account has an opening balance.
func TestRebuildBeginsFromOpenings(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("b", 1, `"1"`), clitest.EventOf("b", 2, `"2"`))
	s.Produce(clitest.EventOf("a", 2, `"2"`), clitest.EventOf("a", 3, `"4"`), clitest.EventOf("b", 3, `"4"`), clitest.EventOf("b", 5, `"16"`))
	s.DeleteRecords(3)
	s.Consuming(nil)
	clitest.Equal(t, checkedText(s), "1 partition 0 of topic "+s.Topic+" begins at offset 3: earlier records were removed; "+
		"a rebuild from what is left would be wrong; --partial rebuilds the accounts of which every event is there")
	ledger := func(lines string) string {
		name := filepath.Join(t.TempDir(), "ledger.csv")
		if err := os.WriteFile(name, []byte("account_id,version,balance,currency\n"+lines), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--ledger=" + name
	}
	s.Must("open", ledger("a,2,3,EUR\nquiet,7,9,JPY\n"), "--reason=x", "--yes")
	clitest.Contains(t, checkedText(s), "1 ", `1 accounts have no opening, the first of them "b" (see projector open)`)
	s.Must("open", ledger("b,2,3,EUR\n"), "--reason=x", "--yes")
	clitest.Equal(t, checkedText(s), "0 ")
	clitest.Contains(t, s.Must("rebuild", "--check"), "every account starts with its opening", "can be rebuilt")

	right := projected(s)
	clitest.Contains(t, right, "(a,EUR,7.00,3,open,a-3", "(b,EUR,7.00,3,open,b-3", "(b,5,version_gap", "(quiet,JPY,9,7,open,,)")
	clean(s)
	s.Exec(`UPDATE account_balance SET balance = 99.00 WHERE account_id IN ('a', 'quiet')`)
	s.Exec(`DELETE FROM parked_event`)
	d := rebuildJSON(s, "--yes", "--remove")
	clitest.Equal(t, kindsOf(d), "a different 3 3, b hold 3 3, quiet different 7 7")
	clitest.Equal(t, projected(s), right)
	if said := s.Refused(exit.Failed, "rebuild", "--projection=account_statement"); !strings.Contains(said, "no position") {
		t.Error(said)
	}
}

// checkedText returns the exit status of rebuild --check and the reasons that it names.
func checkedText(s *clitest.Stage) string {
	s.T.Helper()
	status, d := checked(s)
	var reasons []string
	for _, reason := range d["reasons"].([]any) {
		reasons = append(reasons, reason.(string))
	}
	return fmt.Sprint(status, " ", strings.Join(reasons, "; "))
}

// TestRebuildSparesWhatComesLaterInTheTopic shows that a rebuild does not change accounts that have
// events after the stored positions. Such accounts exist after positions were set back.
func TestRebuildSparesWhatComesLaterInTheTopic(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("b", 1, `"1"`), clitest.EventOf("b", 2, `"1"`))
	s.Consuming(nil)
	s.Exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('phantom', 'EUR', 1, 1)`)
	right := projected(s)
	s.Exec(`UPDATE projector_position SET next_offset = 1, judged_until = 1`)
	d := rebuildJSON(s, "--yes", "--remove")
	clitest.Equal(t, kindsOf(d), "b ahead 2 null, phantom unknown 1 null")
	clitest.Equal(t, clitest.Pick([]map[string]any{d}, "matched", "different", "left_alone", "changed"), "1 1 1 1")
	clitest.Equal(t, projected(s), strings.Replace(right, "\n(phantom,EUR,1,1,open,,)", "", 1))
}

func TestRebuildDecidesAsTheDatabaseDoes(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Exec(`ALTER TABLE account_balance ADD CONSTRAINT small CHECK (balance < 100)`)
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("big", 1, `"1"`), clitest.EventOf("big", 2, `"1000"`), clitest.EventOf("big", 3, `"1"`), clitest.EventOf("b", 1, `"1"`))
	s.Consuming(nil)
	clitest.Contains(t, projected(s), "rejected_by_database")
	clean(s)
	// Records that are read again after a failed flush are counted only one time.
	clitest.Contains(t, s.Must("rebuild"), "5 records read")
}

// TestRebuildBeyondTheParkLimit shows that a rebuild restores which events were beyond a limit for
// the number or the bytes of parked events.
func TestRebuildBeyondTheParkLimit(t *testing.T) {
	for limit, value := range map[string]int{"PARK_LIMIT": 2, "PARK_BYTES": 2*len(clitest.EventOf("a", 3, `"1"`)) + 20} {
		t.Run(limit, func(t *testing.T) {
			s := clitest.NewStage(t)
			t.Setenv(limit, strconv.Itoa(value))
			for _, version := range []int{1, 3, 4, 5, 7} {
				s.Produce(clitest.EventOf("a", version, `"1"`))
			}
			s.Consuming(nil)
			right := projected(s)
			clitest.Contains(t, right, "(a,5,7,2)")
			clean(s)
			s.Exec(`DELETE FROM account_balance`)
			s.Exec(`DELETE FROM parked_event`)
			s.Exec(`DELETE FROM park_overflow`)
			rebuildJSON(s, "--yes")
			clitest.Equal(t, projected(s), right)
		})
	}
}

func TestRebuildRefusesWhatCannotEndWell(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild"), "no position")
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)

	s.Exec(`CREATE TABLE note (account_id text REFERENCES account_balance ON DELETE CASCADE)`)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild"), "table note", "foreign key")
	s.Exec(`DROP TABLE note`)

	s.Exec(`CREATE TABLE other AS SELECT * FROM projector_position`)
	s.Exec(`UPDATE other SET topic = 'elsewhere'`)
	s.Exec(`INSERT INTO projector_position SELECT * FROM other`)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild"), "topic elsewhere")
	s.Exec(`DELETE FROM projector_position WHERE topic = 'elsewhere'`)

	s.Exec(`UPDATE projector_position SET judged_until = 7`)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild"), "beyond the topic's end")
	// The end of a recreated topic does not show that the topic was truncated.
	s.Exec(`UPDATE projector_position SET topic_id = 'old'`)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild"), "topic recreated")
	s.Exec(`UPDATE projector_position SET judged_until = 1, topic_id = 'old'`)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild"), "topic recreated")

	for _, args := range [][]string{{"--projection=nothing"}, {"--limit=-1"}, {"--park-limit=-1"}, {"--park-bytes=0"}} {
		clitest.Contains(t, s.Refused(exit.Usage, append([]string{"rebuild"}, args...)...), strings.SplitN(args[0], "=", 2)[0])
	}
}

// A killed rebuild leaves its tables, and the next rebuild removes them. Only one rebuild may run
// at a time.
func TestRebuildIsAlone(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Exec(`CREATE SCHEMA projector_rebuild; CREATE TABLE projector_rebuild.account_balance (leftover int)`)
	clean(s)

	conn, err := s.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock(hashtextextended('projector rebuild ' || current_database(), 7215))`); err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild"), "another rebuild")
}

// The tables of a rebuild cannot be dropped after the swap, for example because the server fails over.
// The error must not look as if the live rows were not replaced.
func TestRebuildWithoutDroppingItsTables(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Exec(`UPDATE account_balance SET balance = 99`)
	s.Exec(`CREATE FUNCTION keep() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE object_type = 'schema') THEN RAISE 'kept'; END IF; END $$`)
	s.Exec(`CREATE EVENT TRIGGER keep ON sql_drop EXECUTE FUNCTION keep()`)
	const remedy = "the next rebuild drops them"
	failed := s.Refused(exit.Failed, "rebuild", "--yes")
	clitest.Contains(t, failed, "drop the tables of the rebuild", "what was printed was done", remedy)
	s.Exec(`DROP EVENT TRIGGER keep`)
	clean(s)

	s.Exec(`CREATE EVENT TRIGGER keep ON sql_drop EXECUTE FUNCTION keep()`)
	failed = s.Refused(exit.Failed, "rebuild")
	clitest.Contains(t, failed, remedy)
	if strings.Contains(failed, "was done") {
		t.Errorf("a rebuild without --yes replaces nothing: %s", failed)
	}
}

// TestAnInterruptedRebuildChangesNothing interrupts a rebuild while it waits for another session's
// lock to change the live rows.
func TestAnInterruptedRebuildChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		damage []string
		locked string
	}{
		"account_balance":   {[]string{`UPDATE account_balance SET balance = 99 WHERE account_id = 'a'`}, "projector_position"},
		"account_statement": {damagedRows["account_statement"].statements[:2], "account_statement"},
		"daily_turnover":    {damagedRows["daily_turnover"].statements[:2], "daily_turnover"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewStage(t)
			s.UseProjection(name)
			produceDays(s)
			s.Consuming(nil)
			right := rowsOf(s, name)
			for _, statement := range c.damage {
				s.Exec(statement)
			}
			wrong := rowsOf(s, name)
			tx, err := s.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "SELECT FROM "+c.locked+" FOR UPDATE"); err != nil {
				t.Fatal(err)
			}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ended := make(chan int, 1)
			go func() {
				ended <- clitest.Execute(ctx, s.Servers([]string{"rebuild", "--yes"}), &bytes.Buffer{}, &bytes.Buffer{})
			}()
			s.Await("SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
			interrupt()
			if status := <-ended; status != exit.Failed {
				t.Errorf("status %d", status)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			clitest.Equal(t, rowsOf(s, name), wrong)
			if d := rebuildJSON(s, "--yes"); d["changed"] != float64(len(c.damage)) {
				t.Errorf("%v", d)
			}
			clitest.Equal(t, rowsOf(s, name), right)
			clean(s)
		})
	}
}
