package projection_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
)

func TestPlanOfAReposition(t *testing.T) {
	const unknown = projection.NoOffset
	log := projection.Log{TopicID: "id", Start: 2, End: 10, EpochEnd: unknown, ProcessedEnd: unknown}
	at := func(next, processedUntil int64) *projection.StoredPosition {
		return &projection.StoredPosition{
			Position: projection.Position{Next: next, ProcessedUntil: processedUntil}, TopicID: "id", StoppedEnd: unknown,
		}
	}
	with := func(s *projection.StoredPosition, set func(*projection.StoredPosition)) *projection.StoredPosition {
		set(s)
		return s
	}
	lost := log
	lost.EpochEnd, lost.ProcessedEnd = 4, 4
	since := lost
	since.Since = new(int64(5))
	upgraded := log
	upgraded.TopicID = "AAAAAAAAAAAAAAAAAAAAAA=="
	cases := map[string]struct {
		want      projection.Reposition
		stored    *projection.StoredPosition
		log       projection.Log
		unread    int64
		processed int64
		refused   string
	}{
		"back":                    {projection.Reposition{To: 3}, at(6, 6), log, 0, 6, ""},
		"back, of one taken back": {projection.Reposition{To: 3}, at(6, 8), log, 0, 8, ""},
		"where it is":             {projection.Reposition{To: 6}, at(6, 6), log, 0, 6, ""},
		"as expected":             {projection.Reposition{To: 3, Expect: new(int64(6))}, at(6, 6), log, 0, 6, ""},
		"moved since":             {projection.Reposition{To: 3, Expect: new(int64(5))}, at(6, 6), log, 0, 6, "the position is 6, and --expect says 5"},
		"expected, and none":      {projection.Reposition{To: 2, Expect: new(int64(5))}, nil, log, 0, 2, "there is no position"},
		"forth":                   {projection.Reposition{To: 9}, at(6, 6), log, 3, 9, "3 offsets from 6 on have not been read: --skip-unread"},
		"forth, on purpose":       {projection.Reposition{To: 9, SkipUnread: true}, at(6, 6), log, 3, 9, ""},
		"forth, as shown":         {projection.Reposition{To: 9, SkipUnread: true, Shown: new(int64(3))}, at(6, 6), log, 3, 9, ""},
		"forth, and it came near": {projection.Reposition{To: 9, SkipUnread: true, Shown: new(int64(4))}, at(6, 6), log, 3, 9, ""},
		"forth, and taken back": {
			projection.Reposition{To: 9, SkipUnread: true, Shown: new(int64(2))}, at(6, 8), log, 3, 9, "the position is 6 now: 3 unread offsets would be skipped, and the plan has 2",
		},
		"what retention took":     {projection.Reposition{To: 2}, at(0, 0), log, 0, 2, ""},
		"more than that":          {projection.Reposition{To: 3}, at(0, 0), log, 1, 3, "1 offsets from 2 on"},
		"before the log":          {projection.Reposition{To: 1}, at(6, 6), log, 0, 6, "1 is outside the log, which goes from 2 to 10"},
		"behind the log":          {projection.Reposition{To: 11, SkipUnread: true}, at(6, 6), log, 5, 11, "outside the log"},
		"a new group":             {projection.Reposition{To: 2}, nil, log, 0, 2, ""},
		"a new group, at the end": {projection.Reposition{To: 10}, nil, log, 8, 10, "8 offsets from 2 on"},

		"lost from 4 on, there":     {projection.Reposition{To: 4}, at(6, 6), lost, 0, 4, ""},
		"lost from 4 on, as it was": {projection.Reposition{To: 6}, at(6, 6), lost, 2, 6, "2 offsets from 4 on"},
		"lost from 4 on, and back":  {projection.Reposition{To: 3}, at(6, 6), lost, 0, 4, ""},
		"stopped where 4 was left": {
			projection.Reposition{To: 6}, with(at(6, 6), func(s *projection.StoredPosition) { s.StoppedEnd = 4 }), log, 2, 6, "2 offsets from 4 on",
		},
		"read on since then":      {projection.Reposition{To: 3}, at(6, 6), since, 0, 6, ""},
		"not read on, and lost":   {projection.Reposition{To: 3}, at(5, 6), since, 0, 4, ""},
		"read on beyond that end": {projection.Reposition{To: 3}, at(20, 20), since, 0, 20, ""},
		"beyond the end":          {projection.Reposition{To: 10}, at(20, 20), log, 0, 10, ""},

		"another topic":           {projection.Reposition{To: 2}, with(at(6, 6), func(s *projection.StoredPosition) { s.TopicID = "old" }), log, 0, 2, "--new-topic"},
		"another, on purpose":     {projection.Reposition{To: 2, NewTopic: true}, with(at(6, 6), func(s *projection.StoredPosition) { s.TopicID = "old" }), log, 0, 2, ""},
		"another, not all of it":  {projection.Reposition{To: 6, NewTopic: true}, with(at(6, 6), func(s *projection.StoredPosition) { s.TopicID = "old" }), log, 4, 6, "4 offsets from 2 on"},
		"the brokers know no ids": {projection.Reposition{To: 3}, at(6, 6), upgraded, 0, 6, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan, err := c.want.Plan(c.stored, c.log)
			var refused *projection.RefusedPositionError
			switch {
			case c.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.refused != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Reason, c.refused)):
				t.Errorf("error %v, want %q", err, c.refused)
			}
			if plan.UnreadSkipped != c.unread || plan.Processed.Offset != c.processed && c.refused == "" {
				t.Errorf("unread %d, processed until %d; want %d and %d", plan.UnreadSkipped, plan.Processed.Offset, c.unread, c.processed)
			}
			if (plan.From == nil) != (c.stored == nil) {
				t.Errorf("from %v", plan.From)
			}
		})
	}
}

