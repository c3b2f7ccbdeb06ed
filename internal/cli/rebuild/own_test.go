package rebuild_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// TestRebuildByAnotherText changes a projection file. A rebuild computes the rows with the new
// text, and later runs use the new text.
func TestRebuildByAnotherText(t *testing.T) {
	s := clitest.NewStage(t)
	path := s.UseCounting()
	s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("b", 1, `"1"`), clitest.EventOf("a", 2, `"1"`), clitest.EventOf("a", 2, `"1"`))
	s.Consuming(nil)
	clitest.Equal(t, s.Counts(), "a 2, b 1")
	doubled := strings.Replace(clitest.Counting, "SELECT account_id, count(*)", "SELECT account_id, 2 * count(*)", 1)
	if err := os.WriteFile(path, []byte(doubled), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Must("rebuild")
	said := s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0")
	clitest.Contains(t, said, "came from another text")
	if strings.Contains(said, "needs a login") {
		t.Errorf("a changed file is no missing grant: %s", said)
	}
	clitest.Equal(t, s.Counts(), "a 2, b 1")
	s.Must("rebuild", "--yes", "--actor=night")
	clitest.Equal(t, s.Counts(), "a 4, b 2")
	s.Produce(clitest.EventOf("b", 2, `"1"`))
	s.Consuming(nil)
	clitest.Equal(t, s.Counts(), "a 4, b 4")

	if err := os.WriteFile(path, []byte(clitest.Counting+"-- the same\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Exec("UPDATE repair_policy SET four_eyes = true")
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "four eyes are on", "--accept-changed-file")
	s.Exec("UPDATE repair_policy SET four_eyes = false")
	if err := os.WriteFile(path, []byte(doubled+"-- the same\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Must("rebuild", "--yes") // no row differs, but the text does
	s.Consuming(nil)
}

const summing = `-- projection: loyalty_points
-- mode: ordered
-- types: PointsEarned
-- tables: loyalty
INSERT INTO loyalty (account_id, points) SELECT account_id, sum((data->>'points')::bigint) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET points = loyalty.points + EXCLUDED.points;
`

// The function earned returns an event for the projection in summing. The text n is the JSON value
// of points.
func earned(account string, version int, n string) string {
	return fmt.Sprintf(`{"eventId":"%s-%d","eventType":"PointsEarned","accountId":%q,"version":%d,"occurredAt":"2026-01-01T00:00:00Z","data":{"points":%s}}`,
		account, version, account, version, n)
}

// TestRebuildOfAnOrderedProjection shows that a rebuild skips the same versions again and preserves
// corrections. With another text, a rebuild may accept events that the old text has refused.
func TestRebuildOfAnOrderedProjection(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec("CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL)")
	path := s.UseCustomProjection("loyalty_points", summing)
	s.Produce(
		earned("a", 1, "5"), earned("a", 3, "7"), // a gap
		earned("b", 1, "1"), earned("b", 2, `"many"`), earned("b", 3, "2"), // the second event is skipped
		earned("c", 1, "3"), earned("c", 2, `"few"`), earned("c", 3, "4"), // the second event is corrected
	)
	s.Consuming(nil)
	s.Must("account", "skip", "b", "--version=2", "--reason=wrong", "--yes")
	holds := func(want string) {
		t.Helper()
		clitest.Equal(t, s.Text("SELECT string_agg(account_id || ' ' || points, ', ' ORDER BY account_id) FROM loyalty"), want)
	}
	holds("a 5, b 3, c 3")
	s.Must("rebuild", "--check")
	clitest.Contains(t, s.Must("rebuild"), "there is nothing to change")
	s.Exec("UPDATE loyalty SET points = 99 WHERE account_id = 'b'; DELETE FROM projection_account WHERE account_id = 'c'")
	clitest.Contains(t, s.Must("rebuild"), "would insert or replace 2 rows")
	clitest.Contains(t, s.Must("rebuild", "--yes"), "2 rows inserted or replaced, 0 removed")
	holds("a 5, b 3, c 3")
	clitest.Equal(t, clitest.Pick(s.Lines("audit", "--action=rebuild"), "account_id", "result"), "b replaced, c replaced")
	clitest.Contains(t, s.Refused(exit.Usage, "rebuild", "--partial"), "adds up all events")

	// The new text uses 1000 for a value that is not a number.
	s.Exec("UPDATE loyalty SET points = 99 WHERE account_id = 'a'")
	changed := strings.Replace(summing, "sum((data->>'points')::bigint)", "sum(coalesce(substring(data->>'points' FROM '^[0-9]+$')::bigint, 1000))", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, s.Must("rebuild", "--yes"), "2 rows inserted or replaced, 0 removed")
	holds("a 5, b 3, c 1007")
	clitest.Equal(t, clitest.Pick(s.Lines("gaps"), "account_id", "expected_version"), "a 2")
	s.Produce(earned("a", 2, "100"), earned("c", 4, "1"))
	s.Consuming(nil)
	holds("a 112, b 3, c 1008")

	// The corrected form of an event is not in the topic.
	s.Exec("ALTER TABLE loyalty ADD CHECK (points < 5000)")
	s.Produce(earned("d", 1, "6000"))
	s.Consuming(nil)
	correct(s, "--account=d", `\"points\":6000`, `\"points\":60`)
	holds("a 112, b 3, c 1008, d 60")
	clitest.Contains(t, s.Must("rebuild", "--yes"), "1 were left alone", "corrected")
	holds("a 112, b 3, c 1008, d 60")
	if err := os.WriteFile(path, []byte(changed+"-- more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "corrected events")
}

// TestRebuildByAnotherTextLeavesNoAccountAlone has an account that is ahead of the topic. By another
// text, its rows would stay as the old text has made them.
func TestRebuildByAnotherTextLeavesNoAccountAlone(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec("CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL CHECK (points < 50))")
	path := s.UseCustomProjection("loyalty_points", summing)
	s.Produce(earned("a", 1, "5"), earned("a", 2, "60"))
	s.Consuming(nil)
	s.Exec("UPDATE projection_account SET version = 2")
	clitest.Contains(t, s.Must("rebuild", "--yes"), "1 were left alone", "ahead")
	if err := os.WriteFile(path, []byte(summing+"-- more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "1 of the rows of loyalty_points would be left alone", "by another text")
}

const totalling = summing + `INSERT INTO totals (day, points) SELECT (occurred_at AT TIME ZONE 'UTC')::date, sum((data->>'points')::bigint) FROM new_events GROUP BY 1
ON CONFLICT (day) DO UPDATE SET points = totals.points + EXCLUDED.points;
`

// TestRebuildOfAccountsWhoseSumsHaveCorrections has a sum over all accounts that contains a
// corrected event. A rebuild leaves this sum alone. So it must not move an account past an event
// that the sum lacks.
func TestRebuildOfAccountsWhoseSumsHaveCorrections(t *testing.T) {
	s := clitest.NewStage(t)
	s.Exec("CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL CHECK (points < 50)); CREATE TABLE totals (day date PRIMARY KEY, points bigint NOT NULL)")
	s.UseCustomProjection("loyalty_points", strings.Replace(totalling, "tables: loyalty", "tables: loyalty, totals", 1))
	s.Produce(earned("a", 1, `"many"`), earned("b", 1, "4"), earned("b", 2, "60"), earned("c", 1, "1"))
	s.Consuming(nil)
	correct(s, "--account=a", `\"many\"`, `2`)
	s.Exec("ALTER TABLE loyalty DROP CONSTRAINT loyalty_points_check")
	holds := func(want string) {
		t.Helper()
		clitest.Equal(t, s.Text("SELECT string_agg(account_id || ' ' || points, ', ' ORDER BY account_id) || ', all ' || (SELECT sum(points) FROM totals) FROM loyalty"), want)
	}
	holds("a 2, b 4, c 1, all 7")
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "left alone")
	holds("a 2, b 4, c 1, all 7")
	s.Must("dlq", "replay", "--account=b", "--yes")
	holds("a 2, b 64, c 1, all 67")

	// A row of an account can be replaced, because no event is passed by that.
	s.Exec("UPDATE loyalty SET points = 9 WHERE account_id = 'c'")
	s.Must("rebuild", "--yes")
	holds("a 2, b 64, c 1, all 67")
}
