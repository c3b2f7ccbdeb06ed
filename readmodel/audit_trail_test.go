package readmodel_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
	"projector/sql"
)

// TestTheSchemaAcceptsExactlyTheActions compares ActionKinds with the constraint of the migrated
// schema.
func TestTheSchemaAcceptsExactlyTheActions(t *testing.T) {
	pool := openPool(t)
	var constraint string
	err := pool.QueryRow(t.Context(), `SELECT pg_get_constraintdef(oid) FROM pg_constraint
		WHERE conrelid = 'dlq_action'::regclass AND conname = 'dlq_action_action_check'`).Scan(&constraint)
	if err != nil {
		t.Fatal(err)
	}
	var accepted, want []string
	for _, quoted := range regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(constraint, -1) {
		accepted = append(accepted, quoted[1])
	}
	for _, kind := range readmodel.ActionKinds() {
		want = append(want, string(kind))
	}
	slices.Sort(accepted)
	slices.Sort(want)
	if !slices.Equal(accepted, want) {
		t.Errorf("the schema accepts %v, ActionKinds has %v", accepted, want)
	}
}

func recorded(t *testing.T, pool *pgxpool.Pool, accounts ...string) {
	t.Helper()
	actions := make([]readmodel.Action, len(accounts))
	for i, account := range accounts {
		actions[i] = readmodel.Action{
			Kind: readmodel.ActionDiscard, AccountID: account, Class: event.VersionGap, Actor: "me", Reason: "ä; 1:2,-", Result: readmodel.ResultDiscarded,
		}
	}
	if err := readmodel.RecordActions(t.Context(), pool, actions); err != nil {
		t.Error(err)
	}
}

