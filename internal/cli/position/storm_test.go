package position_test

import (
	"fmt"
	"testing"

	"projector/internal/cli/clitest"
)

// TestAStormStopsBalancesAndStatements shows that a storm of dead letters stops account_balance and
// account_statement, each by its own breaker. Each projection reports the cause and the commands
// for a repair, and continues after its own resume.
func TestAStormStopsBalancesAndStatements(t *testing.T) {
	t.Setenv("BREAKER_WINDOW", "20")
	s := clitest.NewStage(t)
	for i := range 40 {
		s.Produce(clitest.EventOf(fmt.Sprintf("acc-%d", i), 1, `1.5`))
	}
	for _, name := range []string{"account_balance", "account_statement"} {
		s.UseProjection(name)
		r := s.Running()
		r.AwaitUnready("the breaker is open")
		_, out, said := s.Command("position")
		clitest.Contains(t, out+said, "breaker_open", "20 of the last 20 records are dead letters", "20 of them malformed_payload",
			`"Very many dead letters" (if more of them follow, type --through=END as well), then type: projector resume`)
		clitest.Contains(t, s.Must("lag"), "breaker_open")
		clitest.Contains(t, s.Must("dlq", "list", "--status=open,ready,waiting"), "open", "malformed_payload")
		clitest.Contains(t, s.Must("resume", "--all", "--through=END", "--reason=x", "--yes"), "projection "+name, "records below 40 do not count for the breaker")
		s.Await("SELECT coalesce(sum(next_offset), 0) = $1 FROM projector_position WHERE projection = $2", s.Produced, name)
		r.AwaitReady()
		r.Stop("")
		if letters := s.Lines("dlq", "list"); len(letters) != 40 {
			t.Errorf("%s: %d dead letters, want 40", name, len(letters))
		}
	}
	clitest.Contains(t, s.Must("resume", "--all", "--through=39", "--reason=x"), "records below 39 do not count for the breaker, which leaves out none, because the position is 40")
	clitest.Contains(t, s.Must("resume", "--all", "--through=1000", "--reason=x"), "with those still to come: the end is 40")
}
