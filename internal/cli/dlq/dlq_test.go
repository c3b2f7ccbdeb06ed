package dlq_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
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

// TestFloatsAreCorrectedInBulkThroughTheTopic follows the runbook's procedure for very many dead
// letters. It exports a class, corrects the text as jq does in the runbook, checks the plan and
// publishes the events in parts.
func TestFloatsAreCorrectedInBulkThroughTheTopic(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	const accounts = 30
	for version := 1; version <= 4; version++ {
		for a := range accounts {
			amount := fmt.Sprintf("%d.%02d", 10+a, a)
			if version%2 == 1 {
				amount = strconv.Quote(amount)
			}
			s.Produce(clitest.EventOf(fmt.Sprint("acc-", a), version, amount))
		}
	}
	s.Consuming(nil)
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "summary", "--status=open,waiting"), "class", "status", "records"),
		"malformed_payload open 30, malformed_payload waiting 30, version_gap waiting 30")

	var parts [2]strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(s.Must("dlq", "export", "--class=malformed_payload", "--status=open,waiting")), "\n") {
		var letter map[string]any
		if err := json.Unmarshal([]byte(line), &letter); err != nil {
			t.Fatal(err)
		}
		clitest.Contains(t, letter["message"].(string), "data.amount: is a number")
		letter["value"] = regexp.MustCompile(`"amount":([0-9.]+)`).ReplaceAllString(letter["value"].(string), `"amount":"$1"`)
		corrected, err := json.Marshal(letter)
		if err != nil {
			t.Fatal(err)
		}
		parts[i/accounts].WriteString(string(corrected) + "\n")
	}
	for i := range parts {
		file := filepath.Join(t.TempDir(), fmt.Sprint("part-", i))
		if err := os.WriteFile(file, []byte(parts[i].String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			clitest.Contains(t, s.Must("dlq", "replay", "--from-file="+file, "--reason=INC-1"), "30 will_apply; whether PostgreSQL accepts them is only known with --yes; nothing was changed")
		}
		clitest.Contains(t, s.Must("dlq", "replay", "--from-file="+file, "--reason=INC-1", "--to-topic="+s.Topic, "--yes"), "30 published")
		s.Produced += accounts
	}
	s.Consuming(nil)
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "summary"), "class", "status", "records"),
		"malformed_payload resolved 60, version_gap resolved 30")
	clitest.Contains(t, s.Must("account", "show", "acc-7", "--output=json"), `"balance":68.28,"version":4`, `"stale":false`)
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

func TestAPoisonEventIsCorrectedByFile(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	file := filepath.Join(t.TempDir(), "dead.jsonl")
	clitest.Contains(t, s.Must("dlq", "export", "--file="+file, "--account=acc-b"), "exported 2 dead letters")
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "export", "--file="+file), "exists already")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Equal(t, s.Must("dlq", "export", "--account=acc-b", "--output=json"), string(text)) // without a file, the output goes to stdout
	edited := strings.Replace(string(text), `\"amount\":7.5`, `\"amount\":\"7.5\"`, 1)
	if edited == string(text) {
		t.Fatalf("nothing to correct in\n%s", text)
	}
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}

	replay := []string{"dlq", "replay", "--from-file=" + file, "--reason=INC-1"}
	clitest.Equal(t, clitest.Pick(s.Lines(replay...), "account_id", "expected_version", "received_version", "status", "plan"),
		"acc-b 1 1 ready will_apply, acc-b 1 2 waiting will_apply")
	clitest.Contains(t, s.Must(replay...), "2 will_apply; whether PostgreSQL accepts")
	clitest.Contains(t, s.Must("account", "show", "acc-b"), "first version is missing")

	clitest.Equal(t, clitest.Pick(s.Lines(append(replay, "--yes")...), "plan", "result"), "will_apply applied, will_apply applied")
	clitest.Contains(t, s.Must("account", "show", "acc-b", "--output=json"), `"balance":8.50,"version":2`, `"stale":false`, `"parked":[]`)
	clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list", "--account=acc-b")), "acc-b 1 resolved, acc-b 2 resolved")
	clitest.Equal(t, clitest.Pick(s.Lines(append(replay, "--yes")...), "plan", "result"), "duplicate duplicate, duplicate duplicate")

	// The audit trail records who replayed, why, and what was altered.
	trail := s.Lines("audit", "--account=acc-b", "--action=replay")
	clitest.Equal(t, clitest.Pick(trail, "version", "reason", "result", "altered"),
		"1 INC-1 applied true, 2 INC-1 applied false, 1 INC-1 duplicate true, 2 INC-1 duplicate false")
	first, second := trail[0], trail[1]
	if first["value_sha256"] == first["original_sha256"] || second["value_sha256"] != second["original_sha256"] || first["db_user"] == nil {
		t.Errorf("digests and user of %v and %v", first, second)
	}

	// A correction must keep the event id, the account and the version. Otherwise the whole file is
	// refused.
	for from, to := range map[string]string{
		`\"acc-b\"`: `\"acc-z\"`, `\"version\":2`: `\"version\":7`, `acc-b-2\"`: `acc-b-2x\"`,
		"acc-b-2": "acc-b-2x", // also if the line's own field for the event is changed
	} {
		other := strings.ReplaceAll(edited, from, to)
		if other == edited {
			t.Fatalf("%s is not in\n%s", from, edited)
		}
		if err := os.WriteFile(file, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		clitest.Contains(t, s.Refused(exit.Failed, append(replay, "--yes")...), "line ", "keeps accountId, eventId and version", "nothing was replayed")
	}
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "replay", "--from-file="+file), "--reason")

	if err := os.WriteFile(file, []byte(edited+`{"topic":`), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, s.Refused(exit.Usage, replay...), "line 3")
}

