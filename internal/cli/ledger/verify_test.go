package ledger_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// The function verified returns a read model with every kind of difference to the ledger. The
// ledger is a table in the same database and also a CSV file.
func verified(t *testing.T) (s *clitest.Stage, file string) {
	t.Helper()
	s = clitest.NewStage(t)
	s.Produce(
		clitest.EventOf("behind", 1, `"1"`), clitest.EventOf("ahead", 1, `"1"`), clitest.EventOf("ahead", 2, `"1"`),
		clitest.EventOf("same", 1, `"1.50"`), clitest.EventOf("Same", 1, `"2"`), clitest.EventOf("éa", 1, `"3"`), clitest.EventOf("changed", 1, `"4.10"`),
		clitest.EventOf("held", 3, `"5"`), // its first version is missing
		clitest.EventOf("phantom", 1, `"6"`),
		strings.Replace(clitest.EventOf("yen", 1, `"1050"`), "EUR", "JPY", 1),
	)
	s.Consuming(nil)
	s.Exec(`CREATE TABLE ledger (account_id text, version bigint, balance numeric, branch text)`)
	s.Exec(`INSERT INTO ledger VALUES ('behind', 2, 2), ('ahead', 1, 1), ('same', 1, 1.5000), ('Same', 1, 2), ('éa', 1, 3),
		('changed', 1, 4.01), ('held', 3, 15), ('nowhere', 1, 7.77), ('yen', 1, 1050.00)`)
	file = written(s, "account_id,version,balance\nyen,1,1050.00\nnowhere,1,7.77\nheld,3,15\nchanged,1,4.01\néa,1,3\nSame,1,2\n"+
		"same,1,1.5000\nahead,1,1\nbehind,2,2\n")
	return s, file
}

func written(s *clitest.Stage, text string) string {
	s.T.Helper()
	name := filepath.Join(s.T.TempDir(), "ledger.csv")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.T.Fatal(err)
	}
	return name
}

const (
	verifyCounts = `"checked":10,"matched":4,"behind":2,"ahead":1,"different":3`
	verifyLists  = `"differences":[{"account_id":"changed","kind":"different","ledger_version":1,"version":1},` +
		`{"account_id":"nowhere","kind":"missing","ledger_version":1,"version":null},` +
		`{"account_id":"phantom","kind":"unknown","ledger_version":null,"version":1}]`
)

// TestVerifyComparesEnough shows that verify fails if too few accounts were compared, because then
// "no difference" means nothing.
func TestVerifyComparesEnough(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("b", 1, `"1"`), clitest.EventOf("b", 2, `"1"`), clitest.EventOf("c", 1, `"1"`))
	s.Consuming(nil)
	ledger := func(lines string) string { return "--ledger=" + written(s, "account_id,version,balance\n"+lines) }
	ahead := ledger("a,9,9\nb,1,1\nc,7,7\n")
	clitest.Contains(t, s.Refused(exit.Failed, "verify", ahead), "nothing could be compared", "2 accounts are behind", "1 ahead")
	some := ledger("a,1,1\nb,1,1\nc,1,1\n")
	clitest.Contains(t, s.Must("verify", some), "2 matched")
	clitest.Contains(t, s.Must("verify", some, "--min-compared=0.6"), "2 matched")
	clitest.Contains(t, s.Refused(exit.Failed, "verify", some, "--min-compared=0.7"), "only 2 of 3 accounts could be compared")
	status, out, errOut := s.Command("verify", ledger(""), "--output=json")
	clitest.Contains(t, errOut, "the ledger has no accounts")
	if empty := `{"checked":0,"matched":0,"behind":0,"ahead":0,"different":0,"differences":[]}` + "\n"; status != exit.Failed || out != empty {
		t.Errorf("an empty ledger: status %d\n%s", status, out)
	}
	for _, wrong := range []string{"-0.1", "1.1", "NaN"} {
		clitest.Contains(t, s.Refused(exit.Usage, "verify", some, "--min-compared="+wrong), "must be a share from 0 to 1")
	}
}

