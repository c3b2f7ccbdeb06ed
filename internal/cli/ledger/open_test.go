package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"projector/faulttest/pgproxy"
	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// csv joins lines to the text of a ledger.
func csv(all ...string) string { return strings.Join(all, "\n") + "\n" }

const head = "account_id,version,balance,currency"

// The function balances returns all rows of account_balance_current, the view for readers.
func balances(s *clitest.Stage) string {
	s.T.Helper()
	return s.Text(`SELECT coalesce(string_agg(concat_ws(' ', account_id, currency, balance, version, status,
		coalesce(last_event_id, '-'), last_event_at IS NOT NULL, stale), E'\n' ORDER BY account_id COLLATE "C"), '')
		FROM account_balance_current`)
}

// The function lost returns the lines of a ledger and a stage whose topic has lost its first 8
// records by retention. In the read model, the account named gap waits for removed events, and the
// account named behind has only its first event. The account named ahead has a later version than
// in the ledger, and the account named yen has another currency.
func lost(t *testing.T) (s *clitest.Stage, ledger []string) {
	t.Helper()
	s = clitest.NewStage(t)
	yen := strings.Replace(clitest.EventOf("yen", 1, `"5"`), "EUR", "JPY", 1)
	s.Produce(clitest.EventOf("behind", 1, `"1"`), clitest.EventOf("ahead", 1, `"1"`), clitest.EventOf("ahead", 2, `"2"`), yen)
	s.Consuming(nil)
	s.Produce(clitest.EventOf("gap", 1, `"1"`), clitest.EventOf("gap", 2, `"2"`), clitest.EventOf("gap", 3, `"4"`), clitest.EventOf("behind", 2, `"2"`))
	s.Produce(clitest.EventOf("gap", 4, `"8"`), clitest.EventOf("gap", 5, `"16"`), clitest.EventOf("behind", 3, `"4"`), clitest.EventOf("gap", 3, `"4"`))
	s.Exec("UPDATE projector_position SET next_offset = 8")
	s.DeleteRecords(8)
	s.Consuming(nil)
	return s, []string{head, "gap,3,7,EUR", "behind,2,3.0000,EUR", "ahead,1,1.00,EUR", "yen,2,1,EUR", "only,4,-0.50,EUR"}
}