// TestALineThatTheTopicDoesNotHaveIsRefused shows that a line is refused if the DLQ topic does not
// have its dead letter. With --not-in-topic such a line is applied and marked as altered.
func TestALineThatTheTopicDoesNotHaveIsRefused(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	file := filepath.Join(t.TempDir(), "invented.jsonl")
	exported := s.Must("dlq", "export", "--account=acc-b", "--class=malformed_payload")
	corrected := strings.Replace(exported, `\"amount\":7.5`, `\"amount\":\"9999999.00\"`, 1)
	replay := []string{"dlq", "replay", "--from-file=" + file, "--reason=INC-1"}
	write := func(text string) {
		t.Helper()
		if text == corrected || text == exported {
			t.Fatalf("nothing was replaced in\n%s", text)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	offset := regexp.MustCompile(`"dlq_offset":\d+`)
	invented := offset.ReplaceAllString(corrected, `"dlq_offset":900004`)
	sealed := offset.ReplaceAllString(exported, `"dlq_offset":900004`) // its sha256 is correct
	for name, text := range map[string]string{
		"offset":          "\n" + invented,
		"right digest":    "\n" + sealed,
		"partition":       "\n" + strings.Replace(corrected, `"dlq_partition":0`, `"dlq_partition":7`, 1),
		"negative offset": "\n" + offset.ReplaceAllString(corrected, `"dlq_offset":-1`),
		"topic":           "\n" + strings.Replace(corrected, `"dlq_topic":"`+s.Topic, `"dlq_topic":"other`, 1),
		"source":          "\n" + strings.Replace(corrected, `"topic":"`+s.Topic+`"`, `"topic":"other"`, 1),
		"class":           "\n" + strings.Replace(corrected, `"class":"malformed_payload"`, `"class":"version_gap"`, 1),
	} {
		write(text)
		if said := s.Refused(exit.Failed, append(replay, "--yes")...); !strings.Contains(said, "line 2: ") || !strings.Contains(said, "nothing was replayed") {
			t.Errorf("%s: %s", name, said)
		}
	}
	clitest.Equal(t, clitest.Pick(s.Lines("audit"), "action"), "")
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "replay", "--not-in-topic"), "--from-file")

	write(invented)
	allowed := slices.Concat(replay, []string{"--not-in-topic"})
	clitest.Equal(t, clitest.Pick(s.Lines(allowed...), "plan", "altered", "not_in_topic", "message"), "will_apply true true not in the DLQ topic")
	clitest.Contains(t, s.Must(allowed...), "not in the DLQ topic", "1 will_apply")
	clitest.Equal(t, clitest.Pick(s.Lines(append(allowed, "--yes")...), "result"), "applied")
	trail := s.Lines("audit", "--account=acc-b")
	clitest.Equal(t, clitest.Pick(trail, "result", "altered", "original_sha256", "reason"), "applied true null INC-1; not in the DLQ topic")

	// A line that is not in the DLQ topic counts as altered even if its digest is correct.
	write(sealed)
	clitest.Equal(t, clitest.Pick(s.Lines(allowed...), "plan", "altered", "not_in_topic"), "duplicate true true")
}

