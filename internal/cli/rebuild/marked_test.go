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
	s.UseCustomProjection("event_count", counting)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Produce(clitest.EventOf("a", 2, `"1"`))
	s.Consuming(nil)
	s.Exec(`INSERT INTO inbox_pruned (handler, until) VALUES ('event_count', now() - interval '7 days')`)
	s.Exec(`ALTER TABLE event_count DROP CONSTRAINT few`)
	events := func(want string) {
		t.Helper()
		var got string
		if err := s.Pool.QueryRow(t.Context(), "SELECT events::text FROM event_count").Scan(&got); err != nil {
			t.Fatal(err)
		}
		clitest.Equal(t, got, want)
	}
	events("1")
	s.Must("rebuild", "--yes")
	events("2")
	s.Must("dlq", "replay", "--class=rejected_by_database", "--yes")
	events("2")
}
