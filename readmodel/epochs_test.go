package readmodel_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
)

// setBack sets the position back in only one column, as an operator might do it by SQL.
func setBack(t *testing.T, pool *pgxpool.Pool, offset int64) {
	t.Helper()
	exec(t, pool, "UPDATE projector_position SET next_offset = $1", offset)
}

func epochs(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	stored, err := readmodel.LoadPositions(t.Context(), pool, partition.Group, partition.Topic)
	if err != nil || len(stored) != 1 {
		t.Fatalf("%d positions, error %v", len(stored), err)
	}
	s := stored[0]
	return fmt.Sprint(s.Next, s.LeaderEpoch, s.ProcessedUntil, s.ProcessedEpoch)
}

// An older version of the program or an operator may move a position without its epoch. The stored
// epoch must then be unknown, not wrong.
func TestAnEpochBelongsToItsOffset(t *testing.T) {
	pool, w := startWorker(t)
	same(t, "of a new group", epochs(t, pool), "0 -1 0 -1")
	w.Next, w.Epoch = 6, 3
	w.MustFlush()
	same(t, "written", epochs(t, pool), "6 3 6 3")

	if pos := w.MustClaim("me", 4); pos.LeaderEpoch != 3 || pos.ProcessedUntil != 6 || pos.ProcessedEpoch != 3 {
		t.Errorf("taken back: %+v, want the epoch as an upper limit", pos)
	}
	same(t, "taken back", epochs(t, pool), "4 3 6 3")
	w.Next = 5
	w.MustFlush()
	same(t, "on the way again", epochs(t, pool), "5 3 6 3")
	w.Next = 9
	w.MustFlush()
	same(t, "beyond", epochs(t, pool), "9 3 9 3")

	setBack(t, pool, 7)
	same(t, "set by hand", epochs(t, pool), "7 -1 9 3")
	exec(t, pool, "UPDATE projector_position SET next_offset = 12, judged_until = greatest(judged_until, 12)")
	same(t, "moved by an older version", epochs(t, pool), "12 -1 12 -1")
	w.MustClaim("me", projection.NoOffset)
	w.Next, w.Epoch = 13, 5
	w.MustFlush()
	same(t, "known again", epochs(t, pool), "13 5 13 5")
}

func TestAStoppedPartitionStaysStopped(t *testing.T) {
	pool := openPool(t)
	w := newWorker(t, pool, partition)
	pos := w.MustClaim("me", projection.NoOffset)
	positions := readmodel.TopicPositions{Pool: pool, Group: partition.Group, Topic: partition.Topic}
	if err := positions.Stop(t.Context(), partition.Number, pos.Fence-1, 2, "stale"); !errors.Is(err, projection.ErrFenced) {
		t.Errorf("stopped by one who does not own it: %v, want ErrFenced", err)
	}
	for _, reason := range []string{"the first reason", "repeated, the reply was lost"} {
		if err := positions.Stop(t.Context(), partition.Number, pos.Fence, 2, reason); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		_, err := w.Claim(t.Context(), projection.Claim{Owner: "next", TopicID: "id", Committed: projection.NoOffset})
		var stopped *projection.StoppedError
		if !errors.As(err, &stopped) || stopped.Reason != "the first reason" || stopped.Position.Fence != pos.Fence {
			t.Errorf("claimed: %v, %+v; want the first reason, and the row as it was", err, stopped)
		}
	}
	exec(t, pool, "UPDATE projector_position SET stopped_reason = NULL")
	w.MustClaim("next", projection.NoOffset)
}

// When brokers are upgraded, a topic without an id gets an id. During the upgrade some brokers
// answer without the id.
func TestAnUnknownTopicIDIsNoOther(t *testing.T) {
	const none = "AAAAAAAAAAAAAAAAAAAAAA=="
	pool := openPool(t)
	w := newWorker(t, pool, partition)
	for _, step := range []struct{ id, stored string }{{none, none}, {"", none}, {"real", "real"}, {none, "real"}, {"real", "real"}} {
		if _, err := w.Claim(t.Context(), projection.Claim{Owner: "me", TopicID: step.id, Committed: projection.NoOffset}); err != nil {
			t.Fatalf("brokers say %q: %v", step.id, err)
		}
		same(t, "stored when brokers say "+step.id, lines(t, pool, "SELECT topic_id FROM projector_position"), step.stored)
	}
	if _, err := w.Claim(t.Context(), projection.Claim{Owner: "me", TopicID: "another"}); !errors.Is(err, projection.ErrTopicRecreated) {
		t.Errorf("error %v, want ErrTopicRecreated", err)
	}
}