// TestALineThatIsNoLongerAnEventRefusesTheFile shows that the file is refused if the value of a
// line is no event.
func TestALineThatIsNoLongerAnEventRefusesTheFile(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	file := filepath.Join(t.TempDir(), "dead.jsonl")
	exported := s.Must("dlq", "export", "--account=acc-b")
	corrected := strings.Replace(exported, `\"amount\":7.5`, `\"amount\":\"7.5\"`, 1)
	first, second, _ := strings.Cut(corrected, "\n")
	value := regexp.MustCompile(`"value":"([^"\\]|\\.)*"`)
	for _, none := range []string{`"value":"garbage"`, `"value":"{}"`, `"value":null`, `"value":"{\"eventId\":\"acc-b-2\"}"`} {
		if err := os.WriteFile(file, []byte(first+"\n"+value.ReplaceAllLiteralString(second, none)), 0o600); err != nil {
			t.Fatal(err)
		}
		clitest.Contains(t, s.Refused(exit.Failed, "dlq", "replay", "--from-file="+file, "--reason=INC-1", "--yes"),
			"line 2: is no longer an event", "nothing was replayed")
	}
	clitest.Equal(t, clitest.Pick(s.Lines("audit"), "action"), "")
	// A file without corrections is accepted, but the plan says that its events still cannot be
	// applied.
	if err := os.WriteFile(file, []byte(s.Must("dlq", "export", "--class=malformed_payload")), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--from-file="+file, "--reason=INC-1"), "plan", "altered"), "poison false, poison false")
}

func TestReplayPlansAndApplies(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	const plan = "null null poison, acc-a 1 poison, acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting, acc-b 1 poison, acc-b 2 waiting"
	lines := s.Lines("dlq", "replay")
	clitest.Equal(t, clitest.Pick(lines, "account_id", "received_version", "plan"), plan)
	first, _, _ := strings.Cut(s.Must("dlq", "replay", "--output=json"), "\n")
	clitest.Equal(t, clitest.Keys(t, first), clitest.ListKeys+" plan")
	clitest.Contains(t, s.Must("dlq", "replay"), "4 waiting, 3 poison; nothing was changed, and --yes would apply none of them")
	lines, said := s.Some("dlq", "replay", "--yes", "--limit=1")
	clitest.Equal(t, clitest.Pick(lines, "plan", "result"), "poison poison")
	clitest.Contains(t, said, "1 of 1 records could not be applied")

	lines, said = s.Some("dlq", "replay", "--yes")
	clitest.Equal(t, clitest.Pick(lines, "result"), "poison, poison, waiting, waiting, waiting, poison, waiting")
	clitest.Contains(t, said, "7 of 7 records could not be applied")
	s.Must("account", "skip", "acc-a", "--version=2", "--reason=lost", "--yes")
	lines, _ = s.Some("dlq", "replay", "--account=acc-a", "--yes")
	clitest.Equal(t, clitest.Pick(lines, "received_version", "result"), "1 poison, 3 duplicate, 4 duplicate, 6 waiting")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list", "--account=acc-a", "--dlq-offset=2"), "replays"), "2")
	lines, _ = s.Some("dlq", "replay", "--account=acc-a", "--yes", "--max-replays=2")
	clitest.Contains(t, clitest.Pick(lines, "result"), "refused")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--limit=2"), "plan"), "poison, poison")
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "replay", "--class=nonsense"), "nonsense")
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "list", "--since=yesterday"), "--since")
}

func TestReplayFillsAHoleTheConsumerCouldNot(t *testing.T) {
	s := clitest.NewStage(t)
	// Events beyond the park limit are in the DLQ topic, but not in the database.
	s.Produce(clitest.EventOf("acc", 2, `"2"`), clitest.EventOf("acc", 3, `"4"`), clitest.EventOf("acc", 4, `"8"`), clitest.EventOf("acc", 5, `"16"`))
	t.Setenv("PARK_LIMIT", "2")
	s.Consuming(nil)
	clitest.Contains(t, s.Must("account", "show", "acc"), "2 of them are beyond the park limit")
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(func() {
		s.Await("SELECT coalesce(max(version) = 3, false) FROM account_balance")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list")), "acc 2 resolved, acc 3 resolved, acc 4 ready, acc 5 waiting")
		clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--account=acc"), "plan"), "duplicate, duplicate, will_apply, will_apply")
		// Without a filter, resolved dead letters are not in the plan.
		clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--yes"), "plan", "result"), "will_apply applied, will_apply applied")
	})
	clitest.Contains(t, s.Must("account", "show", "acc", "--output=json"), `"balance":31.00,"version":5`, `"stale":false`)
}

