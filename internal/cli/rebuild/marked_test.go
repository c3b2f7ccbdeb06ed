package rebuild_test

import (
	"testing"

	"projector/internal/cli/clitest"
)

// TestOnceCountedByRebuildAndReplay shows that a rebuild adds a marker for each event that it
// counts, even if the inbox was pruned before.
func TestOnceCountedByRebuildAndReplay(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec(`CREATE TABLE event_count (account_id text PRIMARY KEY, events bigint NOT NULL, CONSTRAINT few CHECK (events < 2))`)
	s.UseCustomProjection("event_count", clitest.Counting)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Produce(clitest.EventOf("a", 2, `"1"`))
	s.Consuming(nil)
	s.Exec(`INSERT INTO inbox_pruned (handler, until) VALUES ('event_count', now() - interval '7 days')`)
	s.Exec(`ALTER TABLE event_count DROP CONSTRAINT few`)
	clitest.Equal(t, s.Text("SELECT events::text FROM event_count"), "1")
	s.Must("rebuild", "--yes")
	clitest.Equal(t, s.Text("SELECT events::text FROM event_count"), "2")
	s.Must("dlq", "replay", "--class=rejected_by_database", "--yes")
	clitest.Equal(t, s.Text("SELECT events::text FROM event_count"), "2")
}
