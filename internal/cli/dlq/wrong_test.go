package dlq_test

import (
	"os"
	"path/filepath"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// Wrong input is answered with what is wrong and what to type instead.
func TestWrongInputNamesTheRemedy(t *testing.T) {
	t.Parallel()
	s := clitest.NewStage(t)
	s.Holes()
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
		{exit.Usage, []string{"approve", "abc", "--reason=x"}, []string{"is not the number of a request", "projector requests"}},
		{exit.Usage, []string{"dlq", "list", "--until=2026-13-01"}, []string{"--until", "2026-01-31T12:00:00Z", "24h"}},
		{exit.Failed, []string{"dlq", "show", "9/1"}, []string{"no record at partition 9, offset 1", "projector dlq list"}},
		{exit.Usage, []string{"verify", "--ledger=" + ledger}, []string{"line 1", "no column is called account_id", "must have account_id,version,balance"}},
		{exit.Usage, []string{"position", "set", "--partition=0", "--offset=1", "--start", "--reason=x"}, []string{"exactly one of --offset, --time, --start and --end", "not 2"}},
		{exit.Usage, []string{"lag", "--group="}, []string{"--group", "is empty"}},
	} {
		clitest.Contains(t, s.Refused(wrong.status, wrong.args...), wrong.says...)
	}
	for _, args := range [][]string{
		{"dlq", "list", "--account=nobody"},
		{"dlq", "replay", "--account=nobody"},
		{"dlq", "discard", "--account=nobody", "--reason=x"},
		{"dlq", "list", "--partition=99"},
		{"dlq", "list", "--dlq-offset=-1"},
	} {
		status, _, said := s.Command(args...)
		if clitest.Contains(t, said, "no dead letter has the account, partitions and offsets", "projector dlq summary"); status != exit.OK {
			t.Errorf("%v: status %d", args, status)
		}
	}
}