func TestReplayToATopicRaisesTheCount(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	s.Must("migrate")
	args := []string{"dlq", "replay", "--to-topic=" + s.Topic, "--account=acc-b"}
	clitest.Equal(t, clitest.Pick(s.Lines(append(args, "--yes")...), "result"), "published, published")
	s.Produced += 2
	s.Consuming(nil)
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "list", "--account=acc-b"), "received_version", "offset", "replays"),
		"1 4 1, 2 5 1, 1 8 1, 2 9 1")
	lines, _ := s.Some(append(args, "--yes", "--max-replays=1")...)
	clitest.Contains(t, clitest.Pick(lines, "result"), "refused")
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "replay", "--to-topic="+s.Topic+".dlq"), "must not be the DLQ topic")
}

func TestDiscardIsOnRecordAndUndoesNothing(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	args := []string{"dlq", "discard", "--reason=known", "--class=version_conflict"}
	clitest.Contains(t, s.Must(args...), "would discard 1 dead letter of 1 account; nothing was changed")
	clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list", "--status=discarded")), "")
	clitest.Equal(t, clitest.Pick(s.Lines(append(args, "--yes", "--actor=auditor")...), "status", "result"), "discarded discarded")
	clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list", "--status=discarded")), "acc-a 1 discarded")
	clitest.Contains(t, s.Must(args...), "nothing to discard")
	clitest.Equal(t, clitest.Pick(s.Lines("dlq", "replay", "--class=version_conflict"), "plan"), "")
	s.Refused(exit.Usage, "dlq", "discard", "--yes")
	var record string
	err := s.Pool.QueryRow(t.Context(), `SELECT concat_ws(' ', action, account_id, version, class, dlq_partition, dlq_offset, actor, reason, result, topic, "offset") FROM dlq_action`).Scan(&record)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Equal(t, record, "discard acc-a 1 version_conflict 0 6 auditor known discarded "+s.Topic+" 7")
}

// TestADiscardThatCannotBeRecordedIsNone shows that the command prints no discarded dead letter if
// the audit trail cannot be written.
func TestADiscardThatCannotBeRecordedIsNone(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	for version := 2; version < 22; version++ { // more than one block of the output
		s.Produce(clitest.EventOf("acc", version, `"1"`))
	}
	s.Consuming(nil)
	s.Exec(`ALTER TABLE dlq_action ADD CONSTRAINT closed CHECK (action <> 'discard')`)
	for _, output := range []string{"json", "text"} {
		status, out, _ := s.Command("dlq", "discard", "--reason=known", "--yes", "--output="+output)
		if status != exit.Failed || out != "" {
			t.Errorf("status %d, and said:\n%s", status, out)
		}
	}
}

func TestOneShotsFailWhenAServerIsAway(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	gone := *s
	gone.URL = "postgres://nobody@127.0.0.1:1/none"
	for _, args := range [][]string{{"dlq", "list"}, {"account", "show", "a"}, {"gaps"}} {
		clitest.Contains(t, gone.Refused(exit.Failed, args...), "reach PostgreSQL")
	}
	gone = *s
	gone.Addrs = []string{"127.0.0.1:1"}
	clitest.Contains(t, gone.Refused(exit.Failed, "dlq", "list"), "reach Kafka")
}

// Records that were published before an interrupt are in the topic, so they must be in the audit
// trail.
func TestAnInterruptedReplayToATopicIsOnRecord(t *testing.T) {
	t.Parallel()
	fake := devtest.Fake(t, devstack.FakeOptions{})
	s := clitest.StageOn(t, fake.Addrs())
	s.SeveralDeadLetters()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var taken atomic.Int32
	fake.Cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		taken.Add(1)
		interrupt() // the record is being sent, so it is published although the command is interrupted
		return nil, nil, false
	})
	args := s.Servers([]string{"dlq", "replay", "--to-topic=" + s.Topic, "--account=acc-b", "--limit=1", "--yes"})
	status := clitest.Execute(ctx, args, &bytes.Buffer{}, &bytes.Buffer{})
	var recorded int32
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM dlq_action WHERE result = 'published'").Scan(&recorded); err != nil {
		t.Fatal(err)
	}
	if taken.Load() != 1 || recorded != 1 {
		t.Errorf("status %d: %d records were taken, %d are on record", status, taken.Load(), recorded)
	}
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
