package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/projection/file"
)

// TestCustomProjectionsCannotUseBuiltInNames shows that file.Reserved has the names of all built-in
// projections.
func TestCustomProjectionsCannotUseBuiltInNames(t *testing.T) {
	for _, definition := range flags.Definitions() {
		if !slices.Contains(file.Reserved, definition.Name()) {
			t.Errorf("a custom projection can be called %s: add it to Reserved in projection/file/header.go", definition.Name())
		}
	}
}

// TestCustomProjectionsCannotWriteOwnTables shows that file.OwnTables has exactly the tables of the
// migrated schema.
func TestCustomProjectionsCannotWriteOwnTables(t *testing.T) {
	s := clitest.NewStage(t)
	rows, _ := s.Pool.Query(t.Context(), `SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if !slices.Contains(file.OwnTables, table) {
			t.Errorf("a custom projection can write %s: add it to OwnTables in projection/file/header.go", table)
		}
	}
	for _, table := range file.OwnTables {
		if !slices.Contains(tables, table) {
			t.Errorf("OwnTables in projection/file/header.go has %s, which the schema does not have", table)
		}
	}
}

func TestEachProjectionHasItsOwnPositionsAndDeadLetters(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(
		clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 3, `"4"`), // a gap for the balance only
		clitest.EventOf("b", 1, `"0"`),
		strings.Replace(clitest.EventOf("a", 1, `"9"`), "a-1", "other", 1),
		"garbage", clitest.EventOf("a", 1, `"1"`),
	)
	names := []string{"account_balance", "account_statement", "daily_turnover"}
	for _, name := range names {
		s.UseProjection(name)
		s.Consuming(nil)
	}
	want := map[string]string{
		"account_balance":   "a 3 version_gap waiting, b 1 invalid_amount open, a 1 version_conflict open, null null malformed_payload open",
		"account_statement": "b 1 invalid_amount open, null null malformed_payload open, a 1 version_conflict open",
		"daily_turnover":    "b 1 invalid_amount open, null null malformed_payload open",
	}
	for _, name := range names {
		s.UseProjection(name)
		clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list"), "account_id", "received_version", "class", "status"), want[name])
		clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list", "--group="+strings.ReplaceAll(name, "_", "-")+"-projector"), "account_id", "received_version", "class", "status"), want[name])
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list", "--group=nobody")), "")
	}
	if _, _, said := s.Command("dlq", "list", "--projection=daily_turnover"); said != "" {
		t.Errorf("dead letters of other projections are noise when there are others: %s", said)
	}
	_, _, said := s.Command("dlq", "list", "--projection=daily_turnover", "--group=nobody")
	clitest.Contains(t, said, "4 dead letters are of projection account_balance, see --projection", "3 dead letters are of projection account_statement")
	positions := s.Text(`SELECT string_agg(consumer_group || ' ' || projection || ' ' || next_offset, ', ' ORDER BY projection) FROM projector_position`)
	clitest.Equal(t, positions, "account-balance-projector account_balance 6, account-statement-projector account_statement 6, daily-turnover-projector daily_turnover 6")
}

func TestDeadLettersOfAnEventProjectionAreReplayed(t *testing.T) {
	for _, name := range []string{"account_statement", "daily_turnover"} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewStage(t)
			s.UseProjection(name)
			t.Setenv("CURRENCIES", "EUR")
			dollars := strings.Replace(clitest.EventOf("a", 2, `"4"`), "EUR", "USD", 1)
			s.Produce(clitest.EventOf("a", 1, `"1"`), dollars, dollars, clitest.EventOf("b", 1, `"x"`))
			s.Consuming(nil)
			const status = "account_id received_version status"
			clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list"), strings.Fields(status)...), "a 2 open, a 2 open, b 1 open")
			clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay"), "plan"), "poison, poison, poison")

			t.Setenv("CURRENCIES", "EUR,USD")
			clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list"), strings.Fields(status)...), "a 2 ready, a 2 ready, b 1 open")
			clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay"), "plan"), "will_apply, duplicate, poison")
			done, _ := s.Some("dlq", "replay", "--yes")
			clitest.Equal(t, clitest.Pick(done, "plan", "result"), "will_apply applied, duplicate duplicate, poison poison")
			clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list"), strings.Fields(status)...), "a 2 resolved, a 2 resolved, b 1 open")
			done, _ = s.Some("dlq", "replay", "--status=resolved,open", "--yes")
			clitest.Equal(t, clitest.Pick(done, "plan", "result"), "duplicate duplicate, duplicate duplicate, poison poison")
			clitest.Contains(t, s.Must("dlq", "show", "0/0"), "resolved", name)
			var events int
			query := map[string]string{
				"account_statement": "SELECT count(*) FROM account_statement WHERE amount = 4.00",
				"daily_turnover":    "SELECT events FROM daily_turnover WHERE credited = 4.00",
			}[name]
			if err := s.Pool.QueryRow(t.Context(), query).Scan(&events); err != nil || events != 1 {
				t.Errorf("%d events of 4.00, error %v; want 1", events, err)
			}
		})
	}
}

func TestADeadLetterOlderThanTheInboxRemembersIsNotCounted(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("daily_turnover")
	t.Setenv("CURRENCIES", "EUR")
	s.Produce(clitest.EventOf("a", 1, `"1"`), strings.Replace(clitest.EventOf("a", 2, `"4"`), "EUR", "USD", 1))
	s.Consuming(nil)
	t.Setenv("CURRENCIES", "all")
	// The markers become older than the retention, so prune deletes them.
	if _, err := s.Pool.Exec(t.Context(), "UPDATE inbox SET processed_at = now() - interval '1 day'"); err != nil {
		t.Fatal(err)
	}
	clitest.Equal(t, s.Must("inbox", "prune", "--retention=1ms", "--output=json"), `{"deleted":1}`+"\n")
	clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "a 2 open")
	done, _ := s.Some("dlq", "replay", "--yes")
	clitest.Equal(t, clitest.Pick(done, "plan", "result"), "poison poison")
	clitest.Contains(t, s.Must("dlq", "replay"), "longer ago than the inbox remembers", "--to-topic")
	clitest.Equal(t, s.Must("inbox", "prune"), "deleted 0 markers\n")
	clitest.Contains(t, s.Refused(exit.Usage, "inbox", "prune", "--retention=0s"), "--retention (INBOX_RETENTION)")
}

func TestAGroupBelongsToOneProjection(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.UseProjection("daily_turnover")
	clitest.Contains(t, s.Refused(exit.Usage, "run", "--group=account-balance-projector", "--listen=127.0.0.1:0"),
		"belongs to projection account_balance", "--group")
	// The group may be in the environment of the container in which a person types the command.
	t.Setenv("KAFKA_GROUP", "account-balance-projector")
	for _, command := range []string{"lag", "position", "dlq list", "dlq summary", "dlq export", "dlq replay", "dlq discard --reason=x"} {
		clitest.Contains(t, s.Refused(exit.Failed, strings.Fields(command)...), "belongs to projection account_balance", "--group")
	}
	t.Setenv("PROJECTION", "") // the group alone
	clitest.Contains(t, s.Must("position", "--group=account-balance-projector"), "running")
	s.UseProjection("daily_turnover")
	t.Setenv("KAFKA_GROUP", "")
	s.Consuming(nil)
	t.Setenv("PROJECTION", "")
	clitest.Contains(t, s.Must("position", "--group=daily-turnover-projector"), "running")
}

// TestAnUnusedProjectionCostsNothing runs each built-in projection alone. After the run, PostgreSQL
// has used no table that has only rows or markers of other projections.
func TestAnUnusedProjectionCostsNothing(t *testing.T) {
	for name, want := range map[string]string{
		"account_balance":   "account_balance",
		"account_statement": "account_statement",
		"daily_turnover":    "daily_turnover, inbox, inbox_pruned",
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewStage(t)
			s.UseProjection(name)
			s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 3, `"1"`), "garbage", clitest.EventOf("a", 1, `"1"`), clitest.EventOf("b", 1, "7"))
			s.Consuming(nil)
			s.Pool.Reset() // a session reports its statistics when it ends
			s.Await(`SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			var used string
			err := s.Pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '') FROM pg_stat_user_tables
				WHERE coalesce(seq_scan, 0) + coalesce(idx_scan, 0) + n_tup_ins + n_tup_upd + n_tup_del > 0
				AND relname IN ('account_balance', 'inbox', 'inbox_pruned', 'daily_turnover', 'account_statement')`).Scan(&used)
			if err != nil {
				t.Fatal(err)
			}
			clitest.Equal(t, used, want)
		})
	}
}