func TestVerifyFindsWhatDiffers(t *testing.T) {
	s, file := verified(t)
	query := []string{"--ledger-url=" + s.URL, "--ledger-query=SELECT branch, balance, version, account_id FROM ledger ORDER BY random()"}
	for _, from := range [][]string{{"--ledger=" + file}, query} {
		status, out, errOut := s.Command(append([]string{"verify", "--output=json"}, from...)...)
		if status != exit.Failed {
			t.Errorf("%s: status %d", from[0], status)
		}
		clitest.Equal(t, strings.TrimSpace(out), "{"+verifyCounts+","+verifyLists+"}")
		clitest.Contains(t, errOut, "3 of 10 accounts differ")
	}

	// After a loss of data, --list-behind lists the accounts that lack events. These accounts do
	// not count as differences.
	status, out, _ := s.Command("verify", "--output=json", "--list-behind", "--ledger="+file)
	clitest.Contains(t, out, "{"+verifyCounts+",", `{"account_id":"behind","kind":"behind","ledger_version":2,"version":1}`,
		`{"account_id":"held","kind":"behind","ledger_version":3,"version":null}`)
	if status != exit.Failed || strings.Count(out, `"kind"`) != 5 {
		t.Errorf("status %d\n%s", status, out)
	}

	_, table, _ := s.Command("verify", "--ledger="+file)
	clitest.Contains(t, table, "10 accounts checked: 4 matched, 2 behind, 1 ahead, 3 different", "changed", "***")
	for _, secret := range []string{"4.10", "4.01", "7.77"} {
		if strings.Contains(table, secret) {
			t.Errorf("a balance is shown unasked:\n%s", table)
		}
	}
	_, table, _ = s.Command("verify", "--ledger="+file, "--show-balances")
	clitest.Contains(t, table, "4.10", "4.01", "7.77")
	_, out, _ = s.Command("verify", "--ledger="+file, "--show-balances", "--output=json")
	clitest.Contains(t, out, `"ledger_version":1,"version":1,"ledger_balance":4.01,"balance":4.10}`,
		`"version":null,"ledger_balance":7.77,"balance":null}`)
	_, out, errOut := s.Command("verify", "--ledger="+file, "--limit=1", "--output=json")
	clitest.Contains(t, out, verifyCounts, `"differences":[{"account_id":"changed"`)
	clitest.Contains(t, errOut, "2 more differences")
}

func TestVerifyOfARightReadModel(t *testing.T) {
	s, _ := verified(t)
	s.Exec(`DELETE FROM ledger WHERE account_id = 'nowhere'`)
	s.Exec(`UPDATE ledger SET balance = 4.1 WHERE account_id = 'changed'`)
	s.Exec(`INSERT INTO ledger VALUES ('phantom', 1, 6)`)
	query := []string{"verify", "--ledger-url=" + s.URL, "--ledger-query=SELECT * FROM ledger", "--output=json"}
	clitest.Equal(t, s.Must(query...), `{"checked":9,"matched":6,"behind":2,"ahead":1,"different":0,"differences":[]}`+"\n")

	// The command must also work on a read replica, which allows no writes.
	replica := strings.Replace(s.URL, "?", "?options=-c%20default_transaction_read_only%3Don&", 1)
	clitest.Equal(t, s.Must(append(query, "--database-url="+replica)...), `{"checked":9,"matched":6,"behind":2,"ahead":1,"different":0,"differences":[]}`+"\n")

	// The isolation level is not that of the login.
	snapshot := "--ledger-query=SELECT * FROM ledger WHERE current_setting('transaction_isolation') = 'repeatable read'"
	clitest.Contains(t, s.Must("verify", "--ledger-url="+s.URL+"&default_transaction_isolation=serializable", snapshot), "9 accounts checked: 6 matched")

	clitest.Contains(t, s.Must("verify", "--ledger-url="+s.URL, "--ledger-query=TABLE ledger", "--sample=4"), "4 accounts checked")
	clitest.Contains(t, s.Must(append(query, "--sample=100")...), `"checked":9,"matched":6,"behind":2,"ahead":1,"different":0`)
}

