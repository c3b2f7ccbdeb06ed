package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// projected is all that is projected of accounts, without when it was written.
func (s *stage) projected() string {
	s.t.Helper()
	var text string
	err := s.pool.QueryRow(s.t.Context(), `SELECT concat_ws(E'\n',
		(SELECT string_agg(ROW (account_id, currency, balance, version, status, last_event_id, last_event_at)::text, E'\n' ORDER BY account_id)
		 FROM account_balance),
		(SELECT string_agg(ROW (account_id, version, class, event_id, topic, partition, "offset", value)::text, E'\n' ORDER BY account_id, version)
		 FROM parked_event),
		(SELECT string_agg(ROW (account_id, lowest_version, highest_version, events)::text, E'\n' ORDER BY account_id) FROM park_overflow))`).Scan(&text)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

func (s *stage) rebuildJSON(args ...string) map[string]any {
	s.t.Helper()
	lines := s.lines(append([]string{"rebuild"}, args...)...)
	if len(lines) != 1 {
		s.t.Fatalf("%d documents", len(lines))
	}
	return lines[0]
}

// kindsOf are the accounts that differ and how, in the order of the list.
func kindsOf(document map[string]any) string {
	var all []map[string]any
	for _, d := range document["differences"].([]any) {
		all = append(all, d.(map[string]any))
	}
	return pick(all, "account_id", "kind", "version", "rebuilt_version")
}

// clean expects a rebuild to find nothing, and to leave nothing behind.
func (s *stage) clean(args ...string) {
	s.t.Helper()
	if d := s.rebuildJSON(args...); d["different"] != 0.0 || d["left_alone"] != 0.0 {
		s.t.Errorf("the rebuilt balances are not the live ones: %v", d)
	}
	var left int
	if err := s.pool.QueryRow(s.t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname = 'projector_rebuild'").Scan(&left); err != nil || left != 0 {
		s.t.Errorf("%d schemas are left, %v", left, err)
	}
}

func TestRebuildMendsWhatIsWrong(t *testing.T) {
	s := newStage(t)
	s.produce(
		eventOf("a-good", 1, `"1"`), eventOf("b-balance", 1, `"2.50"`), eventOf("c-gone", 1, `"3"`), eventOf("d-behind", 1, `"4"`),
		eventOf("d-behind", 2, `"4"`), eventOf("e-held", 1, `"5"`), eventOf("e-held", 3, `"5"`), eventOf("e-held", 4, `"5"`),
		eventOf("f-headless", 2, `"6"`), eventOf("g-poison", 1, `7`), eventOf("g-poison", 2, `"7"`), eventOf("h-status", 1, `"8"`),
		"secret", eventOf("a-good", 2, `"0.25"`), eventOf("a-good", 2, `"0.25"`),
	)
	s.consuming(nil)
	right := s.projected()
	s.clean()
	equal(t, s.projected(), right)

	s.exec(`UPDATE account_balance SET balance = balance + 1 WHERE account_id = 'b-balance'`)
	s.exec(`UPDATE account_balance SET status = 'closed', last_event_id = 'x' WHERE account_id = 'h-status'`)
	s.exec(`DELETE FROM account_balance WHERE account_id IN ('c-gone', 'd-behind')`)
	s.exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('d-behind', 'EUR', 4.00, 1), ('z-phantom', 'EUR', 99.00, 5)`)
	s.exec(`DELETE FROM parked_event WHERE account_id = 'e-held' AND version = 4`)
	s.exec(`INSERT INTO park_overflow (account_id, lowest_version, highest_version, events, expected_version) VALUES ('f-headless', 7, 9, 3, 1)`)
	wrong := s.projected()

	plan := s.rebuildJSON()
	equal(t, kindsOf(plan), "b-balance different 1 1, c-gone missing null 1, d-behind different 1 2, e-held hold 1 1, "+
		"f-headless hold null null, h-status different 1 1, z-phantom unknown 5 null")
	equal(t, pick([]map[string]any{plan}, "records", "checked", "matched", "different", "left_alone", "changed", "result"), "15 9 2 7 0 0 null")
	equal(t, s.projected(), wrong)
	table := s.must("rebuild", "--limit=2")
	contains(t, table, "9 accounts compared: 2 are right, 7 are not", "b-balance", "would replace 6 accounts; nothing was changed")
	equal(t, s.projected(), wrong)

	done := s.rebuildJSON("--yes", "--remove", "--actor=night shift")
	equal(t, pick([]map[string]any{done}, "different", "changed", "replaced", "removed", "result"), "7 7 6 1 rebuilt")
	equal(t, s.projected(), right)
	s.clean("--yes")

	var audit string
	if err := s.pool.QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', action, account_id, coalesce(version::text, '-'), reason, result, actor), ', ' ORDER BY account_id)
		FROM dlq_action`).Scan(&audit); err != nil {
		t.Fatal(err)
	}
	contains(t, audit, "rebuild b-balance 1 different replaced night shift", "rebuild z-phantom - unknown removed", "rebuild d-behind 2 different")

	// Consumers go on from what was rebuilt.
	s.produce(eventOf("b-balance", 2, `"1"`), eventOf("c-gone", 2, `"1"`), eventOf("e-held", 2, `"5"`))
	s.consuming(nil)
	s.clean()
}

