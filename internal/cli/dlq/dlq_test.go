package dlq_test

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/dlq"
	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

func TestListShowsHowDeadLettersStand(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	if out := s.Must("dlq", "list"); out != "no dead letters\n" {
		t.Errorf("without a DLQ topic: %q", out)
	}
	s.SeveralDeadLetters()

	clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")),
		"acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting, acc-b 1 open, acc-b 2 waiting, null null open, acc-a 1 open")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list", "--class=malformed_payload"), "class", "expected_version", "event_id", "topic", "offset", "replays"),
		"malformed_payload 1 acc-b-1 "+s.Topic+" 4 0, malformed_payload null null "+s.Topic+" 6 0")
	first, _, _ := strings.Cut(s.Must("dlq", "list", "--output=json"), "\n")
	clitest.Equal(t, clitest.Keys(t, first), clitest.ListKeys)

	for filter, want := range map[string]string{
		"--account=acc-b":                            "acc-b 1 open, acc-b 2 waiting",
		"--status=open":                              "acc-b 1 open, null null open, acc-a 1 open",
		"--class=version_gap,version_conflict":       "acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting, acc-b 2 waiting, acc-a 1 open",
		"--offset=2":                                 "acc-a 4 waiting",
		"--partition=7":                              "",
		"--dlq-offset=0 --dlq-partition=0":           "acc-a 3 waiting",
		"--dlq-offset=99 --dlq-partition=0,5":        "",
		"--since=1h --until=2999-01-01T00:00:00Z":    "acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting, acc-b 1 open, acc-b 2 waiting, null null open, acc-a 1 open",
		"--until=1h":                                 "",
		"--account=acc-a --class=version_gap":        "acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting",
		"--status=ready,resolved --status=discarded": "",
	} {
		clitest.Equal(t, clitest.Statuses(s.Lines(append([]string{"dlq", "list"}, strings.Fields(filter)...)...)), want)
	}
	for _, filter := range []string{"--until=1h", "--class=balance_overflow", "--status=discarded"} {
		for _, command := range []string{"list", "summary"} {
			clitest.Equal(t, s.Must("dlq", command, filter), "no dead letter matches the filters\n")
		}
	}
	table := s.Must("dlq", "list")
	clitest.Contains(t, table, "STATUS", "acc-a", "version_gap", "0/3", "open")
	for line := range strings.Lines(table) {
		if len([]rune(line)) > 81 {
			t.Errorf("line of %d characters: %s", len(line), line)
		}
	}

	s.Produce(clitest.EventOf("acc-a", 2, `"2"`)) // the producer fills the gap late, without any command
	s.Consuming(func() { s.Await("SELECT version = 4 FROM account_balance WHERE account_id = 'acc-a'") })
	clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list", "--account=acc-a", "--class=version_gap")),
		"acc-a 3 resolved, acc-a 4 resolved, acc-a 6 waiting")
}

func TestSummaryCountsByClassAndStatus(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	clitest.Equal(t, s.Must("dlq", "summary"), "no dead letters\n") // there is no DLQ topic yet
	clitest.Equal(t, s.Must("dlq", "summary", "--output=json"), "")
	s.SeveralDeadLetters()

	sums := s.Lines("dlq", "summary")
	clitest.Equal(t, clitest.Pick(sums, "class", "status", "records", "accounts"),
		"version_gap waiting 4 2, malformed_payload open 2 1, version_conflict open 1 1")
	first, _, _ := strings.Cut(s.Must("dlq", "summary", "--output=json"), "\n")
	clitest.Equal(t, clitest.Keys(t, first), "class status records accounts first_failed_at last_failed_at example")
	for _, sum := range sums {
		one := s.Lines("dlq", "list", "--class="+sum["class"].(string), "--status="+sum["status"].(string))
		clitest.Equal(t, clitest.Pick([]map[string]any{sum}, "first_failed_at"), clitest.Pick(one[:1], "failed_at"))
		clitest.Equal(t, clitest.Pick([]map[string]any{sum}, "last_failed_at"), clitest.Pick(one[len(one)-1:], "failed_at"))
		clitest.Contains(t, s.Must("dlq", "show", sum["example"].(string)), sum["class"].(string), sum["first_failed_at"].(string))
	}
	const fields = "class status records"
	for filter, want := range map[string]string{
		"--account=acc-b":                "malformed_payload open 1, version_gap waiting 1",
		"--status=waiting":               "version_gap waiting 4",
		"--until=1h":                     "",
		"--dlq-partition=0 --offset=2,3": "version_gap waiting 2",
	} {
		clitest.Equal(t, clitest.Pick(s.Lines(append([]string{"dlq", "summary"}, strings.Fields(filter)...)...), strings.Fields(fields)...), want)
	}
	table := s.Must("dlq", "summary")
	clitest.Contains(t, table, "EXAMPLE", "ACCOUNTS", "total", "0/0")
	for line := range strings.Lines(table) {
		if len([]rune(line)) > 81 {
			t.Errorf("line of %d characters: %s", len(line), line)
		}
	}
}

