package clitest

import (
	"fmt"
	"strings"
	"testing"
)

// orderedFile is a custom projection that keeps the sum of each account, as account_balance does.
const orderedFile = `-- projection: points
-- mode: ordered
-- types: FundsCredited
-- tables: points
INSERT INTO points (account_id, points)
SELECT account_id, sum((data->>'amount')::numeric) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET points = points.points + EXCLUDED.points;
`

// Ordered runs a test for each kind of projection that parks events. state is the sum of account
// a and its version.
func Ordered(t *testing.T, run func(t *testing.T, s *Stage, state func() string)) {
	t.Helper()
	t.Run("account_balance", func(t *testing.T) {
		s := NewStage(t)
		run(t, s, func() string {
			return s.Text("SELECT balance || ' at ' || version FROM account_balance WHERE account_id = 'a'")
		})
	})
	t.Run("custom", func(t *testing.T) {
		s := NewStage(t)
		s.Exec("CREATE TABLE points (account_id text PRIMARY KEY, points numeric NOT NULL)")
		s.Exec("GRANT SELECT, INSERT, UPDATE ON points TO PUBLIC")
		s.Owning("points", orderedFile)
		run(t, s, func() string {
			return s.Text("SELECT points || ' at ' || version FROM points JOIN projection_account USING (account_id) WHERE account_id = 'a'")
		})
	})
}

// Undated is an event that cannot be read, of a version that can.
func Undated(account string, version int, amount string) string {
	return strings.Replace(EventOf(account, version, amount), "2026-01-01T00:00:00.5Z", "never", 1)
}

// Corrected is an event with another id.
func Corrected(account string, version int, amount string) string {
	id := fmt.Sprintf("%s-%d", account, version)
	return strings.Replace(EventOf(account, version, amount), id, id+"-corrected", 1)
}

// Text is what a query answers.
func (s *Stage) Text(query string) (text string) {
	s.T.Helper()
	if err := s.Pool.QueryRow(s.T.Context(), query).Scan(&text); err != nil {
		s.T.Fatalf("%v\n%s", err, query)
	}
	return text
}
