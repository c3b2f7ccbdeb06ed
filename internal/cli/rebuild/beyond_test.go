package rebuild_test

import (
	"testing"

	"projector/internal/cli/clitest"
)

// pointsOf returns the points of an account and its version.
func pointsOf(s *clitest.Stage, account string) string {
	s.T.Helper()
	return s.Text("SELECT points || ' at ' || version FROM loyalty JOIN projection_account USING (account_id) WHERE account_id = $1", account)
}

// TestRebuildKeepsWhatCameBeyondTheParkLimit shows that a rebuild preserves events that were beyond
// the park limit and were applied later.
func TestRebuildKeepsWhatCameBeyondTheParkLimit(t *testing.T) {
	for name, again := range map[string][]string{
		"replayed":   {"dlq", "replay", "--yes"},
		"read again": {"position", "set", "--all", "--start", "--reason=again", "--yes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewStage(t)
			t.Setenv("PARK_LIMIT", "2")
			s.Exec("CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL)")
			s.UseCustomProjection("loyalty_points", summing)
			for i, version := range []int{1, 3, 4, 5, 6, 7, 2} {
				s.Produce(earned("a", version, []string{"1", "8", "16", "32", "64", "128", "4"}[i]))
			}
			s.Consuming(nil)
			clitest.Equal(t, pointsOf(s, "a"), "29 at 4")
			s.Must(again...)
			s.Consuming(nil)
			clitest.Equal(t, pointsOf(s, "a"), "253 at 7")
			clean(s)
			s.Must("rebuild", "--yes", "--remove")
			clitest.Equal(t, pointsOf(s, "a"), "253 at 7")
			clitest.Equal(t, s.Must("gaps"), "no account waits for an event\n")

			s.Exec("UPDATE loyalty SET points = 5")
			s.Must("rebuild", "--yes")
			clitest.Equal(t, pointsOf(s, "a"), "253 at 7")
		})
	}
}

// TestRebuildRestoresTheParkLimit shows that after a rebuild, the events beyond the park limit wait
// again.
func TestRebuildRestoresTheParkLimit(t *testing.T) {
	s := clitest.NewStage(t)
	t.Setenv("PARK_LIMIT", "2")
	s.Exec("CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL)")
	s.UseCustomProjection("loyalty_points", summing)
	for _, version := range []int{1, 3, 4, 5, 6} {
		s.Produce(earned("a", version, "1"))
	}
	s.Consuming(nil)
	const held = `SELECT (SELECT string_agg(version || ' ' || class, ', ' ORDER BY version) FROM projection_parked_event)
		|| ' and ' || (SELECT events || ' from ' || lowest_version || ' to ' || highest_version FROM projection_park_overflow)`
	right := s.Text(held)
	clitest.Equal(t, right, "3 version_gap, 4 version_gap and 2 from 5 to 6")
	clean(s)
	s.Exec("DELETE FROM projection_parked_event; DELETE FROM projection_park_overflow; DELETE FROM projection_account; DELETE FROM loyalty")
	s.Must("rebuild", "--yes")
	clitest.Equal(t, s.Text(held), right)
	clitest.Equal(t, pointsOf(s, "a"), "1 at 1")
}
