package dlq_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/faulttest/pgproxy"
	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

const outboxQuery = "SELECT o.account_id AS key, o.payload AS value FROM outbox o " +
	"JOIN unnest($1::text[], $2::bigint[]) AS w (account_id, version) USING (account_id, version)"

// outboxOf creates an outbox in the stage's database and returns the flags for it.
func outboxOf(s *clitest.Stage) (flags []string) {
	s.T.Helper()
	s.Exec("CREATE TABLE outbox (account_id text, version bigint, payload jsonb, headers jsonb)")
	return []string{"--outbox-url=" + s.URL, "--outbox-query=" + outboxQuery}
}

// TestGapsFetchReadsBytes reads an event that the outbox stores as bytea, with a login that shows
// bytea in another format.
func TestGapsFetchReadsBytes(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	s.Exec("CREATE TABLE outbox (account_id text, version bigint, payload bytea)")
	s.Exec("INSERT INTO outbox VALUES ('acc-a', 2, $1)", []byte(clitest.EventOf("acc-a", 2, `"2"`)))
	clitest.Equal(t, clitest.Pick(s.Lines("gaps", "fetch", "--yes", "--outbox-url="+s.URL+"&bytea_output=escape", "--outbox-query="+outboxQuery),
		"version", "plan", "result"), "2 will_apply applied")
}

// TestGapsFetchIsNotUsedUpByOneAccount has an account that waits for very many versions, because the
// TestGapsFetchReadsOneSnapshot has a login whose transactions are serializable. If those of projector were,
// too, PostgreSQL could refuse the transactions of the producer because of them.
func TestGapsFetchReadsOneSnapshot(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	flags := outboxOf(s)
	published(s, "acc-a", 2, clitest.EventOf("acc-a", 2, `"2"`))
	flags[0] += "&default_transaction_isolation=serializable"
	flags[1] += " WHERE current_setting('transaction_isolation') = 'repeatable read'"
	clitest.Equal(t, clitest.Pick(s.Lines(append([]string{"gaps", "fetch"}, flags...)...), "version", "plan"), "2 will_apply")
}

// TestGapsFetchWithoutGaps expects the error of an outbox or a query also if no account waits, because
// people try their settings then.
func TestGapsFetchWithoutGaps(t *testing.T) {
	s := clitest.NewStage(t)
	fetch := append([]string{"gaps", "fetch"}, outboxOf(s)...)
	clitest.Contains(t, s.Must(fetch...), "no account waits for an event that can be fetched")
	s.Exec("DROP TABLE outbox")
	clitest.Contains(t, s.Refused(exit.Failed, fetch...), "42P01")
}

// TestGapsFetchIsNotUsedUpByOneAccount has an account that waits for very many versions, because the
// version of its event is mistyped.
func TestGapsFetchIsNotUsedUpByOneAccount(t *testing.T) {
	s := clitest.NewStage(t)
	flags := outboxOf(s)
	s.Produce(clitest.EventOf("a", 1, `"1"`), strings.Replace(clitest.EventOf("a", 3, `"1"`), `"version":3`, `"version":9223372036854775807`, 1))
	s.Consuming(nil)
	s.Produce(clitest.EventOf("b", 1, `"1"`), clitest.EventOf("b", 3, `"1"`), clitest.EventOf("c", 1, `"1"`), clitest.EventOf("c", 3, `"1"`))
	s.Consuming(nil)
	published(s, "b", 2, clitest.EventOf("b", 2, `"2"`))
	asked := func(limit string) string {
		n := map[string]int{}
		for _, line := range s.Lines(append([]string{"gaps", "fetch", "--limit=" + limit}, flags...)...) {
			n[fmt.Sprint(line["account_id"], " ", line["plan"])]++
		}
		return fmt.Sprint(n)
	}
	clitest.Equal(t, asked("10"), "map[a not_found:10]")
	clitest.Equal(t, asked("501"), "map[a not_found:500 b will_apply:1]")
	clitest.Equal(t, asked("1000"), "map[a not_found:998 b will_apply:1 c not_found:1]")
}

