package rebuild_test

import (
	"strings"
	"testing"

	"projector/internal/cli/clitest"
)

// TestRebuildAppliesTheEventThatWasReplayed has two events with the same version. The parked event
// cannot be applied, so a person replays the other event. A rebuild must apply the replayed event
// too.
func TestRebuildAppliesTheEventThatWasReplayed(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec("CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL)")
	s.UseCustomProjection("loyalty_points", summing)
	other := strings.Replace(earned("a", 3, "7"), "a-3", "other-a-3", 1)
	s.Produce(earned("a", 1, "5"), earned("a", 3, `"many"`), other, earned("a", 2, "1"), earned("a", 5, "100"), earned("a", 4, "10"))
	s.Consuming(nil)
	state := func() string {
		return s.Text(`SELECT concat_ws(' ', points, version, last_event_id) FROM loyalty JOIN projection_account USING (account_id)`)
	}
	clitest.Equal(t, state(), "6 2 a-2")
	s.Must("dlq", "replay", "--offset=2", "--yes")
	clitest.Equal(t, state(), "123 5 a-5")
	clean(s)

	s.Exec("UPDATE loyalty SET points = 1")
	clitest.Contains(t, s.Must("rebuild", "--yes"), "1 row inserted or replaced, 0 removed")
	clitest.Equal(t, state(), "123 5 a-5")
	clean(s, "--yes")
}

// TestRebuildCountsBothEventsOfAVersion shows that a replayed event does not replace another event
// in a turnover, because a turnover counts every event.
func TestRebuildCountsBothEventsOfAVersion(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection("daily_turnover")
	s.Exec("ALTER TABLE daily_turnover ADD CONSTRAINT few CHECK (credited < 50)")
	s.Produce(clitest.EventOf("a", 1, `"5"`), strings.Replace(clitest.EventOf("a", 1, `"60"`), `"eventId":"`, `"eventId":"other-`, 1))
	s.Consuming(nil)
	s.Exec("ALTER TABLE daily_turnover DROP CONSTRAINT few")
	s.Must("dlq", "replay", "--yes")
	state := func() string { return s.Text("SELECT credited || ' ' || events FROM daily_turnover") }
	clitest.Equal(t, state(), "65.00 2")
	s.Exec("UPDATE daily_turnover SET credited = 1")
	clitest.Contains(t, s.Must("rebuild", "--yes"), "2 records read, 1 row compared: ")
	clitest.Equal(t, state(), "65.00 2")
}

// TestASkipBeforeAnEventThatIsRefused shows that a later event that PostgreSQL refuses does not
// prevent a skip. The reason is that the events after a skipped version are applied one by one,
// also by a rebuild.
func TestASkipBeforeAnEventThatIsRefused(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec("CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL)")
	s.UseCustomProjection("loyalty_points", summing)
	s.Produce(earned("a", 1, "5"), earned("a", 3, "7"), earned("a", 4, `"few"`), earned("a", 5, "9"))
	s.Consuming(nil)
	s.Must("account", "skip", "a", "--version=2", "--reason=lost", "--yes")
	s.Consuming(func() {
		s.Await("SELECT EXISTS (SELECT FROM projection_parked_event WHERE class = 'rejected_by_database')")
	})
	const state = `SELECT points || ' ' || version || ', ' || (SELECT string_agg(version || ' ' || class, ', ' ORDER BY version) FROM projection_parked_event)
		FROM loyalty JOIN projection_account USING (account_id)`
	clitest.Equal(t, s.Text(state), "12 3, 4 rejected_by_database, 5 version_gap")
	clean(s)
	s.Exec("UPDATE loyalty SET points = 1")
	s.Must("rebuild", "--yes")
	clitest.Equal(t, s.Text(state), "12 3, 4 rejected_by_database, 5 version_gap")
}

// TestRebuildSkipsAVersionInItsTurn shows that a rebuild skips a version at the same place as the
// consumers did. So of two events for a later version, the rebuild applies the same event as the
// consumers.
func TestRebuildSkipsAVersionInItsTurn(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec("CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL)")
	s.UseCustomProjection("loyalty_points", summing)
	s.Produce(earned("a", 1, "5"))
	s.Consuming(nil)
	s.Must("account", "skip", "a", "--version=2", "--nothing-waits", "--reason=lost", "--yes")
	s.Produce(earned("a", 3, `"many"`), strings.Replace(earned("a", 3, "7"), "a-3", "other-a-3", 1), earned("a", 4, "1"))
	s.Consuming(nil)
	const state = "SELECT points || ' ' || version FROM loyalty JOIN projection_account USING (account_id)"
	clitest.Equal(t, s.Text(state), "13 4")
	clean(s)
	s.Exec("UPDATE loyalty SET points = 1")
	s.Must("rebuild", "--yes")
	clitest.Equal(t, s.Text(state), "13 4")
}

// TestRebuildKeepsASkipWhoseEventWasDiscarded shows that a rebuild preserves a skip even if the
// only event of the account was discarded later.
func TestRebuildKeepsASkipWhoseEventWasDiscarded(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 5, `"5"`))
	s.Consuming(nil)
	s.Must("account", "skip", "a", "--version=1", "--reason=lost", "--yes")
	s.Must("dlq", "discard", "--account=a", "--reason=test", "--yes")
	state := func() string { return s.Text("SELECT string_agg(account_id || version, '') FROM account_balance") }
	was := state()
	clean(s)
	s.Must("rebuild", "--remove", "--yes")
	clitest.Equal(t, state(), was)
}