func TestOpenStartsAccountsFromALedger(t *testing.T) {
	s, ledger := lost(t)
	before := balances(s)
	clitest.Equal(t, before, "ahead EUR 3.00 2 open ahead-2 t f\nbehind EUR 1.00 1 open behind-1 t t\ngap - f t\nyen JPY 5 1 open yen-1 t f")
	args := []string{"open", "--ledger=" + written(s, csv(ledger...)), "--reason=retention, INC-1", "--actor=me"}

	plan := s.Lines(args...)
	clitest.Equal(t, clitest.Pick(plan, "account_id", "version", "plan", "result"),
		"ahead 1 kept null, behind 2 will_open null, gap 3 will_open null, only 4 will_open null, yen 2 refused null")
	clitest.Contains(t, s.Must(args...), "another currency", "3 of 5 accounts would be opened, 1 are kept as they are, 1 refused", "add --yes to do it")
	clitest.Equal(t, balances(s), before)

	args = append(args, "--yes")
	done, said := s.Some(args...)
	clitest.Contains(t, said, "1 of 5 accounts were refused")
	clitest.Equal(t, clitest.Pick(done, "account_id", "version", "plan", "result"),
		"ahead 1 kept kept, behind 2 will_open opened, gap 3 will_open opened, only 4 will_open opened, yen 2 refused refused")
	const after = "ahead EUR 3.00 2 open ahead-2 t f\nbehind EUR 7.00 3 open behind-3 t f\ngap EUR 31.00 5 open gap-5 t f\n" +
		"only EUR -0.50 4 open - f f\nyen JPY 5 1 open yen-1 t f"
	clitest.Equal(t, balances(s), after)

	// A second run changes nothing and records nothing.
	again, _ := s.Some(args...)
	clitest.Equal(t, clitest.Pick(again, "account_id", "result"), "ahead kept, behind kept, gap kept, only kept, yen refused")
	var openings, trail string
	if err := s.Pool.QueryRow(t.Context(), `SELECT
		(SELECT string_agg(concat_ws(' ', account_id, version, balance, currency, status, source, actor, reason), E'\n' ORDER BY account_id) FROM account_opening),
		(SELECT string_agg(concat_ws(' ', action, account_id, version, actor, reason, result, length(value_sha256), length(original_sha256)), E'\n' ORDER BY id) FROM dlq_action)`).
		Scan(&openings, &trail); err != nil {
		t.Fatal(err)
	}
	clitest.Equal(t, openings, "behind 2 3.00 EUR open ledger.csv me retention, INC-1\ngap 3 7.00 EUR open ledger.csv me retention, INC-1\n"+
		"only 4 -0.50 EUR open ledger.csv me retention, INC-1")
	clitest.Equal(t, trail, "open behind 2 me retention, INC-1 opened 64 64\nopen gap 3 me retention, INC-1 opened 64 64\nopen only 4 me retention, INC-1 opened 64 64")
	s.Must("audit", "verify")

	// An event whose version is not above that of the opening is a duplicate. Its event id is not
	// compared, because these openings have no last event id. Later events are applied.
	s.Produce(strings.Replace(clitest.EventOf("only", 4, `"9"`), "only-4", "another", 1), clitest.EventOf("gap", 2, `"2"`), clitest.EventOf("only", 5, `"1"`))
	s.Consuming(nil)
	clitest.Equal(t, balances(s), strings.Replace(after, "-0.50 4 open - f f", "0.50 5 open only-5 t f", 1))
	open := s.Lines("dlq", "list", "--status=open,ready,waiting")
	if len(open) > 0 {
		t.Errorf("%d dead letters are not resolved: %v", len(open), open)
	}
}

// TestOpenStoresStatusAndLastEvent shows that the ledger may also have a status and the id of the
// last event. If the ledger has this id, an event with the same version and another id is a version
// conflict.
func TestOpenStoresStatusAndLastEvent(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec(`CREATE TABLE ledger (balance numeric(20, 4), currency text, account_id text, last_event_id text, version bigint, status text)`)
	s.Exec(`INSERT INTO ledger VALUES (12.5, 'KWD', 'a', 'a-7', 7, 'closed'), (0, NULL, 'b', NULL, 1, NULL)`)
	const query = "SELECT * FROM ledger"
	s.Must("open", "--ledger-url="+s.URL, "--ledger-query="+query, "--reason=moved", "--yes")
	clitest.Equal(t, balances(s), "a KWD 12.500 7 closed a-7 f f\nb 0 1 open - f f")
	s.Produce(strings.Replace(clitest.EventOf("a", 7, `"1"`), "a-7", "another", 1), clitest.EventOf("a", 7, `"1"`), clitest.EventOf("b", 2, `"1"`))
	s.Consuming(nil)
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list"), "account_id", "class"), "a version_conflict")
	clitest.Equal(t, balances(s), "a KWD 12.500 7 closed a-7 f f\nb EUR 1.00 2 open b-2 t f")
	clitest.Contains(t, s.Must("verify", "--ledger-url="+s.URL, "--ledger-query="+query), "2 accounts checked: 1 matched, 0 behind, 1 ahead, 0 different")
}