// TestGapsFetchRefusesTheOutboxOfAnotherSchema connects through a pooler that ignores search_path.
// The outbox of another schema would then be read.
func TestGapsFetchRefusesTheOutboxOfAnotherSchema(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	s.Exec(`CREATE SCHEMA bank; CREATE TABLE bank.outbox (account_id text, version bigint, payload jsonb); CREATE TABLE outbox (LIKE bank.outbox)`)
	s.Exec("INSERT INTO outbox VALUES ('acc-a', 2, $1)", json.RawMessage(clitest.EventOf("acc-a", 2, `"999"`)))
	s.Exec("INSERT INTO bank.outbox VALUES ('acc-a', 2, $1)", json.RawMessage(clitest.EventOf("acc-a", 2, `"2"`)))
	proxy, through, err := pgproxy.ListenBefore(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	args := []string{"gaps", "fetch", "--yes", "--outbox-url=" + through + "&search_path=bank", "--outbox-query=" + outboxQuery}
	proxy.Ignore("search_path")
	clitest.Contains(t, s.Refused(exit.Failed, args...), "reach the outbox", "search_path")
	s.Await("SELECT version = 1 FROM account_balance WHERE account_id = 'acc-a'")
	proxy.Ignore("")
	clitest.Equal(t, clitest.Pick(s.Lines(args...), "version", "plan", "result"), "2 will_apply applied")
	s.Await("SELECT balance = 24.25 FROM account_balance WHERE account_id = 'acc-a'")
}

func published(s *clitest.Stage, account string, version int, payload string) {
	s.T.Helper()
	s.Exec("INSERT INTO outbox VALUES ($1, $2, $3)", account, version, json.RawMessage(payload))
}

func TestGapsFetch(t *testing.T) {
	s := clitest.NewStage(t)
	flags := outboxOf(s)
	fetch := func(more ...string) []string { return append(append([]string{"gaps", "fetch"}, flags...), more...) }
	clitest.Equal(t, s.Must(fetch()...), "no account waits for an event that can be fetched\n")
	s.SeveralDeadLetters() // acc-a waits for version 2, and its versions 3, 4 and 6 are parked; acc-b waits for its invalid first event
	published(s, "acc-a", 2, clitest.EventOf("acc-a", 2, `"2"`))
	published(s, "acc-a", 7, clitest.EventOf("acc-a", 7, `"64"`))
	published(s, "acc-b", 1, clitest.EventOf("acc-b", 1, `"1"`))

	clitest.Equal(t, s.Must(fetch("--output=json")...), `{"account_id":"acc-a","version":2,"plan":"will_apply","result":null}`+"\n")
	clitest.Contains(t, s.Must(fetch()...), "PLAN", "acc-a", "1 will_apply; nothing was changed, add --yes to do it")
	clitest.Contains(t, s.Must(fetch("--account=acc-b")...), "no account waits")
	clitest.Contains(t, s.Must("account", "show", "acc-a", "--output=json"), `"version":1,`)
	clitest.Equal(t, clitest.Pick(s.Lines(fetch("--yes", "--actor=ann", "--reason=lost, INC-1")...), "account_id", "version", "plan", "result"),
		"acc-a 2 will_apply applied")
	clitest.Contains(t, s.Must("account", "show", "acc-a", "--output=json"), `"balance":24.25,"version":4,`, `"waiting_for_version":5`)
	trail := s.Lines("audit", "--action=fetch")
	clitest.Equal(t, clitest.Pick(trail, "account_id", "version", "class", "actor", "reason", "result", "altered", "original_sha256"),
		"acc-a 2 null ann lost, INC-1 applied false null")
	s.Await("SELECT topic IS NULL AND dlq_topic IS NULL AND length(value_sha256) = 64 FROM dlq_action WHERE action = 'fetch'")

	lines, said := s.Some(fetch("--yes")...)
	clitest.Equal(t, clitest.Pick(lines, "account_id", "version", "plan", "result"), "acc-a 5 not_found not_found")
	clitest.Contains(t, said, "1 of 1 versions could not be applied")
	published(s, "acc-a", 5, clitest.EventOf("acc-a", 5, `7.5`))
	clitest.Equal(t, clitest.Pick(s.Lines(fetch()...), "version", "plan", "result"), "5 poison null")
	lines, _ = s.Some(fetch("--yes")...)
	clitest.Equal(t, clitest.Pick(lines, "version", "plan", "result"), "5 poison poison")
	clitest.Equal(t, clitest.Pick(s.Lines("audit", "--action=fetch"), "version", "class", "result"), "2 null applied, 5 malformed_payload poison")
	if text := s.Must(fetch()...); strings.Contains(text, "7.5") {
		t.Errorf("the plan shows an amount: %s", text)
	}

	// Only versions that accounts wait for are applied, even if the query returns other events.
	flags[1] = "--outbox-query=SELECT account_id, payload FROM outbox WHERE account_id = ANY ($1) OR version = ANY ($2)"
	status, out, said := s.Command(fetch("--output=json")...)
	clitest.Equal(t, out, `{"account_id":"acc-a","version":5,"plan":"poison","result":null}`+"\n")
	clitest.Contains(t, said, "returned 2 events that are not applied", "this account and version were not asked for", "--outbox-query")
	if status != exit.OK {
		t.Errorf("status %d", status)
	}
}

// TestOtherProjectionsGetAFetchedEventFromTheTopic shows that a fetched event changes only
// account_balance. The other projections get the event only if the producer sends it again. A
// rebuild of these projections does not help, because it reads the same topic.
func TestOtherProjectionsGetAFetchedEventFromTheTopic(t *testing.T) {
	s := clitest.NewStage(t)
	flags := outboxOf(s)
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 3, `"4"`))
	s.Consuming(nil)
	published(s, "a", 2, clitest.EventOf("a", 2, `"2"`))
	s.Must(append([]string{"gaps", "fetch", "--yes"}, flags...)...)
	others := func() string {
		for _, name := range []string{"account_statement", "daily_turnover"} {
			s.UseProjection(name)
			s.Consuming(nil)
			if d := s.Lines("rebuild", "--yes"); d[0]["changed"] != 0.0 {
				t.Errorf("%s was changed: %v", name, d)
			}
		}
		s.UseProjection("account_balance")
		s.Consuming(nil)
		return s.Text(`SELECT concat_ws(' ', 'statement', (SELECT string_agg(version::text, ',' ORDER BY version) FROM account_statement),
			'turnover', (SELECT sum(credited) FROM daily_turnover), 'balance', (SELECT balance FROM account_balance))`)
	}
	clitest.Equal(t, others(), "statement 1,3 turnover 5.00 balance 7.00")
	_, _, said := s.Command("account", "statement", "a")
	clitest.Contains(t, said, "1 version without an entry, the first of them 2")

	s.Produce(clitest.EventOf("a", 2, `"2"`))
	clitest.Equal(t, others(), "statement 1,2,3 turnover 7.00 balance 7.00")
	_, _, said = s.Command("account", "statement", "a")
	clitest.Equal(t, said, "")
}

