package dlq_test

import (
	"fmt"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
)

const orderedFile = `-- projection: points
-- mode: ordered
-- types: FundsCredited
-- tables: points
INSERT INTO points (account_id, points)
SELECT account_id, sum((data->>'amount')::numeric) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET points = points.points + EXCLUDED.points;
`

// ordered runs a test for each kind of projection that parks events. version is a query for the
// version that account a has.
func ordered(t *testing.T, run func(t *testing.T, s *clitest.Stage, state func() string)) {
	t.Helper()
	t.Run("account_balance", func(t *testing.T) {
		s := clitest.NewStage(t)
		run(t, s, func() string {
			return textOf(t, s, "SELECT balance || ' at ' || version FROM account_balance WHERE account_id = 'a'")
		})
	})
	t.Run("custom", func(t *testing.T) {
		s := clitest.NewStage(t)
		s.Exec("CREATE TABLE points (account_id text PRIMARY KEY, points numeric NOT NULL)")
		s.Exec("GRANT SELECT, INSERT, UPDATE ON points TO PUBLIC")
		s.Owning("points", orderedFile)
		run(t, s, func() string {
			return textOf(t, s, "SELECT points || ' at ' || version FROM points JOIN projection_account USING (account_id) WHERE account_id = 'a'")
		})
	})
}

// undated is an event that cannot be read, of a version that can.
func undated(account string, version int, amount string) string {
	return strings.Replace(clitest.EventOf(account, version, amount), "2026-01-01T00:00:00.5Z", "never", 1)
}

// corrected is an event with another id.
func corrected(account string, version int, amount string) string {
	return strings.Replace(clitest.EventOf(account, version, amount), fmt.Sprintf("%s-%d", account, version), fmt.Sprintf("%s-%d-corrected", account, version), 1)
}

func TestACorrectionThatComesWhileItsAccountWaits(t *testing.T) {
	ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), undated("a", 3, `"4.00"`), clitest.EventOf("a", 4, `"8.00"`))
		s.Consuming(nil)
		s.Produce(corrected("a", 3, `"4.00"`))
		s.Consuming(nil)
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "15.00 at 4")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
	})
}

func textOf(t *testing.T, s *clitest.Stage, query string) (text string) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	return text
}

func TestADiscardedEventIsNotApplied(t *testing.T) {
	ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"1000000.00"`), clitest.EventOf("a", 4, `"8.00"`))
		s.Consuming(nil)
		discard := []string{"dlq", "discard", "--account=a", "--offset=1", "--reason=void"}
		clitest.Contains(t, s.Must(discard...), "1 of them are parked and would be removed", "1 dead letters would be discarded; nothing was changed")
		clitest.Contains(t, s.Must(append(discard, "--yes")...), "discarded 1 dead letters", "removed the parked events of 1 of them")
		clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "received_version", "waiting_events"), "a 2 4 1")
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
		clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "received_version", "waiting_events"), "a 3 4 1")

		// Read again, the record stays discarded.
		s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")

		s.Produce(corrected("a", 3, `"4.00"`)) // a new record is a new event
		s.Consuming(nil)
		clitest.Equal(t, state(), "15.00 at 4")
		clitest.Equal(t, clitest.Statuses(s.Lines("dlq", "list", "--account=a", "--offset=1")), "a 3 discarded")
	})
}

// One event with a mistyped version does not keep its account waiting for ever.
func TestADiscardFreesAnAccountFromAMistypedVersion(t *testing.T) {
	ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 1700000, `"5.00"`))
		s.Consuming(nil)
		s.Must("dlq", "discard", "--account=a", "--reason=mistyped", "--yes")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
		clitest.Contains(t, s.Must("account", "show", "a", "--output=json"), `"stale":false`, `"parked":[]`)
		s.Produce(clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "3.00 at 2")
	})
}

// What is beyond the park limit is discarded as well, and does not come back when it is read again.
func TestADiscardOfWhatIsBeyondTheParkLimit(t *testing.T) {
	t.Setenv("PARK_LIMIT", "2")
	ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		s.Produce(clitest.EventOf("a", 1, `"1.00"`))
		for version := 3; version <= 7; version++ {
			s.Produce(clitest.EventOf("a", version, `"1.00"`))
		}
		s.Consuming(nil)
		s.Must("dlq", "discard", "--account=a", "--offset=3,4,5", "--reason=void", "--yes")
		clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version", "waiting_events"), "a 2 2")
		s.Produce(clitest.EventOf("a", 2, `"1.00"`))
		s.Consuming(nil)
		clitest.Equal(t, state(), "4.00 at 4")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
		s.Must("position", "set", "--all", "--start", "--reason=again", "--yes")
		s.Consuming(nil)
		clitest.Equal(t, s.Must("dlq", "replay", "--account=a", "--status=open,ready,waiting"), "nothing to replay\n")
		clitest.Equal(t, state(), "4.00 at 4")
		clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")
	})
}

// A running consumer has read what is discarded, and not written it yet.
func TestADiscardWhileAConsumerRuns(t *testing.T) {
	ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"4.00"`))
		s.Consuming(func() {
			s.Must("dlq", "discard", "--account=a", "--reason=void", "--yes")
			s.Produce(clitest.EventOf("a", 2, `"2.00"`), corrected("a", 3, `"8.00"`))
			s.Await("SELECT coalesce(sum(next_offset), 0) = $1 FROM projector_position", s.Produced)
		})
		clitest.Equal(t, state(), "11.00 at 3")
		clitest.Contains(t, s.Must("dlq", "discard", "--account=a", "--status=resolved,ready,waiting", "--reason=void", "--yes"), "discarded 0 dead letters")
	})
}

func TestAnAppliedEventIsNotDiscarded(t *testing.T) {
	ordered(t, func(t *testing.T, s *clitest.Stage, state func() string) {
		s.Produce(clitest.EventOf("a", 1, `"1.00"`), clitest.EventOf("a", 3, `"4.00"`), clitest.EventOf("a", 2, `"2.00"`))
		s.Consuming(nil)
		clitest.Contains(t, s.Must("dlq", "discard", "--account=a", "--status=resolved", "--reason=void", "--yes"),
			"1 are not discarded: the read model has passed their versions", "discarded 0 dead letters")
		clitest.Equal(t, textOf(t, s, "SELECT count(*)::text FROM dlq_action WHERE action = 'discard'"), "0")
		clitest.Equal(t, state(), "7.00 at 3")
	})
}