func TestOpenRefusesAWrongLedgerAsAWhole(t *testing.T) {
	s := clitest.NewStage(t)
	good := "good,1,1,EUR"
	for want, lines := range map[string][]string{
		"line 3: currency":                      {head, good, "acc,1,1,EURO"},
		"line 3: currency: is empty, which":     {head, good, "acc,1,10.005,"},
		"line 3: version: is less":              {head, good, "acc,0,0,EUR"},
		"line 3, column 5: version":             {head, good, "acc,-1,0,EUR"},
		"line 3: balance: does not fit":         {head, good, "acc,1,92233720368547758.08,EUR"},
		"line 3: currency: is empty":            {head, good, "acc,1,1,"},
		"line 3: status":                        {head + ",status", good + ",", "acc,1,1,EUR,frozen"},
		"line 3, column 13: last_event_id":      {head + ",last_event_id", good + ",", "acc,1,1,EUR," + strings.Repeat("x", 201)},
		`"good" is there twice, in lines 2 and`: {head, good, "acc,1,1,EUR", good},
		"no column is called currency":          {"account_id,version,balance", "acc,1,1"},
		"line 3":                                {head, good, "acc,1,1"},
	} {
		said := s.Refused(exit.Usage, "open", "--ledger="+written(s, csv(lines...)), "--reason=x", "--yes")
		clitest.Contains(t, said, "--ledger", want)
		if strings.Contains(said, "10.005") {
			t.Errorf("a balance was printed: %s", said)
		}
	}
	clitest.Contains(t, s.Refused(exit.Usage, "open", "--ledger="+written(s, csv(head, "acc,1,1,USD")), "--currencies=EUR", "--reason=x", "--yes"), "line 2: currency", "CURRENCIES")
	clitest.Contains(t, s.Refused(exit.Usage, "open", "--ledger-url="+s.URL, "--ledger-query=SELECT 'a' AS account_id, 1 AS version, 1 AS balance, 'EURO' AS currency", "--reason=x", "--yes"),
		"--ledger-query", "row 1: currency")
	clitest.Equal(t, balances(s), "")

	file := "--ledger=" + written(s, csv(head, good))
	for want, args := range map[string][]string{
		"--reason":                               {file},
		"--reason: must not be empty":            {file, "--reason= "},
		"--ledger or --ledger-url":               {"--reason=x"},
		"give only one":                          {file, "--ledger-url=" + s.URL, "--reason=x"},
		"use --projection=account_balance":       {file, "--reason=x", "--projection=account_statement"},
		"daily_turnover has none":                {file, "--reason=x", "--projection=daily_turnover"},
		"--ledger (LEDGER): open /no/such/file:": {"--ledger=/no/such/file", "--reason=x"},
	} {
		clitest.Contains(t, s.Refused(exit.Usage, append([]string{"open"}, args...)...), want)
	}
	clitest.Contains(t, s.Must("open", "--reason=x", "--yes", "--ledger="+written(s, csv(head))), "0 of 0 accounts were opened")
}

// TestOpenRefusesABalanceWithTooManyDecimals shows that only the accounts with such a balance are
// refused. The others are opened or kept.
func TestOpenRefusesABalanceWithTooManyDecimals(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("ahead", 1, `"1"`), clitest.EventOf("ahead", 2, `"2"`))
	s.Consuming(nil)
	args := []string{"open", "--ledger=" + written(s, csv(head, "ahead,1,1.005,EUR", "cent,1,10.005,EUR", "good,1,1.000,EUR", "yen,1,0.5,JPY")), "--reason=x"}
	clitest.Equal(t, clitest.Pick(s.Lines(args...), "account_id", "plan", "result"), "ahead kept null, cent refused null, good will_open null, yen refused null")
	done, said := s.Some(append(args, "--yes")...)
	clitest.Equal(t, clitest.Pick(done, "account_id", "result"), "ahead kept, cent refused, good opened, yen refused")
	clitest.Contains(t, said, "2 of 4 accounts were refused")
	clitest.Equal(t, balances(s), "ahead EUR 3.00 2 open ahead-2 t f\ngood EUR 1.00 1 open - f f")
	listed := s.Must(args...)
	clitest.Contains(t, listed, "has more fraction digits than its currency")
	if strings.Contains(listed, "10.005") {
		t.Errorf("a balance was printed: %s", listed)
	}
}

