package rebuild_test

import (
	"os"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

const counting = `-- projection: event_count
-- mode: once
-- types: FundsCredited
-- tables: event_count
INSERT INTO event_count (account_id, events) SELECT account_id, count(*) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET events = event_count.events + EXCLUDED.events;
`

// TestRebuildByAnotherText: a file is changed, its rows are made anew by it, and from then on
// it is the one that counts.
func TestRebuildByAnotherText(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec("CREATE TABLE event_count (account_id text PRIMARY KEY, events bigint NOT NULL)")
	path := s.Owning("event_count", counting)
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("b", 1, `"1"`), clitest.EventOf("a", 2, `"1"`), clitest.EventOf("a", 2, `"1"`))
	s.Consuming(nil)
	holds := func(want string) {
		t.Helper()
		var got string
		if err := s.Pool.QueryRow(t.Context(), "SELECT string_agg(account_id || ' ' || events, ', ' ORDER BY account_id) FROM event_count").Scan(&got); err != nil {
			t.Fatal(err)
		}
		clitest.Equal(t, got, want)
	}
	holds("a 2, b 1")
	doubled := strings.Replace(counting, "SELECT account_id, count(*)", "SELECT account_id, 2 * count(*)", 1)
	if err := os.WriteFile(path, []byte(doubled), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Must("rebuild")
	clitest.Contains(t, s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0"), "came from another text")
	holds("a 2, b 1")
	s.Must("rebuild", "--yes", "--actor=night")
	holds("a 4, b 2")
	s.Produce(clitest.EventOf("b", 2, `"1"`))
	s.Consuming(nil)
	holds("a 4, b 4")

	if err := os.WriteFile(path, []byte(counting+"-- the same\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Exec("UPDATE repair_policy SET four_eyes = true")
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "four eyes are on", "--accept-changed-file")
	s.Exec("UPDATE repair_policy SET four_eyes = false")
	if err := os.WriteFile(path, []byte(doubled+"-- the same\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Must("rebuild", "--yes") // nothing differs, and yet the text is another
	s.Consuming(nil)
}