// TestVerifyWithAccountsOpenedSince shows that an account that the ledger lacks is no difference if
// its row was written after the ledger was read.
func TestVerifyWithAccountsOpenedSince(t *testing.T) {
	s, file := verified(t)
	s.Exec(`UPDATE account_balance SET updated_at = now() - interval '2 hours', version = version WHERE account_id = 'phantom'`)
	_, out, _ := s.Command("verify", "--ledger="+file, "--ledger-at=1h", "--output=json")
	clitest.Contains(t, out, `"phantom"`)
	_, out, _ = s.Command("verify", "--ledger="+file, "--ledger-at=3h", "--output=json")
	clitest.Contains(t, out, `"ahead":2,"different":2`)
	if strings.Contains(out, "phantom") {
		t.Errorf("an account that may be new is listed: %s", out)
	}
}

func TestVerifySampleFindsDifferences(t *testing.T) {
	s, file := verified(t)
	_, out, _ := s.Command("verify", "--ledger="+file, "--sample=9", "--output=json")
	clitest.Contains(t, out, `"checked":9,"matched":4,"behind":2,"ahead":1,"different":2`, `"nowhere"`, `"changed"`)
}

func TestVerifyRefusesABrokenLedger(t *testing.T) {
	s := clitest.NewStage(t)
	const head = "account_id,version,balance\n"
	for text, want := range map[string]string{
		head + "acc,1,1\nacc2,one,1\n":     "line 3, column 6: version",
		head + "acc,1,12.3x\n":             "line 2, column 7: balance",
		head + "acc,1,1\nb,1,1\nacc,2,2\n": `"acc" is there twice, in lines 2 and 4`,
		"account;version;balance\n":        "account_id",
		"":                                 "empty",
	} {
		said := s.Refused(exit.Usage, "verify", "--ledger="+written(s, text))
		clitest.Contains(t, said, "--ledger", want)
		if strings.Contains(said, "12.3x") {
			t.Errorf("a balance was printed: %s", said)
		}
	}
	for query, want := range map[string]string{
		"SELECT 'a' AS account_id, 1 AS version":                                           "balance",
		"SELECT 'a' AS account_id, 1 AS version, NULL::numeric AS balance":                 "row 1: balance: is null",
		"SELECT 'a' AS account_id, 1 AS version, 1e30::float8 AS balance":                  "row 1: balance",
		"SELECT 'a' AS account_id, n AS version, 1 AS balance FROM generate_series(1,2) n": `"a" is there twice, in rows 1 and 2`,
		"SELEC": "42601",
		"SELECT account_id, version, balance FROM nothing": "nothing",
	} {
		clitest.Contains(t, s.Refused(exit.Usage, "verify", "--ledger-url="+s.URL, "--ledger-query="+query), "--ledger-query", want)
	}
	for _, args := range [][]string{
		{},
		{"--ledger=a", "--ledger-url=b"},
		{"--ledger-url=postgres://h/db"},
		{"--ledger=a", "--ledger-query=q"},
		{"--ledger=/no/such/file"},
		{"--ledger=a", "--sample=-1"},
		{"--ledger=a", "--limit=-1"},
		{"--ledger=a", "--ledger-at=soon"},
		{"--ledger-url=postgres://u:s3cr3t@h:port/db", "--ledger-query=q"},
	} {
		if said := s.Refused(exit.Usage, append([]string{"verify"}, args...)...); strings.Contains(said, "s3cr3t") {
			t.Error("a password was printed")
		}
	}
	clitest.Contains(t, s.Refused(exit.Failed, "verify", "--ledger-url=postgres://u@127.0.0.1:1/db", "--ledger-query=q"), "reach the ledger")
}

func TestVerifyWritesNothing(t *testing.T) {
	s := clitest.NewStage(t)
	url, err := devstack.WithDatabase(s.URL, "no_such_database")
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(`CREATE TABLE ledger (account_id text, version bigint, balance numeric)`)
	s.Refused(exit.Usage, "verify", "--ledger-url="+s.URL, "--ledger-query=INSERT INTO ledger VALUES ('a', 1, 1) RETURNING *")
	s.Exec(`CREATE FUNCTION written() RETURNS SETOF ledger LANGUAGE sql AS $$ INSERT INTO ledger VALUES ('a', 1, 1) RETURNING * $$`)
	clitest.Contains(t, s.Refused(exit.Failed, "verify", "--ledger-url="+s.URL, "--ledger-query=SELECT * FROM written()"), "25006")
	s.Refused(exit.Failed, "verify", "--ledger-url="+url, "--ledger-query=q")
	clitest.Contains(t, s.Refused(exit.Failed, "verify", "--ledger-url="+s.URL, "--ledger-query=TABLE ledger"), "the ledger has no accounts")
}