// TestOpenWithARunningConsumer shows that a running consumer reads opened accounts again instead of
// using its cached values.
func TestOpenWithARunningConsumer(t *testing.T) {
	s := clitest.NewStage(t)
	var ledger []string
	for i := range 20 {
		account := fmt.Sprintf("acc-%02d", i)
		s.Produce(clitest.EventOf(account, 1, `"1"`), clitest.EventOf(account, 9, `"1"`))
		ledger = append(ledger, account+",7,100,EUR")
	}
	s.Consuming(func() {
		s.Must("open", "--ledger="+written(s, csv(append([]string{head}, ledger...)...)), "--reason=x", "--yes")
		for i := range 20 {
			account := fmt.Sprintf("acc-%02d", i)
			s.Produce(clitest.EventOf(account, 2, `"1"`), clitest.EventOf(account, 8, `"1"`))
		}
		s.Await("SELECT count(*) = 20 FROM account_balance WHERE version = 9 AND balance = 102")
	})
	s.Await("SELECT count(*) = 0 FROM account_hold")
}

// A ledger that was cut off in its last line may still be valid: a part of a balance is a balance.
func TestALedgerThatMayBeCutOff(t *testing.T) {
	s := clitest.NewStage(t)
	const warning = "does not end with a line break"
	text := csv("currency,account_id,version,balance", "EUR,a,1,1000.00")
	for at, warned := range map[int]bool{0: false, 4: true, 1: true} {
		args := []string{"open", "--ledger=" + written(s, text[:len(text)-at]), "--reason=x"}
		status, out, said := s.Command(args...)
		if status != 0 || strings.Contains(said, warning) != warned || !strings.Contains(out, "1 of 1 accounts would be opened") {
			t.Errorf("without its last %d bytes: exit %d, %s%s", at, status, out, said)
		}
	}
}

// A column of type char(n) pads its texts. The plan of open then warns that events without the spaces
// are of other accounts.
func TestALedgerWithPaddedIDs(t *testing.T) {
	s := clitest.NewStage(t)
	const query = "SELECT id::char(8) AS account_id, 1 AS version, 1.00 AS balance, 'EUR' AS currency FROM (VALUES ('12345678'), ('acc-1'), ('acc-2')) AS l (id)"
	for _, args := range [][]string{{"open", "--reason=moved"}, {"verify"}} {
		_, _, notes := s.Command(append(args, "--ledger-url="+s.URL, "--ledger-query="+query)...)
		clitest.Contains(t, notes, "warning: --ledger-query (LEDGER_QUERY): 2 account ids begin or end with white space", "first in row 2")
	}
	_, _, notes := s.Command("open", "--reason=moved", "--ledger="+written(s, csv(head, "acc-1,1,1.00,EUR")))
	if strings.Contains(notes, "white space") {
		t.Error(notes)
	}
}

// A pooler that ignores search_path would let the ledger be read from another schema.
func TestALedgerOfAnotherSchemaIsRefused(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec(`CREATE SCHEMA bank; CREATE TABLE bank.ledger (account_id text, version bigint, balance numeric, currency text);
		CREATE TABLE ledger (LIKE bank.ledger); INSERT INTO ledger VALUES ('of another bank', 1, 5, 'EUR'); INSERT INTO bank.ledger VALUES ('a', 1, 7, 'EUR')`)
	proxy, through, err := pgproxy.ListenBefore(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	args := []string{"open", "--ledger-url=" + through + "&search_path=bank", "--ledger-query=SELECT * FROM ledger", "--reason=moved", "--yes"}
	proxy.Ignore("search_path")
	clitest.Contains(t, s.Refused(exit.Failed, args...), "reach the ledger", "search_path")
	clitest.Equal(t, balances(s), "")
	proxy.Ignore("")
	s.Must(args...)
	clitest.Equal(t, balances(s), "a EUR 7.00 1 open - f f")
}
