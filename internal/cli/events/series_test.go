package events_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

const postings = `
envelope: {entries: lines}
eventTypes: {D: FundsDebited, C: FundsCredited}
fields:
  eventId: {outer: id}
  occurredAt: {outer: at, unit: s}
  accountId: account
  version: seq
  eventType: side
  data: ""
  amount: {path: cents, unit: minor}
  currency: {constant: EUR}
`

// posting returns a record with entries, each given as "ACCOUNT VERSION SIDE CENTS".
func posting(id string, entries ...string) string {
	lines := make([]string, len(entries))
	for i, entry := range entries {
		part := strings.Fields(entry)
		lines[i] = fmt.Sprintf(`{"account":%q,"seq":%s,"side":%q,"cents":%s}`, part[0], part[1], part[2], part[3])
	}
	return fmt.Sprintf(`{"id":%q,"at":1767225600,"lines":[%s]}`, id, strings.Join(lines, ","))
}

func balances(s *clitest.Stage) string {
	s.T.Helper()
	return s.Text("SELECT string_agg(concat_ws(' ', account_id, balance, version), ', ' ORDER BY account_id) FROM account_balance")
}

// deadLetters lists the dead letters: class, status and event id of each.
func deadLetters(s *clitest.Stage) string {
	s.T.Helper()
	var all []string
	for _, l := range s.Lines("dlq", "list") {
		all = append(all, fmt.Sprint(l["class"], " ", l["status"], " ", l["event_id"]))
	}
	return strings.Join(all, ", ")
}

// brokenPosting makes a stage on which entry 1 of posting p1 is invalid. Entry 0 of posting p2
// waits for it.
func brokenPosting(t *testing.T) *clitest.Stage {
	t.Helper()
	s := clitest.NewStage(t)
	_, write := mappingFile(t)
	write(postings)
	s.Produce(posting("p1", "a 1 D 100", "b 1 C 1.5", "c 1 C 50"), posting("p2", "b 2 C 7", "c 2 D 7"))
	s.Consuming(nil)
	clitest.Equal(t, balances(s), "a -1.00 1, c 0.43 2")
	clitest.Equal(t, deadLetters(s), "invalid_amount open p1/1, version_gap waiting p2/0")
	return s
}