func audited(t *testing.T, pool *pgxpool.Pool, expected string) readmodel.AuditReport {
	t.Helper()
	report, err := readmodel.VerifyAudit(t.Context(), pool, expected)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestTheAuditTrailIsOneChain runs several concurrent writers. Each writer writes several rows in a
// transaction, and one transaction is rolled back.
func TestTheAuditTrailIsOneChain(t *testing.T) {
	pool := openPool(t)
	if r := audited(t, pool, ""); r.Rows != 0 || r.Head != "" || len(r.Findings) > 0 {
		t.Errorf("an empty trail: %+v", r)
	}
	const writers, rounds = 4, 10
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range rounds {
				recorded(t, pool, fmt.Sprint("a", w), fmt.Sprint("b", i), "")
			}
		})
	}
	all.Go(func() {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := tx.Exec(t.Context(), `INSERT INTO dlq_action (action, actor, result) VALUES ('skip', 'me', 'skipped')`); err != nil {
			t.Error(err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	report := audited(t, pool, "")
	if report.Rows != 3*writers*rounds || len(report.Findings) > 0 || report.Head == "" {
		t.Errorf("%+v", report)
	}
	recorded(t, pool, "later")
	if later := audited(t, pool, report.Head); !later.HeadFound || later.Head == report.Head {
		t.Errorf("a head of before is not in the chain that went on: %+v", later)
	}
}

// TestRowsOfOneTransactionAreLinkedTogether adds rows before, in and after savepoints, of which one
// is rolled back.
func TestRowsOfOneTransactionAreLinkedTogether(t *testing.T) {
	pool := openPool(t)
	const add = "INSERT INTO dlq_action (action, account_id, actor, result) SELECT 'skip', n::text, 'me', 'skipped' FROM generate_series(%d, %d) AS n;"
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		fmt.Sprintf(add, 1, 3), "SAVEPOINT a;", fmt.Sprintf(add, 4, 5), "ROLLBACK TO a; SAVEPOINT b;", fmt.Sprintf(add, 6, 8), "RELEASE b;",
		"SET CONSTRAINTS ALL IMMEDIATE;", fmt.Sprintf(add, 9, 9), "SET CONSTRAINTS ALL DEFERRED;", fmt.Sprintf(add, 10, 11),
	} {
		if _, err := tx.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := audited(t, pool, ""); report.Rows != 9 || len(report.Findings) > 0 {
		t.Errorf("%+v", report)
	}
	const order = "SELECT string_agg(account_id, ' ' ORDER BY chain) FROM dlq_action"
	same(t, "in the order of the chain", lines(t, pool, order), "1 2 3 6 7 8 9 10 11")
}

// TestARowAddedWithoutTriggersStaysOutsideTheChain shows that later rows do not hide such a row.
func TestARowAddedWithoutTriggersStaysOutsideTheChain(t *testing.T) {
	pool := openPool(t)
	recorded(t, pool, "a")
	_, err := pool.Exec(t.Context(), `ALTER TABLE dlq_action DISABLE TRIGGER USER;
		INSERT INTO dlq_action (id, action, actor, result) OVERRIDING SYSTEM VALUE VALUES (77, 'skip', 'me', 'skipped');
		ALTER TABLE dlq_action ENABLE TRIGGER USER`)
	if err != nil {
		t.Fatal(err)
	}
	recorded(t, pool, "b", "c")
	report := audited(t, pool, "")
	if report.Rows != 4 || len(report.Findings) != 1 || report.Findings[0].ID != 77 {
		t.Errorf("%+v", report)
	}
}

func TestAnAlteredAuditTrailIsFound(t *testing.T) {
	for name, c := range map[string]struct{ as, want string }{
		"changed":          {`UPDATE dlq_action SET reason = 'other' WHERE id = 2`, "2 the row, or the one before it, was changed"},
		"hash too":         {`UPDATE dlq_action SET actor = 'you' WHERE id = 2; UPDATE dlq_action a SET hash = dlq_action_hash((SELECT hash FROM dlq_action WHERE id = 1), a) WHERE id = 2`, "3 the row, or the one before it, was changed"},
		"taken out":        {`DELETE FROM dlq_action WHERE id = 2`, "3 1 rows before it are missing"},
		"taken from chain": {`UPDATE dlq_action SET chain = NULL WHERE id = 2`, "3 1 rows before it are missing; 2 the row is not in the chain of hashes"},
		"last one":         {`DELETE FROM dlq_action WHERE id = 3`, "head"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := openPool(t)
			recorded(t, pool, "a", "b", "c")
			head := audited(t, pool, "").Head
			for _, statement := range []string{"ALTER TABLE dlq_action DISABLE TRIGGER USER", c.as} {
				if _, err := pool.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			report := audited(t, pool, head)
			var got []string
			for _, f := range report.Findings {
				got = append(got, fmt.Sprint(f.ID, " ", f.What))
			}
			if !report.HeadFound && c.want == "head" {
				got = append(got, "head")
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestNobodyWritesInAnothersName shows that a client cannot set the columns that the database
// itself fills.
func TestNobodyWritesInAnothersName(t *testing.T) {
	pool := openPool(t)
	_, err := pool.Exec(t.Context(), `INSERT INTO dlq_action (action, actor, result, db_user, chain, hash) VALUES ('skip', 'me', 'skipped', 'somebody', 77, 'x')`)
	if err != nil {
		t.Fatal(err)
	}
	if n := readmodeltest.Count(t, pool, "SELECT count(*) FROM dlq_action WHERE db_user = session_user AND chain = 1 AND length(hash) = 64"); n != 1 {
		t.Error("the row says what was sent along")
	}
	for _, rewrite := range []string{"UPDATE dlq_action SET hash = NULL, chain = NULL", "UPDATE dlq_action SET db_user = 'x'"} {
		if _, err := pool.Exec(t.Context(), rewrite); err == nil {
			t.Errorf("%s: done", rewrite)
		}
	}
}

// TestRowsOfBothFormsAreOneChain shows that a row without values in the newer columns has the same
// hash as before these columns existed. A change of one of the newer columns is detected.
func TestRowsOfBothFormsAreOneChain(t *testing.T) {
	pool := openPool(t)
	recorded(t, pool, "a") // this row has no values in the newer columns
	const before = `SELECT encode(sha256(convert_to(E'\n' || (SELECT string_agg(coalesce(octet_length(f) || ':' || f, '-'), ',' ORDER BY n) FROM unnest(ARRAY[
		a.id::text, a.action, a.account_id, a.version::text, a.topic, a.partition::text, a."offset"::text, a.dlq_topic, a.dlq_partition::text,
		a.dlq_offset::text, a.class, a.actor, a.db_user, a.reason, a.result, a.altered::text, a.value_sha256, a.original_sha256, a.approved_by,
		a.approval_reason, to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')]) WITH ORDINALITY AS t (f, n)), 'UTF8')), 'hex') = hash FROM dlq_action a`
	var same bool
	if err := pool.QueryRow(t.Context(), before).Scan(&same); err != nil || !same {
		t.Errorf("a row without the later columns has another hash than before: %v", err)
	}
	err := readmodel.RecordActions(t.Context(), pool, []readmodel.Action{{
		Kind: readmodel.ActionDiscard, Group: "g", Projection: "p", Actor: "me", Result: readmodel.ResultDiscarded,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if report := audited(t, pool, ""); report.Rows != 2 || len(report.Findings) > 0 {
		t.Errorf("%+v", report)
	}
	for _, change := range []string{"consumer_group = NULL, projection = NULL", "consumer_group = 'h'", "projection = NULL", "request_id = 1", "requested_by = 'x'"} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var changed bool
		_, err = tx.Exec(t.Context(), "ALTER TABLE dlq_action DISABLE TRIGGER USER; UPDATE dlq_action SET "+change+" WHERE id = 2")
		if err == nil {
			err = tx.QueryRow(t.Context(), "SELECT dlq_action_hash(b.hash, a) <> a.hash FROM dlq_action a, dlq_action b WHERE a.id = 2 AND b.id = 1").Scan(&changed)
		}
		if err != nil || !changed {
			t.Errorf("%s: not found: %v", change, err)
		}
		_ = tx.Rollback(t.Context())
	}
}

func TestActionsAreAppendOnly(t *testing.T) {
	pool := openPool(t)
	if err := readmodel.RecordActions(t.Context(), pool, []readmodel.Action{{Kind: readmodel.ActionDiscard, Actor: "me", Result: "discarded"}}); err != nil {
		t.Fatal(err)
	}
	for _, rewrite := range []string{"UPDATE dlq_action SET actor = 'you'", "DELETE FROM dlq_action", "TRUNCATE dlq_action"} {
		if _, err := pool.Exec(t.Context(), rewrite); err == nil {
			t.Errorf("%s was allowed", rewrite)
		}
	}
}

// TestAnActionIsStoredAsItIs shows that partition 0 and offset 0 are stored, and that the texts and
// the largest numbers are stored unchanged.
func TestAnActionIsStoredAsItIs(t *testing.T) {
	pool := openPool(t)
	version := int64(math.MaxInt64)
	err := readmodel.RecordActions(t.Context(), pool, []readmodel.Action{
		{Kind: readmodel.ActionReplay, AccountID: `<a>&"\u0041"'`, Version: &version, Topic: "events", DLQTopic: "events.dlq", Actor: "é\n", Result: "applied", Altered: true},
		{Kind: readmodel.ActionSkip, Actor: "me", Result: readmodel.ResultSkipped},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := readmodeltest.Lines(t, pool, `SELECT concat_ws('|', action, account_id, version, topic, partition, "offset", dlq_topic, dlq_partition, dlq_offset, actor, altered)
		FROM dlq_action ORDER BY id`)
	want := "replay|<a>&\"\\u0041\"'|9223372036854775807|events|0|0|events.dlq|0|0|é\n|t\nskip|me|f"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTheHistoryOfARecordIsFoundByItsKey shows that the history is read by the key of each record,
// also while PostgreSQL's statistics are from before the first action of a DLQ topic. With a plain
// join, `dlq summary` ended with a timeout after a replay of 9,000 dead letters.
func TestTheHistoryOfARecordIsFoundByItsKey(t *testing.T) {
	pool := openPool(t)
	pauses, replays := make([]readmodel.Action, 60), make([]readmodel.Action, 2000)
	places := make([]readmodel.DeadLetterPlace, len(replays))
	for i := range pauses {
		pauses[i] = readmodel.Action{Kind: readmodel.ActionPause, Topic: "events", Actor: "me", Result: "paused"}
	}
	for i := range replays {
		places[i] = readmodel.DeadLetterPlace{Offset: int64(i), Original: projection.RecordRef{Topic: "events", Offset: int64(i)}}
		replays[i] = readmodel.Action{
			Kind: readmodel.ActionReplay, Topic: "events", Offset: int64(i), DLQTopic: "events.dlq", DLQOffset: int64(i), Actor: "me", Result: "applied",
		}
	}
	if err := readmodel.RecordActions(t.Context(), pool, pauses); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "ANALYZE dlq_action"); err != nil {
		t.Fatal(err)
	}
	if err := readmodel.RecordActions(t.Context(), pool, replays); err != nil {
		t.Fatal(err)
	}
	rows, _ := pool.Query(t.Context(), "EXPLAIN "+sql.Query("action_history"),
		"events.dlq", []int32{0, 0}, []int64{1, 2}, []string{"events", "events"}, []int32{0, 0}, []int64{1, 2})
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`Index Cond: .*dlq_offset`).MatchString(strings.Join(plan, "\n")) {
		t.Errorf("the history is not read by the key of a record:\n%s", strings.Join(plan, "\n"))
	}
	asked := slices.Concat(places, []readmodel.DeadLetterPlace{{Offset: 2000}})
	history, err := readmodel.LoadHistory(t.Context(), pool, "events.dlq", asked)
	if err != nil {
		t.Fatal(err)
	}
	if got := history[[2]int64{0, 1999}]; len(history) != 2000 || got.Replays != 1 || got.Discarded {
		t.Errorf("%d entries, the last is %+v", len(history), got)
	}
}
