package dlq_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

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
	clitest.Equal(t, clitest.Pick(s.Lines(replay...), "message"), clitest.Pick(s.Lines("dlq", "list", "--account=acc-b"), "message"))
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