var clockTime = regexp.MustCompile(`T[0-9:.]+Z`)

func TestShowMasksUnlessAsked(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	text := s.Must("dlq", "show", "0/0")
	clitest.Contains(t, text, "version_gap", "__projector.errors.class", "acc-a-3", "FundsCredited", "waits for version 2", "***")
	untimed := clockTime.ReplaceAllString(text, "") // a time such as 20:29:04.00 must not be found as an amount
	for _, secret := range []string{"4.00", `"4"`, "10.25"} {
		if strings.Contains(untimed, secret) {
			t.Errorf("%s is shown\n%s", secret, text)
		}
	}
	clitest.Contains(t, s.Must("dlq", "show", "0/0", "--show-payload"), "4.00", "10.25", `"amount":"4"`)
	clitest.Equal(t, clitest.Keys(t, s.Must("dlq", "show", "0/0", "--output=json")), clitest.ListKeys+" headers key")
	clitest.Equal(t, clitest.Keys(t, s.Must("dlq", "show", "0/0", "--output=json", "--show-payload")), clitest.ListKeys+" headers key value")
	clitest.Contains(t, s.Must("dlq", "show", "0/5"), "cannot be applied")
	clitest.Contains(t, s.Refused(exit.Failed, "dlq", "show", "0/99"), "no record at partition 0, offset 99")
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "show", "x"), "partition/offset")
}

// TestShowOfADeadLetterWithoutAValue shows that a value that the DLQ topic does not have is null if
// it was asked for.
func TestShowOfADeadLetterWithoutAValue(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	letter := projection.DeadLetter{
		Record: projection.Record{Message: event.Message{Key: []byte("k"), Value: []byte("large")}, Topic: s.Topic}, Class: event.MalformedPayload,
	}
	s.SeveralDeadLetters()
	cut := dlq.Truncated(letter, dlq.Stamp{Group: "g", Projection: readmodel.BalanceName}, s.Topic+".dlq", time.Now(), dlq.WithoutValue)
	if err := s.Client.ProduceSync(t.Context(), cut).FirstErr(); err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, s.Must("dlq", "show", "0/7", "--output=json", "--show-payload"), `"key":"k","value":null}`)
	clitest.Equal(t, clitest.Keys(t, s.Must("dlq", "show", "0/7", "--output=json")), clitest.ListKeys+" headers key")
}

func TestOneShotsFailWhenAServerIsAway(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	gone := *s
	gone.URL = "postgres://nobody@127.0.0.1:1/none"
	for _, args := range [][]string{{"dlq", "list"}, {"account", "show", "a"}, {"gaps"}, {"migrate"}, {"migrate", "status"}} {
		clitest.Contains(t, gone.Refused(exit.Failed, args...), "reach PostgreSQL by --database-url (DATABASE_URL)")
	}
	const unchanged = "nothing was changed, run it again when this is over"
	discard := []string{"dlq", "discard", "--reason=x", "--yes"}
	clitest.Contains(t, gone.Refused(exit.Failed, discard...), "reach PostgreSQL", unchanged)
	gone = *s
	gone.Addrs = []string{"127.0.0.1:1"}
	clitest.Contains(t, gone.Refused(exit.Failed, "dlq", "list"), "reach Kafka")
	clitest.Contains(t, gone.Refused(exit.Failed, discard...), "reach Kafka", unchanged)
}

// TestAnInterruptedPlanHasChangedNothing shows that a command says that nothing was changed if it
// is interrupted before its first change.
func TestAnInterruptedPlanHasChangedNothing(t *testing.T) {
	t.Parallel()
	fake := devtest.Fake(t, devstack.FakeOptions{})
	s := clitest.StageOn(t, fake.Addrs())
	s.SeveralDeadLetters()
	for _, command := range [][]string{{"dlq", "replay"}, {"dlq", "discard", "--reason=x"}, {"rebuild"}, {"position", "set", "--all", "--start", "--reason=x"}} {
		ctx, interrupt := context.WithCancel(t.Context())
		fake.Cluster.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
			interrupt()
			return nil, nil, false
		})
		var said bytes.Buffer
		status := clitest.Execute(ctx, s.Servers(append(command, "--yes")), &bytes.Buffer{}, &said)
		if status != exit.Failed || !strings.HasSuffix(said.String(), "projector: interrupted, nothing was changed\n") {
			t.Errorf("%v: status %d, and said:\n%s", command, status, said.String())
		}
		interrupt()
	}
}