// TestGapsFetchFromDebeziumsOutbox uses the table of deploy/debezium and the query of
// docs/debezium.md.
func TestGapsFetchFromDebeziumsOutbox(t *testing.T) {
	t.Setenv("EVENT_FORMAT", "debezium-outbox")
	s := clitest.NewStage(t)
	s.Exec(between(t, "../../../deploy/debezium/outbox.sql", `(?s)(CREATE TABLE outbox .*?\n\));`))
	for version, amount := range map[int]string{1: "1.00", 2: "2.00", 3: "4.00", 4: "8.00"} {
		s.Exec(`INSERT INTO outbox (aggregatetype, aggregateid, type, version, occurred_at, payload)
			VALUES ('account', 'acc-a', 'FundsCredited', $1, '2026-01-01T00:00:00.25Z', jsonb_build_object('amount', $2::text, 'currency', 'EUR'))`,
			version, amount)
	}
	for _, version := range []string{"1", "4"} {
		s.Append(&kgo.Record{
			Key: []byte("acc-a"), Value: []byte(`{"amount":"` + version + `.00","currency":"EUR"}`),
			Headers: []kgo.RecordHeader{
				{Key: "id", Value: []byte("e-" + version)},
				{Key: "eventType", Value: []byte("FundsCredited")},
				{Key: "version", Value: []byte(version)},
				{Key: "occurredAt", Value: []byte("2026-01-01T00:00:00Z")},
			},
		})
	}
	s.Consuming(nil)
	query := between(t, "../../../docs/debezium.md", "(?s)```sql\n(SELECT o.aggregateid AS key.*?)```")
	args := []string{"gaps", "fetch", "--yes", "--outbox-url=" + s.URL, "--outbox-query=" + query}
	clitest.Equal(t, clitest.Pick(s.Lines(args...), "version", "plan", "result"), "2 will_apply applied, 3 will_apply applied")
	clitest.Contains(t, s.Must("account", "show", "acc-a", "--output=json"), `"balance":11.00,"version":4,`, `"last_event_id":"e-4"`)
}