// What people have decided about versions is decided again.
func TestRebuildHonoursSkips(t *testing.T) {
	s := newStage(t)
	s.produce(
		eventOf("known", 1, `"1"`), eventOf("known", 2, `2`), eventOf("known", 3, `"4"`),
		eventOf("absent", 1, `"1"`), eventOf("absent", 3, `"4"`),
		eventOf("last", 1, `"1"`), eventOf("last", 2, `2`),
		eventOf("headless", 2, `"2"`),
		eventOf("twice", 1, `"1"`), eventOf("twice", 2, `1`), eventOf("twice", 4, `"8"`),
	)
	s.consuming(nil)
	for _, skip := range []string{"known 2", "absent 2", "last 2", "headless 1", "twice 2", "twice 3"} {
		account, version, _ := strings.Cut(skip, " ")
		s.must("account", "skip", account, "--version="+version, "--reason=voided", "--yes")
	}
	// The events come after all: what was passed over stays passed over.
	s.produce(eventOf("known", 2, `"2"`), eventOf("absent", 2, `"2"`), eventOf("last", 2, `"2"`), eventOf("headless", 1, `"1"`),
		eventOf("twice", 3, `"4"`), eventOf("twice", 5, `"16"`))
	s.consuming(nil)
	right := s.projected()
	contains(t, right, "(known,EUR,5.00,3", "(absent,EUR,5.00,3", "(last,EUR,1.00,2", "(headless,EUR,2.00,2", "(twice,EUR,25.00,5")
	s.clean()
	s.exec(`DELETE FROM account_balance`)
	if d := s.rebuildJSON("--yes"); d["changed"] != 5.0 {
		t.Errorf("%v", d)
	}
	equal(t, s.projected(), right)
}

