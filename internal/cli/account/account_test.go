package account_test

import (
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

func TestAccountsAndGaps(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	clitest.Equal(t, s.Must("account", "show", "acc-a", "--output=json"),
		`{"account_id":"acc-a","currency":"EUR","balance":10.25,"version":1,"status":"open","stale":true,"waiting_for_version":2,`+
			`"last_event_id":"acc-a-1","last_event_at":"2026-01-01T00:00:00.5Z","parked":[`+
			`{"version":3,"class":"version_gap","event_id":"acc-a-3","topic":"`+s.Topic+`","partition":0,"offset":1},`+
			`{"version":4,"class":"version_gap","event_id":"acc-a-4","topic":"`+s.Topic+`","partition":0,"offset":2},`+
			`{"version":6,"class":"version_gap","event_id":"acc-a-6","topic":"`+s.Topic+`","partition":0,"offset":3}]}`+"\n")
	clitest.Contains(t, s.Must("account", "show", "acc-b", "--output=json"),
		`{"account_id":"acc-b","currency":null,"balance":null,"version":null,"status":null,"stale":true,"waiting_for_version":1,"last_event_id":null`)
	clitest.Contains(t, s.Must("account", "show", "acc-a"), "10.25 EUR", "waits for version 2", "acc-a-6")
	s.Exec("UPDATE account_balance SET balance = 'NaN' WHERE account_id = 'acc-a'")
	clitest.Contains(t, s.Must("account", "show", "acc-a", "--output=json"), `"currency":"EUR","balance":null,"version":1`)
	clitest.Contains(t, s.Refused(exit.Failed, "account", "show", "nobody"), `"nobody" is unknown`)

	gaps := s.Lines("gaps")
	clitest.Equal(t, clitest.Pick(gaps, "account_id", "expected_version", "received_version", "class", "waiting_events"),
		"acc-a 2 3 version_gap 3, acc-b 1 1 malformed_payload 2")
	first, _, _ := strings.Cut(s.Must("gaps", "--output=json"), "\n")
	clitest.Equal(t, clitest.Keys(t, first), "account_id expected_version received_version class waiting_events since age_seconds")
	clitest.Contains(t, s.Must("gaps"), "ACCOUNT", "acc-b", "malformed_payload")
}

func TestAccountSkip(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	skip := func(version string, more ...string) []string {
		return append([]string{"account", "skip", "acc-a", "--version=" + version, "--reason=lost"}, more...)
	}
	clitest.Contains(t, s.Refused(exit.Failed, skip("3", "--yes")...), "expects version 2, not 3")
	clitest.Contains(t, s.Refused(exit.Failed, skip("1")...), "expects version 2, not 1")
	clitest.Contains(t, s.Must(skip("2")...), "nothing was changed, add --yes")
	clitest.Equal(t, s.Must(skip("2", "--yes", "--output=json")...),
		`{"account_id":"acc-a","version":2,"event_id":null,"healed_events":2,"result":"skipped"}`+"\n")
	clitest.Contains(t, s.Must("account", "show", "acc-a", "--output=json"), `"balance":22.25,"version":4`, `"waiting_for_version":5`)
	clitest.Contains(t, s.Refused(exit.Failed, skip("2", "--yes")...), "expects version 5, not 2")
	s.Refused(exit.Usage, "account", "skip", "acc-a", "--version=5")
}

func TestAccountsAndGapsBelongToTheBalance(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("daily_turnover")
	for _, args := range [][]string{{"gaps"}, {"account", "show", "a"}, {"account", "skip", "a", "--version=1", "--reason=x"}} {
		clitest.Contains(t, s.Refused(exit.Usage, args...), "only account_balance has", "--projection=account_balance")
	}
	s.UseProjection("nonsense")
	clitest.Contains(t, s.Refused(exit.Usage, "run"), `"nonsense" is unknown; use account_balance, account_statement, daily_turnover`)
}
