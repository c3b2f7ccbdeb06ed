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