// A corrected event is in the database only: the topic cannot give it back.
func TestRebuildLeavesCorrectionsAlone(t *testing.T) {
	s := newStage(t)
	s.produce(eventOf("mended", 1, `"1"`), eventOf("mended", 2, `2`), eventOf("mended", 3, `"4"`),
		eventOf("overtaken", 1, `"1"`), eventOf("overtaken", 2, `2`))
	s.consuming(nil)
	file := filepath.Join(t.TempDir(), "dead.jsonl")
	s.must("dlq", "export", "--status=open", "--file="+file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	corrected := strings.ReplaceAll(string(text), `\"amount\":2,`, `\"amount\":\"2\",`)
	if err := os.WriteFile(file, []byte(corrected), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("dlq", "replay", "--from-file="+file, "--yes")
	s.produce(eventOf("overtaken", 2, `"3"`)) // a duplicate of what was corrected, with another amount
	s.consuming(nil)
	right := s.projected()
	contains(t, right, "(mended,EUR,7.00,3", "(overtaken,EUR,3.00,2")
	d := s.rebuildJSON("--yes")
	equal(t, kindsOf(d), "mended corrected 3 1, overtaken corrected 2 2")
	equal(t, pick([]map[string]any{d}, "different", "left_alone", "changed"), "0 2 0")
	equal(t, s.projected(), right)
}

func TestRebuildOfATopicThatHasLostRecords(t *testing.T) {
	s := newStage(t)
	s.produce(eventOf("old", 1, `"1"`), eventOf("lost", 1, `"1"`), eventOf("old", 2, `"1"`), eventOf("new", 1, `"1"`), eventOf("new", 2, `"1"`))
	s.consuming(nil)
	right := s.projected()
	s.deleteRecords(2)
	said := s.refused(exitFailed, "rebuild", "--yes")
	contains(t, said, "partition 0", "begins at offset 2", "--partial")

	s.exec(`UPDATE account_balance SET balance = 99 WHERE account_id = 'new'`)
	d := s.rebuildJSON("--yes", "--partial")
	equal(t, kindsOf(d), "lost ahead 1 null, new different 2 2, old ahead 2 null")
	equal(t, s.projected(), right)
}

// Positions that were deleted, as the runbook has it for a recreated topic, are behind
// the live rows for a while.
func TestRebuildSparesWhatComesLaterInTheTopic(t *testing.T) {
	s := newStage(t)
	s.produce(eventOf("a", 1, `"1"`), eventOf("b", 1, `"1"`), eventOf("b", 2, `"1"`))
	s.consuming(nil)
	s.exec(`INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('phantom', 'EUR', 1, 1)`)
	right := s.projected()
	s.exec(`UPDATE projector_position SET next_offset = 1, judged_until = 1`)
	d := s.rebuildJSON("--yes", "--remove")
	equal(t, kindsOf(d), "b ahead 2 null, phantom unknown 1 null")
	equal(t, pick([]map[string]any{d}, "matched", "different", "left_alone", "changed"), "1 1 1 1")
	equal(t, s.projected(), strings.Replace(right, "\n(phantom,EUR,1,1,open,,)", "", 1))
}

func TestRebuildJudgesAsTheDatabaseDoes(t *testing.T) {
	s := newStage(t)
	s.exec(`ALTER TABLE account_balance ADD CONSTRAINT small CHECK (balance < 100)`)
	s.produce(eventOf("a", 1, `"1"`), eventOf("big", 1, `"1"`), eventOf("big", 2, `"1000"`), eventOf("big", 3, `"1"`), eventOf("b", 1, `"1"`))
	s.consuming(nil)
	contains(t, s.projected(), "rejected_by_database")
	s.clean()
}

func TestRebuildBeyondTheParkLimit(t *testing.T) {
	s := newStage(t)
	t.Setenv("PARK_LIMIT", "2")
	s.produce(eventOf("a", 1, `"1"`), eventOf("a", 3, `"1"`), eventOf("a", 4, `"1"`), eventOf("a", 5, `"1"`), eventOf("a", 7, `"1"`))
	s.consuming(nil)
	right := s.projected()
	contains(t, right, "(a,5,7,2)")
	s.clean()
	s.exec(`DELETE FROM account_balance`)
	s.exec(`DELETE FROM parked_event`)
	s.exec(`DELETE FROM park_overflow`)
	s.rebuildJSON("--yes")
	equal(t, s.projected(), right)
}

func TestRebuildRefusesWhatCannotEndWell(t *testing.T) {
	s := newStage(t)
	contains(t, s.refused(exitFailed, "rebuild"), "no position")
	s.produce(eventOf("a", 1, `"1"`))
	s.consuming(nil)

	s.exec(`CREATE TABLE note (account_id text REFERENCES account_balance ON DELETE CASCADE)`)
	contains(t, s.refused(exitFailed, "rebuild"), "table note", "foreign key")
	s.exec(`DROP TABLE note`)

	s.exec(`CREATE TABLE other AS SELECT * FROM projector_position`)
	s.exec(`UPDATE other SET topic = 'elsewhere'`)
	s.exec(`INSERT INTO projector_position SELECT * FROM other`)
	contains(t, s.refused(exitFailed, "rebuild"), "topic elsewhere")
	s.exec(`DELETE FROM projector_position WHERE topic = 'elsewhere'`)

	s.exec(`UPDATE projector_position SET judged_until = 7`)
	contains(t, s.refused(exitFailed, "rebuild"), "beyond the topic's end")
	s.exec(`UPDATE projector_position SET judged_until = 1, topic_id = 'old'`)
	contains(t, s.refused(exitFailed, "rebuild"), "topic recreated")

	for _, args := range [][]string{{"--projection=daily_turnover"}, {"--limit=-1"}, {"--park-limit=-1"}} {
		contains(t, s.refused(exitUsage, append([]string{"rebuild"}, args...)...), strings.SplitN(args[0], "=", 2)[0])
	}
}

// A rebuild that was killed leaves its tables, and the next one takes them away; while
// one is under way, there is no second.
func TestRebuildIsAlone(t *testing.T) {
	s := newStage(t)
	s.produce(eventOf("a", 1, `"1"`))
	s.consuming(nil)
	s.exec(`CREATE SCHEMA projector_rebuild; CREATE TABLE projector_rebuild.account_balance (leftover int)`)
	s.clean()

	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock(hashtextextended('projector rebuild ' || current_database(), 7215))`); err != nil {
		t.Fatal(err)
	}
	contains(t, s.refused(exitFailed, "rebuild"), "another rebuild")
}

func TestAnInterruptedRebuildChangesNothing(t *testing.T) {
	s := newStage(t)
	s.produce(eventOf("a", 1, `"1"`))
	s.consuming(nil)
	s.exec(`UPDATE account_balance SET balance = 99`)
	wrong := s.projected()
	// The position is held by somebody: the swap waits, and is interrupted.
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM projector_position FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, s.servers([]string{"rebuild", "--yes"}), &bytes.Buffer{}, &bytes.Buffer{})
	}()
	s.await("SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
	interrupt()
	if status := <-ended; status != exitFailed {
		t.Errorf("status %d", status)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, s.projected(), wrong)
	if d := s.rebuildJSON("--yes"); d["changed"] != 1.0 {
		t.Errorf("%v", d)
	}
	s.clean()
}