// TestVerifySortsTheQuery shows that the database sorts the result for ids that are texts or
// integers, even if the query ends with a semicolon or a comment.
func TestVerifySortsTheQuery(t *testing.T) {
	s := clitest.NewStage(t)
	for _, id := range []string{"9", "10", "B", "a", "é", "z"} {
		s.Produce(clitest.EventOf(id, 1, `"1"`))
	}
	s.Consuming(nil)
	verify := func(query string) string { return s.Must("verify", "--ledger-url="+s.URL, "--ledger-query="+query) }
	const all = `SELECT v AS account_id, 1 AS version, 1 AS balance FROM unnest('{é,z,a,B,10,9}'::text[]) v ORDER BY v DESC`
	for _, query := range []string{all, all + " ;\n", all + " -- in no order"} {
		clitest.Contains(t, verify(query), "6 accounts checked: 6 matched")
	}
	s.Exec(`DELETE FROM account_balance WHERE account_id NOT IN ('9', '10')`)
	clitest.Contains(t, verify("SELECT v AS account_id, 1 AS version, 1 AS balance FROM generate_series(9, 10) v"), "2 accounts checked: 2 matched")
}

// If the file does not fit into memory, the error names the remedy.
func TestVerifyRefusesAFileBeyondMemory(t *testing.T) {
	s := clitest.NewStage(t)
	text := []byte("account_id,version,balance\n")
	for i := range 200_000 { // about 40 MB
		text = fmt.Appendf(text, "%0190d,1,1\n", i)
	}
	clitest.Contains(t, s.Refused(exit.Failed, "verify", "--memory-limit=96MiB", "--ledger="+written(s, string(text))),
		"does not fit into --memory-limit=96MiB", "--ledger-url", "allow more memory")
	clitest.Contains(t, s.Refused(exit.Usage, "verify", "--memory-limit=1MiB", "--ledger=a"), "--memory-limit (MEMORY_LIMIT)")
}

// TestVerifyReadsTheLedgersPasswordFromAFile shows that the password is read from the file. A
// second password in the URL is refused.
func TestVerifyReadsTheLedgersPasswordFromAFile(t *testing.T) {
	s := clitest.NewStage(t)
	file := written(s, "s3cr3t horse\n")
	given := make(chan string, 1)
	url := passwordReceiver(t, given)
	said := s.Refused(exit.Failed, "verify", "--ledger-url="+url, "--ledger-query=q", "--ledger-password-file="+file)
	clitest.Contains(t, said, "reach the ledger", "28P01")
	clitest.Equal(t, <-given, "s3cr3t horse")
	for want, args := range map[string][]string{
		"holds a password too": {"--ledger-url=postgres://u:p@h/db", "--ledger-query=q", "--ledger-password-file=" + file},
		"needs --ledger-url":   {"--ledger=a", "--ledger-password-file=" + file},
		"no such file":         {"--ledger-url=" + url, "--ledger-query=q", "--ledger-password-file=" + file + "x"},
	} {
		clitest.Contains(t, s.Refused(exit.Usage, append([]string{"verify"}, args...)...), "--ledger-password-file (LEDGER_PASSWORD_FILE)", want)
	}
}

// passwordReceiver starts a server that speaks the PostgreSQL protocol. It requires a plain-text
// password, passes it to the test and refuses it.
func passwordReceiver(t *testing.T, given chan<- string) (url string) {
	t.Helper()
	addr := devtest.Backend(t, func(backend *pgproto3.Backend) {
		backend.Send(&pgproto3.AuthenticationCleartextPassword{})
		if backend.Flush() != nil || backend.SetAuthType(pgproto3.AuthTypeCleartextPassword) != nil {
			return
		}
		message, err := backend.Receive()
		if password, is := message.(*pgproto3.PasswordMessage); err == nil && is {
			given <- password.Password
		}
		backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "28P01", Message: "no"})
		_ = backend.Flush()
	})
	return "postgres://auditor@" + addr + "/core?sslmode=disable"
}