// between returns the text in a file that the first group of a regular expression matches.
func between(t *testing.T, path, expression string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(expression).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no %s", path, expression)
	}
	return string(found[1])
}

// A query may return other types and column names, and may use its parameters without casts.
func TestGapsFetchReadsOtherColumns(t *testing.T) {
	s := clitest.NewStage(t)
	flags := outboxOf(s)
	s.SeveralDeadLetters()
	published(s, "acc-a", 2, clitest.EventOf("acc-a", 2, `"2"`))
	flags[1] = `--outbox-query=SELECT convert_to(o.account_id, 'UTF8'), convert_to(o.payload::text, 'UTF8'), NULL
		FROM outbox o JOIN unnest($1, $2) AS w (account_id, version) USING (account_id, version)`
	clitest.Equal(t, clitest.Pick(s.Lines(append([]string{"gaps", "fetch"}, flags...)...), "version", "plan"), "2 will_apply")
}

// TestGapsFetchLeavesOutWrongHeaders shows that one row with wrong headers does not prevent that the
// others are applied.
func TestGapsFetchLeavesOutWrongHeaders(t *testing.T) {
	s := clitest.NewStage(t)
	flags := outboxOf(s)
	s.SeveralDeadLetters()
	published(s, "acc-a", 2, clitest.EventOf("acc-a", 2, `"2"`))
	flags[1] = `--outbox-query=SELECT account_id, payload, headers FROM outbox WHERE account_id = ANY ($1) AND version = ANY ($2)
		UNION ALL SELECT 'a', '{}', '[1]'`
	said := s.Must(append([]string{"gaps", "fetch", "--yes"}, flags...)...)
	clitest.Contains(t, said, "applied")
	s.Await("SELECT balance = 24.25 FROM account_balance WHERE account_id = 'acc-a'")
	flags[1] = "--outbox-query=SELECT 'a', 'b', '[1]' WHERE $1 <> '{}' AND $2 <> '{}'"
	_, _, said = s.Command(append([]string{"gaps", "fetch"}, flags...)...)
	clitest.Contains(t, said, "returned 1 events that are not applied", "because its column headers does not hold a JSON object, such as")
}

func TestGapsFetchSaysWhatIsWrong(t *testing.T) {
	s := clitest.NewStage(t)
	flags := outboxOf(s)
	s.SeveralDeadLetters()
	url, query := flags[0], flags[1]
	for name, c := range map[string]struct {
		status int
		args   []string
		said   string
	}{
		"no outbox":         {exit.Usage, nil, "--outbox-url (OUTBOX_URL): say where"},
		"no query":          {exit.Usage, []string{url}, "--outbox-query (OUTBOX_QUERY): must select by $1"},
		"no versions":       {exit.Usage, []string{url, "--outbox-query=SELECT 1 WHERE 'a' = ANY ($1) AND $20"}, "$2, their versions"},
		"no URL":            {exit.Usage, []string{"--outbox-url=postgres://a:hunter2@[", query}, "--outbox-url (OUTBOX_URL)"},
		"two passwords":     {exit.Usage, []string{"--outbox-url=postgres://a:hunter2@b/c", query, "--outbox-password-file=x"}, "holds a password too"},
		"another projector": {exit.Usage, []string{url, query, "--projection=daily_turnover"}, "only account_balance has"},
		"no such table":     {exit.Failed, []string{url, query + " JOIN nowhere ON true"}, `--outbox-query (OUTBOX_QUERY): ERROR 42P01`},
		"one column":        {exit.Failed, []string{url, "--outbox-query=SELECT 1 WHERE '' = ANY ($1) AND 1 = ANY ($2)"}, "must return the columns key, value"},
		"it writes":         {exit.Failed, []string{url, "--outbox-query=WITH d AS (DELETE FROM outbox RETURNING 1) SELECT 'a', 'b' FROM d WHERE $1 <> '{}' AND $2 <> '{}'"}, "25006"},
		"nobody there":      {exit.Failed, []string{"--outbox-url=postgres://a:hunter2@127.0.0.1:1/c", query}, "reach the outbox by --outbox-url (OUTBOX_URL)"},
	} {
		said := s.Refused(c.status, append([]string{"gaps", "fetch"}, c.args...)...)
		clitest.Contains(t, said, c.said)
		if strings.Contains(said, "hunter2") {
			t.Errorf("%s: the password is shown: %s", name, said)
		}
	}
}