// TestABrokenEntryIsCorrected shows that an invalid entry becomes a dead letter with the whole
// record, and that the other entries are applied. A correction of the entry also applies the event
// that waits for it. A rebuild gives the same balances.
func TestABrokenEntryIsCorrected(t *testing.T) {
	s := brokenPosting(t)
	shown := s.Must("dlq", "show", "0/0", "--show-payload", "--output=json")
	clitest.Contains(t, shown, `"key":"__projector.errors.entry","value":"1"`, `\"account\":\"a\"`, `\"account\":\"c\"`)
	lines := s.Must("dlq", "export")
	clitest.Contains(t, lines, `"entry":1`, `"entry":0`)
	first, _, _ := strings.Cut(lines, "\n")
	file := filepath.Join(t.TempDir(), "corrected.jsonl")
	save(t, file, strings.Replace(first, `"entry":1`, `"entry":-1`, 1))
	s.Refused(exit.Usage, "dlq", "replay", "--from-file="+file, "--reason=x", "--yes")
	for _, wrong := range []string{`"entry":0`, `"entry":2`, `"entry":7`} {
		save(t, file, strings.Replace(first, `"entry":1`, wrong, 1))
		s.Refused(exit.Failed, "dlq", "replay", "--from-file="+file, "--reason=x", "--yes")
	}
	save(t, file, strings.Replace(first, `\"cents\":1.5`, `\"cents\":150`, 1))
	// Publishing is refused, because the whole record would be published but the plan shows only
	// one entry.
	s.Refused(exit.Failed, "dlq", "replay", "--from-file="+file, "--reason=x", "--to-topic="+s.Topic, "--yes")
	clitest.Equal(t, balances(s), "a -1.00 1, c 0.43 2")
	s.Must("dlq", "replay", "--from-file="+file, "--reason=x", "--yes")
	const corrected = "a -1.00 1, b 1.57 2, c 0.43 2"
	clitest.Equal(t, balances(s), corrected)
	clitest.Equal(t, deadLetters(s), "invalid_amount resolved p1/1, version_gap resolved p2/0")
	s.Must("rebuild", "--yes")
	clitest.Equal(t, balances(s), corrected)
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The consumer and a rebuild leave out only the discarded entry.
func TestAnEntryIsDiscarded(t *testing.T) {
	s := brokenPosting(t)
	s.Must("dlq", "discard", "--dlq-partition=0", "--dlq-offset=1", "--reason=x", "--yes")
	clitest.Equal(t, deadLetters(s), "invalid_amount open p1/1, version_gap discarded p2/0")
	s.Must("account", "skip", "b", "--version=1", "--reason=x", "--yes")
	clitest.Equal(t, balances(s), "a -1.00 1, b 0 1, c 0.43 2")
	s.Must("rebuild", "--yes")
	clitest.Equal(t, balances(s), "a -1.00 1, b 0 1, c 0.43 2")
	s.Must("position", "set", "--partition=0", "--start", "--reason=x", "--yes") // the records are read again
	s.Consuming(nil)
	clitest.Equal(t, balances(s), "a -1.00 1, b 0 1, c 0.43 2")
}

// The projections account_statement and daily_turnover count each valid entry of a record once,
// even if the records are read again.
func TestEntriesInOtherProjections(t *testing.T) {
	s := clitest.NewStage(t)
	_, write := mappingFile(t)
	write(postings)
	s.Produce(posting("p1", "a 1 D 100", "b 1 C 100"), posting("p2", "a 2 C 5", "a 3 D 2", "c 1 C 1.5"), posting("p1", "a 1 D 100", "b 1 C 100"))
	for name, want := range map[string]string{
		"account_statement": "SELECT string_agg(concat_ws(' ', event_id, account_id, version, amount, source_offset), ', ' ORDER BY account_id, version) FROM account_statement",
		"daily_turnover":    "SELECT string_agg(concat_ws(' ', credited, debited, events), ', ') FROM daily_turnover",
	} {
		s.UseProjection(name)
		s.Consuming(nil)
		s.Must("position", "set", "--partition=0", "--start", "--reason=x", "--yes")
		s.Consuming(nil)
		clitest.Equal(t, s.Text(want), map[string]string{
			"account_statement": "p1/0 a 1 -1.00 0, p2/0 a 2 0.05 1, p2/1 a 3 -0.02 1, p1/1 b 1 1.00 0",
			"daily_turnover":    "1.05 1.02 4",
		}[name])
	}
}

// PostgreSQL refuses one entry of a record. The consumer finds this entry, although a position
// cannot point into a record.
func TestAnEntryThatPostgreSQLRefuses(t *testing.T) {
	for _, name := range []string{"account_balance", "account_statement"} {
		s := clitest.NewStage(t)
		_, write := mappingFile(t)
		write(postings)
		s.UseProjection(name)
		s.Exec("ALTER TABLE account_balance ADD CONSTRAINT few CHECK (balance < 100)")
		s.Exec("ALTER TABLE account_statement ADD CONSTRAINT few CHECK (amount < 100)")
		s.Produce(posting("p0", "z 1 C 1"), posting("p1", "a 1 C 1", "b 1 C 2", "c 1 C 3", "d 1 C 10000", "e 1 C 5", "f 1 C 6", "g 1 C 7"))
		s.Consuming(nil)
		clitest.Equal(t, deadLetters(s), "rejected_by_database open p1/3")
		clitest.Equal(t, s.Text("SELECT count(*)::text FROM "+name), "7")
	}
}

// PostgreSQL refuses several entries of a record. Each refused entry becomes a dead letter.
func TestSeveralEntriesThatPostgreSQLRefuses(t *testing.T) {
	for _, name := range []string{"account_balance", "account_statement"} {
		s := clitest.NewStage(t)
		_, write := mappingFile(t)
		write(postings)
		s.UseProjection(name)
		s.Exec("ALTER TABLE account_balance ADD CONSTRAINT few CHECK (balance < 100)")
		s.Exec("ALTER TABLE account_statement ADD CONSTRAINT few CHECK (amount < 100)")
		s.Produce(posting("p0", "z 1 C 1"), posting("p1", "a 1 C 10000", "b 1 C 10000", "c 1 C 3", "d 1 C 10000", "e 1 C 10000", "f 1 C 6"))
		s.Consuming(nil)
		clitest.Equal(t, deadLetters(s), "rejected_by_database open p1/0, rejected_by_database open p1/1, "+
			"rejected_by_database open p1/3, rejected_by_database open p1/4")
		clitest.Equal(t, s.Text("SELECT string_agg(account_id, ' ' ORDER BY account_id) FROM "+name+" WHERE version = 1"), "c f z")
	}
}

// The breaker opens at an entry in the middle of a record. The other entries of the record are
// processed, and after resume the consumer continues with the next record.
func TestAnEntryOpensTheBreaker(t *testing.T) {
	t.Setenv("BREAKER_WINDOW", "3")
	for _, name := range []string{"account_balance", "account_statement"} {
		s := clitest.NewStage(t)
		_, write := mappingFile(t)
		write(postings)
		s.UseProjection(name)
		s.Produce(posting("p1", "a 1 C 1.5", "b 1 C 1.5", "c 1 C 1.5", "d 1 C 1.5", "e 1 C 5"), posting("p2", "f 1 C 7"))
		applied := "SELECT string_agg(account_id, ' ' ORDER BY account_id) FROM " + name + " WHERE version = 1"
		const broken = "invalid_amount open p1/0, invalid_amount open p1/1, invalid_amount open p1/2, invalid_amount open p1/3"
		s.Produced = 1 // the position stays before the second record
		s.Consuming(nil)
		clitest.Equal(t, s.Text("SELECT concat(next_offset, ' ', coalesce(breaker_reason, '') <> '') FROM projector_position"), "1 t")
		clitest.Equal(t, deadLetters(s), broken)
		clitest.Equal(t, s.Text(applied), "e")
		s.Must("resume", "--partition=0", "--reason=x", "--yes")
		s.Produced = 2
		s.Consuming(nil)
		clitest.Equal(t, s.Text("SELECT concat(next_offset, ' ', coalesce(breaker_reason, '') <> '') FROM projector_position"), "2 f")
		clitest.Equal(t, deadLetters(s), broken)
		clitest.Equal(t, s.Text(applied), "e f")
	}
}

// An account has entries in several partitions. In the end, each version has been applied once and
// in order.
func TestEntriesOfAnAccountInSeveralPartitions(t *testing.T) {
	s := clitest.NewLeaderStage(t) // with three partitions
	_, write := mappingFile(t)
	write(postings)
	for i := 1; i <= 60; i++ {
		record := posting(fmt.Sprint("p", i), fmt.Sprintf("a %d D %d", i, i), fmt.Sprintf("b %d C %d", i, i))
		s.Append(&kgo.Record{Key: fmt.Append(nil, i), Value: []byte(record)})
	}
	s.Consuming(func() {
		s.Await("SELECT count(*) = 2 FROM account_balance WHERE version = 60")
	})
	clitest.Equal(t, balances(s.Stage), "a -18.30 60, b 18.30 60")
	clitest.Equal(t, s.Text("SELECT count(*)::text FROM parked_event"), "0")
	for _, l := range s.Lines("dlq", "list") {
		if l["class"] != "version_gap" || l["status"] != "resolved" {
			t.Errorf("%v", l)
		}
	}
	s.Must("rebuild", "--yes")
	clitest.Equal(t, balances(s.Stage), "a -18.30 60, b 18.30 60")
}

// Of two entries for one version, the valid entry is parked. When the gap is filled, this entry of
// the record is applied, and not the invalid entry.
func TestAParkedEntryComesBackAsItself(t *testing.T) {
	s := clitest.NewStage(t)
	_, write := mappingFile(t)
	write(postings)
	s.Produce(posting("p1", "a 3 C 1.5", "a 3 C 5"))
	s.Consuming(nil)
	s.Produce(posting("p2", "a 1 C 7"), posting("p3", "a 2 C 7"))
	s.Consuming(nil)
	clitest.Equal(t, balances(s), "a 0.19 3")
}
