package position_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/readmodel/turnover"
)

// countingStage returns a stage that has consumed 3 events of account a and 1 of b.
func countingStage(t *testing.T) (s *clitest.Stage, path string) {
	t.Helper()
	s = clitest.NewStage(t)
	path = s.UseCounting()
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"1"`), clitest.EventOf("b", 1, `"1"`), clitest.EventOf("a", 3, `"1"`))
	s.Consuming(nil)
	clitest.Equal(t, s.Counts(), "a 3, b 1")
	return s, path
}

// TestOnceRebuiltAfterPositionSetBack rebuilds a projection after its position was set back. The
// rows contain records after this position, so the rebuild must read these records too.
func TestOnceRebuiltAfterPositionSetBack(t *testing.T) {
	s, _ := countingStage(t)
	s.Must("position", "set", "--partition=0", "--offset=1", "--reason=again", "--yes")
	clitest.Contains(t, s.Must("rebuild", "--remove", "--yes"), "2 are right, 0 are not")
	clitest.Equal(t, s.Counts(), "a 3, b 1")
	s.Consuming(nil)
	clitest.Equal(t, s.Counts(), "a 3, b 1")
}

// refusedRun returns the error of a run that ends by itself with status 1.
func refusedRun(s *clitest.Stage, flags ...string) string {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), 2*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	args := s.Servers(append([]string{"run", "--listen=127.0.0.1:0"}, flags...))
	if status := clitest.Execute(ctx, args, &bytes.Buffer{}, &stderr); status != exit.Failed {
		s.T.Errorf("run: status %d\n%s", status, stderr.String())
	}
	return stderr.String()
}

func TestModeChangesAfterPositionSetBack(t *testing.T) {
	s, path := countingStage(t)
	s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
	if err := os.WriteFile(path, []byte(strings.Replace(clitest.Counting, "mode: once", "mode: ordered", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, refusedRun(s), "was begun with mode: once")
	clitest.Equal(t, s.Counts(), "a 3, b 1")
}

func TestTextChangesAfterPositionSetBack(t *testing.T) {
	s, path := countingStage(t)
	s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
	if err := os.WriteFile(path, []byte(strings.Replace(clitest.Counting, "count(*)", "2 * count(*)", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, refusedRun(s), "came from another text")
	clitest.Contains(t, s.Refused(exit.Failed, "dlq", "replay"), "came from another text")
	clitest.Equal(t, s.Counts(), "a 3, b 1")
}

// turnoverStage returns a stage that has counted 3 events of 20.00. The argument pruned is the age
// of the last pruning of the inbox.
func turnoverStage(t *testing.T, pruned string) *clitest.Stage {
	t.Helper()
	s := clitest.NewStage(t)
	s.UseProjection(turnover.Name)
	s.Produce(clitest.EventOf("a", 1, `"20"`), clitest.EventOf("a", 2, `"20"`), clitest.EventOf("a", 3, `"20"`))
	s.Consuming(nil)
	if pruned != "" {
		s.Exec("INSERT INTO inbox_pruned VALUES ('daily_turnover', now() - $1::interval)", pruned)
	}
	clitest.Equal(t, turnoverOf(s), "60.00 in 3")
	return s
}

func turnoverOf(s *clitest.Stage) string {
	s.T.Helper()
	return s.Text("SELECT sum(credited) || ' in ' || sum(events) FROM daily_turnover")
}

func markersAge(s *clitest.Stage, age string) {
	s.T.Helper()
	s.Exec("UPDATE inbox SET processed_at = now() - $1::interval", age)
}

// TestTurnoverIsCountedOnceWhenReadLater sets the position back while the inbox has markers of all
// events. The consumers read the events later, when the markers are older than the retention.
func TestTurnoverIsCountedOnceWhenReadLater(t *testing.T) {
	s := turnoverStage(t, "7 days")
	markersAge(s, "6 days 22 hours 30 minutes")
	s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
	markersAge(s, "7 days 30 minutes")
	status, out, said := s.Command("inbox", "prune")
	if status != exit.OK {
		t.Fatal(said)
	}
	clitest.Contains(t, out, "deleted 0 markers")
	clitest.Contains(t, said, "daily_turnover keeps its markers", "daily-turnover-projector", "partition 0", "from 0 to 3")
	s.Consuming(nil)
	clitest.Equal(t, turnoverOf(s), "60.00 in 3")
	clitest.Contains(t, s.Must("inbox", "prune"), "deleted 3 markers") // they are no longer needed
	clitest.Equal(t, turnoverOf(s), "60.00 in 3")
}

// TestTurnoverIsCountedOnceAfterAStop sets the position back after nothing was pruned for hours,
// because no process ran. A new process prunes first, but it must not delete markers that are still
// needed.
func TestTurnoverIsCountedOnceAfterAStop(t *testing.T) {
	s := turnoverStage(t, "7 days 5 hours")
	markersAge(s, "7 days 1 hour")
	s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
	s.Consuming(nil)
	clitest.Equal(t, turnoverOf(s), "60.00 in 3")
}

// TestDeadLettersAreCountedWhenReadAgain shows that dead letters are counted when their records are
// read again. If nothing was pruned, the markers show which records were not counted. So the
// markers must stay until the records are read again.
func TestDeadLettersAreCountedWhenReadAgain(t *testing.T) {
	t.Setenv("CURRENCIES", "USD")
	s := clitest.NewStage(t)
	s.UseProjection(turnover.Name)
	s.Produce(clitest.EventOf("a", 1, `"20"`), strings.Replace(clitest.EventOf("a", 2, `"20"`), "EUR", "USD", 1))
	s.Consuming(nil)
	clitest.Equal(t, turnoverOf(s), "20.00 in 1")
	t.Setenv("CURRENCIES", "EUR,USD")
	s.Must("position", "set", "--all", "--start", "--reason=EUR, too", "--yes")
	markersAge(s, "7 days 1 hour")
	s.Consuming(nil)
	clitest.Equal(t, turnoverOf(s), "40.00 in 2")
}

// TestBreakerStaysClosedWhenReadAgain reads records again, of which one in ten is a dead letter.
// The other records are duplicates, because they were applied before. Such a mix must not open the
// breaker.
func TestBreakerStaysClosedWhenReadAgain(t *testing.T) {
	t.Setenv("BREAKER_WINDOW", "50")
	s := clitest.NewStage(t)
	var values []string
	for i := range 300 {
		value := clitest.EventOf("a", i+1-i/10, `"1"`)
		if i%10 == 9 {
			value = "rubbish"
		}
		values = append(values, value)
	}
	s.Produce(values...)
	s.Consuming(nil)
	s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
	s.Consuming(nil)
	clitest.Equal(t, clitest.Pick(s.Lines("position"), "position", "state"), "300 running")
}
