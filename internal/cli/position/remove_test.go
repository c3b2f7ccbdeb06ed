package position_test

import (
	"errors"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/readmodel"
	"projector/readmodel/turnover"
)

func TestPositionsOfAnUnusedGroupAreRemoved(t *testing.T) {
	s := clitest.NewStage(t)
	remove := []string{"position", "remove", "--group=account-balance-projector", "--reason=renamed, CHG-77"}
	clitest.Contains(t, s.Refused(exit.Failed, remove...), "has no positions in topic")
	s.Produce(clitest.EventOf("acc", 1, `"1"`), clitest.EventOf("acc", 2, `"1"`))
	s.Consuming(func() {
		clitest.Contains(t, s.Refused(exit.Failed, append(remove, "--yes")...), "has 1 instance reading topic", "stop all of its instances first")
	})

	clitest.Contains(t, s.Must(remove...), "partition 0: position 2 would be removed", "add --yes")
	positions, err := readmodel.UnusedPositions(t.Context(), s.Pool, "account-balance-projector", s.Topic)
	if s.Exec("UPDATE projector_position SET fence = fence + 1"); err == nil { // a consumer has claimed the partition in the meantime
		err = readmodel.RemovePositions(t.Context(), s.Pool, "account-balance-projector", s.Topic, positions, "me", "x")
	}
	if !errors.Is(err, readmodel.ErrPositionsMoved) {
		t.Errorf("a position that is in use was removed: %v", err)
	}
	clitest.Equal(t, clitest.Pick(lag(s), lagFields...), "0 2 2 0")
	s.Refused(exit.Usage, "position", "remove", "--reason=which?")
	done := s.Lines(append(remove, "--yes")...)
	clitest.Equal(t, clitest.Pick(done, "group", "partition", "position", "result"), "account-balance-projector 0 2 removed")
	clitest.Equal(t, clitest.Pick(lag(s), lagFields...), "0 null 2 2")
	clitest.Equal(t, clitest.Pick(s.Lines("audit"), "action", "group", "projection", "offset", "reason", "result"),
		"position_set account-balance-projector account_balance 2 renamed, CHG-77 removed")

	s.Consuming(nil) // starts at the first record, and applies nothing again
	s.Await("SELECT balance = 2 AND version = 2 FROM account_balance")
}

// If an event has no marker in the inbox any more, a group that begins at the first record would
// count it again.
func TestTheLastPositionOfSumsStays(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection(turnover.Name)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	remove := []string{"position", "remove", "--group=daily-turnover-projector", "--reason=CHG-77", "--yes"}
	clitest.Contains(t, s.Refused(exit.Failed, remove...), "no other group of daily_turnover has come as far", "count events twice")
	t.Setenv("KAFKA_GROUP", "turnover-2")
	s.Must("position", "set", "--all", "--end", "--skip-unread", "--new-group", "--reason=the new group", "--yes")
	clitest.Contains(t, s.Must(remove...), "partition 0: position 1 removed")
}

// Two operators remove the two groups of a projection at the same time. Each may be removed while the
// other one stays. Both plans are made before the first is done.
func TestTheLastTwoPositionsOfSumsDoNotGoTogether(t *testing.T) {
	s := clitest.NewStage(t)
	s.UseProjection(turnover.Name)
	s.Produce(clitest.EventOf("acc", 1, `"1"`))
	s.Consuming(nil)
	t.Setenv("KAFKA_GROUP", "turnover-2")
	s.Must("position", "set", "--all", "--end", "--skip-unread", "--new-group", "--reason=the new group", "--yes")
	remove := map[string]func() error{}
	for _, group := range []string{"daily-turnover-projector", "turnover-2"} {
		positions, err := readmodel.UnusedPositions(t.Context(), s.Pool, group, s.Topic)
		if err != nil || len(positions) != 1 || !positions[0].Passed {
			t.Fatalf("%s: %+v, %v", group, positions, err)
		}
		remove[group] = func() error {
			return readmodel.RemovePositions(t.Context(), s.Pool, group, s.Topic, positions, "me", "x")
		}
	}
	if err := remove["turnover-2"](); err != nil {
		t.Fatal(err)
	}
	if err := remove["daily-turnover-projector"](); !errors.Is(err, readmodel.ErrPositionsMoved) {
		t.Errorf("the last position was removed: %v", err)
	}
}

// An ordered projection compares versions, so a group that begins again applies nothing twice, and no
// other group has to come as far. A projection of events in any order depends on the inbox.
func TestTheLastPositionOfACustomProjection(t *testing.T) {
	for mode, removed := range map[string]bool{"ordered": true, "once": false} {
		t.Run(mode, func(t *testing.T) {
			s := clitest.NewStage(t)
			s.Exec("CREATE TABLE points (account_id text PRIMARY KEY, points numeric NOT NULL)")
			s.Exec("GRANT SELECT, INSERT, UPDATE ON points TO PUBLIC")
			s.UseCustomProjection("points", "-- projection: points\n-- mode: "+mode+"\n-- types: FundsCredited\n"+
				"INSERT INTO points SELECT account_id, sum((data->>'amount')::numeric) FROM new_events GROUP BY account_id\n"+
				"ON CONFLICT (account_id) DO UPDATE SET points = points.points + EXCLUDED.points")
			s.Produce(clitest.EventOf("a", 1, `"1"`), clitest.EventOf("a", 2, `"2"`))
			s.Consuming(nil)
			remove := []string{"position", "remove", "--group=points-projector", "--reason=CHG-77", "--yes"}
			if !removed {
				clitest.Contains(t, s.Refused(exit.Failed, remove...), "no other group of points has come as far", "count events twice")
				return
			}
			clitest.Contains(t, s.Must(remove...), "partition 0: position 2 removed")
			s.Consuming(nil)
			clitest.Equal(t, s.Text("SELECT points::text FROM points"), "3")
		})
	}
}