// TestARepositionHasALeaderEpoch shows the leader epochs of a position that is set and of its mark. They
// are upper limits, so a log that loses its end before a record is read from there is found.
func TestARepositionHasALeaderEpoch(t *testing.T) {
	const none = projection.NoEpoch
	log := projection.Log{TopicID: "id", End: 10, Epoch: 7, EpochEnd: projection.NoOffset, ProcessedEnd: projection.NoOffset}
	lost, old := log, log
	lost.ProcessedEnd, old.Epoch = 4, none
	stored := &projection.StoredPosition{
		Position: projection.Position{Next: 6, LeaderEpoch: 5, ProcessedUntil: 6, ProcessedEpoch: 5}, TopicID: "id", StoppedEnd: projection.NoOffset,
	}
	for name, c := range map[string]struct {
		to        int64
		stored    *projection.StoredPosition
		log       projection.Log
		epoch     int32
		processed projection.NextOffset
	}{
		"back":                             {3, stored, log, 7, projection.NextOffset{Offset: 6, LeaderEpoch: 5}},
		"where it is":                      {6, stored, log, 7, projection.NextOffset{Offset: 6, LeaderEpoch: 5}},
		"to the end":                       {10, stored, log, 7, projection.NextOffset{Offset: 10, LeaderEpoch: 7}},
		"of a new group":                   {10, nil, log, 7, projection.NextOffset{Offset: 10, LeaderEpoch: 7}},
		"back, and the log lost its end":   {3, stored, lost, 7, projection.NextOffset{Offset: 4, LeaderEpoch: none}},
		"of brokers that know of no epoch": {10, stored, old, none, projection.NextOffset{Offset: 10, LeaderEpoch: none}},
	} {
		want := projection.Reposition{To: c.to, SkipUnread: true}
		plan, err := want.Plan(c.stored, c.log)
		if err != nil || plan.LeaderEpoch != c.epoch || plan.Processed != c.processed {
			t.Errorf("%s: epoch %d, processed %+v, error %v; want %d and %+v", name, plan.LeaderEpoch, plan.Processed, err, c.epoch, c.processed)
		}
	}
}

// TestProcessedOffsetNeverGoesDown shows that Repositioned.Processed and Position.ProcessedUntil
// never become lower while the log is the same, even if the position is set back (invariant I13).
func TestProcessedOffsetNeverGoesDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const end = 50
		stored := projection.StoredPosition{TopicID: "id", StoppedEnd: projection.NoOffset}
		stored.ProcessedEpoch = projection.NoEpoch
		log := projection.Log{TopicID: "id", End: end, Epoch: 4, EpochEnd: projection.NoOffset, ProcessedEnd: projection.NoOffset}
		furthest := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0: // parked events or some entries of the next record are written
				stored.Position = stored.Moved(stored.NextOffset())
			case 1:
				next := min(end, stored.Next+rapid.Int64Range(1, 20).Draw(t, "records"))
				epoch := int32((next - 1) / 10)
				stored.Position = stored.Moved(projection.NextOffset{Offset: next, LeaderEpoch: epoch})
			default:
				want := projection.Reposition{To: rapid.Int64Range(0, stored.Next).Draw(t, "to")}
				plan, err := want.Plan(&stored, log)
				if err != nil {
					t.Fatal(err)
				}
				stored.Next, stored.LeaderEpoch = plan.To, plan.LeaderEpoch
				stored.ProcessedUntil, stored.ProcessedEpoch = plan.Processed.Offset, plan.Processed.LeaderEpoch
			}
			furthest = max(furthest, stored.Next)
			if stored.ProcessedUntil != furthest {
				t.Fatalf("the mark is %d, and records were processed up to %d", stored.ProcessedUntil, furthest)
			}
		}
	})
}
