package account_test

import (
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// typed returns a copy of the event with another type and other data.
func typed(event, eventType, data string) string {
	head, _, _ := strings.Cut(strings.Replace(event, "FundsCredited", eventType, 1), `"data"`)
	return head + `"data":` + data + "}"
}

const eur = `{"currency":"EUR"}`

func produceStatement(s *clitest.Stage) {
	s.T.Helper()
	s.Produce(
		typed(clitest.EventOf("a", 1, ""), "AccountOpened", eur), clitest.EventOf("b", 1, `"7"`),
		clitest.EventOf("a", 2, `"10.5"`), clitest.EventOf("a", 2, `"10.5"`),
		typed(strings.Replace(clitest.EventOf("a", 3, ""), "2026-01-01", "2026-02-01", 1), "FundsDebited", `{"amount":"0.51","currency":"EUR"}`),
		strings.Replace(clitest.EventOf("a", 4, `"100"`), "2026-01-01", "2026-03-01", 1),
	)
}

func TestAccountStatement(t *testing.T) {
	s := clitest.NewStage(t)
	never := s.Refused(exit.Failed, "account", "statement", "a")
	clitest.Contains(t, never, "nobody has run `projector run --projection=account_statement`")
	s.UseProjection("account_statement")
	produceStatement(s)
	s.Consuming(nil)
	line := func(rest string) string { return rest + `,"topic":"` + s.Topic + `","partition":0,"offset":` }
	first := line(`{"version":1,"event_id":"a-1","event_type":"AccountOpened","amount":null,"currency":"EUR","running_balance":0.00,"occurred_at":"2026-01-01T00:00:00.5Z"`) + "0}\n"
	second := line(`{"version":2,"event_id":"a-2","event_type":"FundsCredited","amount":10.50,"currency":"EUR","running_balance":10.50,"occurred_at":"2026-01-01T00:00:00.5Z"`) + "2}\n"
	third := line(`{"version":3,"event_id":"a-3","event_type":"FundsDebited","amount":-0.51,"currency":"EUR","running_balance":9.99,"occurred_at":"2026-02-01T00:00:00.5Z"`) + "4}\n"
	fourth := line(`{"version":4,"event_id":"a-4","event_type":"FundsCredited","amount":100.00,"currency":"EUR","running_balance":109.99,"occurred_at":"2026-03-01T00:00:00.5Z"`) + "5}\n"
	for flags, want := range map[string]string{
		"":                                 first + second + third + fourth,
		"--version-from=3":                 third + fourth,
		"--version-from=2 --version-to=3":  second + third,
		"--since=2026-02-01T00:00:00.5Z":   third + fourth,
		"--until=2026-02-01T00:00:00.5Z":   first + second,
		"--version-from=3 --until=1h":      third + fourth,
		"--version-from=9":                 "",
		"--projection=account_balance":     first + second + third + fourth,
		"--since=1h --output=text":         "no event of the account is in this range\n",
		"--version-to=0 --version-from=-1": "",
	} {
		status, out, said := s.Command(append([]string{"account", "statement", "a", "--output=json"}, strings.Fields(flags)...)...)
		if status != exit.OK || said != "" {
			t.Errorf("%s: status %d, %s", flags, status, said)
		}
		clitest.Equal(t, out, want)
	}
	clitest.Contains(t, clitest.Squeezed(s.Must("account", "statement", "a")),
		"VERSION OCCURRED TYPE AMOUNT BALANCE CURRENCY RECORD EVENT",
		"3 2026-02-01T00:00:00.5Z FundsDebited -0.51 9.99 EUR "+s.Topic+" 0/4 a-3")
	clitest.Contains(t, s.Refused(exit.Failed, "account", "statement", "nobody", "--version-to=5"), `"nobody" is unknown`)
	clitest.Contains(t, s.Refused(exit.Usage, "account", "statement", "a", "--version-from=2", "--version-to=1"), "--version-to")
	clitest.Contains(t, s.Refused(exit.Usage, "account", "statement", "a", "--first-version=-1"), "--first-version (FIRST_VERSION): must not be negative")
	clitest.Contains(t, s.Refused(exit.Usage, "account", "statement", "a", "--until=yesterday"), "--until")
	clitest.Contains(t, s.Refused(exit.Usage, "account", "statement", "a", "--projection=daily_turnover"), "only account_statement has")
}

// TestAStatementThatIsNotWhole shows that a running balance that may be wrong is left out, and that
// the reason is printed.
func TestAStatementThatIsNotWhole(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(
		clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"x"`), clitest.EventOf("a", 3, `"4"`),
		clitest.EventOf("b", 1, `"1"`), strings.Replace(clitest.EventOf("b", 2, `"1"`), "EUR", "USD", 1),
	)
	s.Consuming(nil)
	statement := func(account string, more ...string) (balances, said string) {
		t.Helper()
		args := append([]string{"account", "statement", account, "--output=json"}, more...)
		status, out, said := s.Command(args...)
		if status != exit.OK {
			t.Fatalf("status %d: %s", status, said)
		}
		var lines []string
		for line := range strings.Lines(out) {
			_, rest, _ := strings.Cut(line, `"running_balance":`)
			balance, _, _ := strings.Cut(rest, ",")
			lines = append(lines, balance)
		}
		return strings.Join(lines, " "), said
	}
	s.UseProjection("account_statement")
	s.Consuming(nil)

	balances, said := statement("a")
	clitest.Equal(t, balances, "1.00 null")
	clitest.Contains(t, said, "1 version without an entry, the first of them 2 (up to 2)", "--projection=account_statement --account=a`",
		"`projector rebuild --projection=account_statement --check` says whether the topic has lost records", "the balance is at version 1: later entries are not in it yet")
	clitest.Contains(t, s.Must("account", "statement", "a"), "unknown")
	balances, said = statement("a", "--version-to=1")
	clitest.Equal(t, balances+said, "1.00")
	balances, said = statement("b")
	clitest.Equal(t, balances, "1.00 null")
	clitest.Contains(t, said, "version 2 is in another currency")

	// A skipped version does not change the balance, and the statement shows it as skipped.
	t.Setenv("PROJECTION", "account_balance")
	for _, account := range []string{"a", "b"} {
		s.Must("account", "skip", account, "--version=2", "--reason=lost", "--yes")
	}
	balances, said = statement("a")
	clitest.Equal(t, balances, "1.00 5.00")
	clitest.Equal(t, said, "versions that were skipped on purpose and add nothing: 2; see `projector audit --action=skip --account=a`\n")
	balances, said = statement("b")
	clitest.Equal(t, balances, "1.00 1.00")
	clitest.Contains(t, said, "skipped on purpose")

	s.Exec("UPDATE account_statement SET amount = 2 WHERE account_id = 'a' AND version = 1")
	_, said = statement("a")
	clitest.Contains(t, said, "does not add up to the balance, which is at version 3", "`projector rebuild`")
	s.Exec("UPDATE account_statement SET amount = 'NaN' WHERE account_id = 'a' AND version = 1")
	balances, said = statement("a")
	clitest.Equal(t, balances, "null null")
	clitest.Contains(t, said, "its amount is no number")

	// The balance has a later version than the statement.
	s.Exec("UPDATE account_balance SET version = 3 WHERE account_id = 'b'")
	s.Exec("INSERT INTO account_balance SELECT 'c', currency, balance, 1, status, last_event_id, last_event_at, updated_at FROM account_balance WHERE account_id = 'b'")
	_, said = statement("b")
	clitest.Contains(t, said, "the statement ends with version 2 and the balance is at version 3", "`projector lag --projection=account_statement`")
	if _, said = statement("b", "--version-to=1"); said != "" {
		t.Errorf("of a part that is whole: %s", said)
	}
	clitest.Contains(t, s.Refused(exit.Failed, "account", "statement", "c"), `account "c" has a balance and nothing in the statement`)
}

// TestPlacesOfAStatement shows that the topic, partition and offset of an event are printed only if
// they are known.
func TestPlacesOfAStatement(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("account_statement")
	produceStatement(s)
	s.Consuming(nil)
	places := func() (string, string) {
		t.Helper()
		status, out, said := s.Command("account", "statement", "a", "--version-from=2", "--version-to=3")
		if status != exit.OK {
			t.Fatalf("status %d: %s", status, said)
		}
		return clitest.Squeezed(out), said
	}
	s.Exec("UPDATE account_statement SET source_partition = NULL, source_offset = NULL WHERE version = 2")
	shown, said := places()
	clitest.Contains(t, shown, "10.50 EUR - a-2", "9.99 EUR "+s.Topic+" 0/4 a-3")
	clitest.Equal(t, said, "1 entries are from before their places were kept\n")
	clitest.Equal(t, clitest.Pick(s.Lines("account", "statement", "a", "--version-to=2"), "topic", "partition", "offset"),
		s.Topic+" 0 0, null null null")

	s.Exec("INSERT INTO projector_source VALUES ('account_statement', $1, 'another id')", s.Topic)
	_, said = places()
	clitest.Contains(t, said, "the topic was recreated")
	s.Exec("INSERT INTO projector_source VALUES ('account_statement', 'older', 'id'), ('daily_turnover', 'not of it', 'id')")
	shown, said = places()
	clitest.Contains(t, shown, "9.99 EUR 0/4 a-3")
	clitest.Contains(t, said, "from more than one topic (", "older")
	if strings.Contains(said, "not of it") {
		t.Errorf("another projection's topic: %s", said)
	}
}

// TestAProposedCommandQuotesTheAccount uses an id that a shell would read as a second command. Ids
// come from producers, and people paste what is proposed.
func TestAProposedCommandQuotesTheAccount(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("x; id", 2, `"1"`))
	s.UseProjection("account_statement")
	s.Consuming(nil)
	_, _, said := s.Command("account", "statement", "x; id")
	clitest.Contains(t, said, "--account='x; id'`")
}
