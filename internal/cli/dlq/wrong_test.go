package dlq_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// The error for wrong input says what is wrong and what to type instead.
func TestWrongInputNamesTheRemedy(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	ledger := filepath.Join(t.TempDir(), "ledger.csv")
	if err := os.WriteFile(ledger, []byte("account,v\nacc-a,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []struct {
		status int
		args   []string
		says   []string
	}{
		{exit.Usage, []string{"account", "show", ""}, []string{"<id>", "is empty"}},
		{exit.Usage, []string{"account", "show"}, []string{"<id>", "is missing"}},
		{exit.Usage, []string{"account", "skip", "acc-a", "--version=x", "--reason=x"}, []string{"--version", `must be a whole number, such as 17, not "x"`}},
		{exit.Usage, []string{"audit", "--action=foo"}, []string{`--action (PROJECTOR_ACTION): must be one of "replay",`}},
		{exit.Usage, []string{"projection", "check", "nope.sql"}, []string{"<file>: open nope.sql: no such file"}},
		{exit.Usage, []string{"verify", "--ledger=nope.csv", "--database-url=postgres://127.0.0.1:1/nobody"}, []string{"--ledger", "nope.csv: no such file"}},
		{exit.Usage, []string{"run", "--max-batch-bytes=1023KiB"}, []string{"--max-batch-bytes (MAX_BATCH_BYTES): must be from 1MiB to 512MiB"}},
		{exit.Usage, []string{"run", "--max-batch-bytes=128MiB", "--listen="}, []string{"--listen"}}, // checked later
		{exit.Usage, []string{"run", "--retry-max=abc"}, []string{"--retry-max", `must be a duration, such as 30s or 24h, not "abc"`}},
		{exit.Usage, []string{"approve", "abc", "--reason=x"}, []string{"is not the number of a request", "projector requests"}},
		{exit.Usage, []string{"dlq", "list", "--until=2026-13-01"}, []string{"--until", "2026-01-31T12:00:00Z", "24h"}},
		{exit.Failed, []string{"dlq", "show", "9/1"}, []string{"no record at partition 9, offset 1;", "has 1 partition, 0;", "projector dlq list"}},
		{exit.Failed, []string{"dlq", "show", "0/1", "--dlq-topic=nope"}, []string{`topic "nope" does not exist`}},
		{exit.Usage, []string{"account", "skip", "acc-a", "--version=-1", "--reason=x"}, []string{"--version: must not be less than 0"}},
		{exit.Usage, []string{"account", "unskip", "acc-a", "--version=-1", "--reason=x"}, []string{"--version: must not be less than 0"}},
		{exit.Usage, []string{"position", "set", "--partition=0", "--offset=-5", "--reason=x"}, []string{"--offset: must not be less than 0"}},
		{exit.Usage, []string{"position", "set", "--partition=0", "--offset=1", "--expect=-5", "--reason=x"}, []string{"--expect: must not be less than 0"}},
		{exit.Usage, []string{"verify", "--ledger=" + ledger, "--sample=0"}, []string{"--sample (PROJECTOR_SAMPLE): must be at least 1"}},
		{exit.Usage, []string{"verify", "--ledger=" + ledger}, []string{"line 1", "no column is called account_id", "must have account_id,version,balance"}},
		{exit.Usage, []string{"position", "set", "--partition=0", "--offset=1", "--start", "--reason=x"}, []string{"exactly one of --offset, --time, --start and --end", "not 2"}},
		{exit.Usage, []string{"lag", "--group="}, []string{"--group", "is empty"}},
		{exit.Usage, []string{"lag", "--group= \t"}, []string{"--group (KAFKA_GROUP): is blank; give it a value or leave it out"}},
		{exit.Usage, []string{"dlq", "replay", "--actor= "}, []string{"--actor (PROJECTOR_ACTOR): is blank; give it a value or leave it out"}},
		{exit.Usage, []string{"dlq", "replay", "--reason= "}, []string{"--reason: is blank; give a reason or leave it out"}},
		{exit.Usage, []string{"account", "skip", "acc-a", "--version=1", "--reason= "}, []string{"--reason: must not be empty"}},
		{exit.Usage, []string{"lag", "--projection= "}, []string{"--projection"}},
	} {
		clitest.Contains(t, s.Refused(wrong.status, wrong.args...), wrong.says...)
	}
	for _, args := range [][]string{
		{"dlq", "list", "--account=nobody"},
		{"dlq", "replay", "--account=nobody"},
		{"dlq", "discard", "--account=nobody", "--reason=x"},
		{"dlq", "list", "--partition=99"},
		{"dlq", "replay", "--dlq-partition=99"},
		{"dlq", "list", "--dlq-offset=-1"},
	} {
		status, _, said := s.Command(args...)
		if source := strings.HasPrefix(args[2], "--partition"); source != strings.Contains(said, "are those of the source topic") {
			t.Errorf("%v: %s", args, said)
		}
		if strings.HasSuffix(args[2], "partition=99") {
			clitest.Contains(t, said, " has 1 partition, 0;")
		}
		if clitest.Contains(t, said, "no dead letter has the account, partitions and offsets", "projector dlq summary"); status != exit.OK {
			t.Errorf("%v: status %d", args, status)
		}
	}
}

// A DLQ topic that does not exist counts as empty. The commands print a warning, because the name
// may be mistyped.
func TestADLQTopicThatDoesNotExistIsNamed(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	for _, args := range [][]string{{"list"}, {"summary"}, {"export"}, {"replay"}, {"discard", "--reason=x"}, {"list", "--account=acc-a"}} {
		status, _, said := s.Command(append(append([]string{"dlq"}, args...), "--dlq-topic=nope")...)
		if clitest.Contains(t, said, `topic "nope" does not exist on these brokers`); status != exit.OK {
			t.Errorf("%v: status %d", args, status)
		}
	}
	if _, _, said := s.Command("dlq", "list"); strings.Contains(said, "does not exist") {
		t.Errorf("of a topic that exists: %s", said)
	}
}

// Every command with --since and --until refuses a window that ends before it begins.
func TestAReversedWindowIsRefused(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	for _, command := range []string{
		"dlq list", "dlq summary", "dlq export", "dlq replay", "dlq discard --reason=x", "audit", "account statement acc-a",
	} {
		args := strings.Fields(command)
		said := s.Refused(exit.Usage, append(args, "--since=1h", "--until=24h")...)
		clitest.Contains(t, said, "--since=1h is later than --until=24h", "exchange them", "an age counts back from now")
		s.Refused(exit.Usage, append(args, "--since=2026-02-01T00:00:00Z", "--until=2026-01-01T00:00:00Z")...)
	}
	s.Must("audit", "--since=2026-02-01T00:00:00Z", "--until=2026-02-01T00:00:00Z") // a window of length zero is allowed
	s.Must("audit", "--since=1h")
	s.Must("audit", "--until=9999h")
}

// The plan refuses an empty file and a topic that does not exist.
func TestAReplayFromNothingOrToNowhereIsRefused(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	file := filepath.Join(t.TempDir(), "empty.jsonl")
	for _, text := range []string{"", "\n \n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		said := s.Refused(exit.Usage, "dlq", "replay", "--from-file="+file, "--reason=x")
		clitest.Contains(t, said, "--from-file: "+file+": is empty", "projector dlq export")
	}
	said := s.Refused(exit.Failed, "dlq", "replay", "--to-topic=nope")
	clitest.Contains(t, said, `--to-topic: topic "nope" does not exist`, "name the topic")
}
