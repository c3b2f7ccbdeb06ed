package repair_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/repair"
)

// TestARepairLetsConsumersGoOn shows that, between two of its transactions, a repair waits for a
// consumer that it has overtaken and that has unread records. It waits until this consumer has made
// some progress, even if the consumer is slow. It does not wait for a consumer that is at the end
// or was not overtaken.
func TestARepairLetsConsumersGoOn(t *testing.T) {
	pool := openPool(t)
	for _, p := range []int32{0, 1, 2} { // the second consumer is at its end, the third was not overtaken
		of := readmodeltest.InPartition(p)
		of.Projection = readmodel.BalanceName
		if _, err := readmodel.ClaimPosition(t.Context(), pool, of, projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset}); err != nil {
			t.Fatal(err)
		}
	}
	format := jsonFormat(t)
	repairer := repair.New(readmodel.RepairConfig{
		Pool: pool, Formats: event.Always(format), FirstVersion: 1, Piece: 1,
		Ends: func(context.Context, string) map[int32]int64 { return map[int32]int64{0: 1000, 1: 0, 2: 1000} },
	})
	var (
		at       []int
		consumer sync.WaitGroup
	)
	records := replayOf(format, credit("a", 1, "1", "EUR"), credit("a", 2, "1", "EUR"), credit("a", 3, "1", "EUR"), credit("a", 4, "1", "EUR"))
	err := repairer.Apply(t.Context(), records, func(readmodel.Step) {
		at = append(at, count(t, pool, "SELECT next_offset FROM projector_position WHERE partition = 0"))
		if _, err := pool.Exec(t.Context(), "UPDATE projector_position SET fence = fence + 1 WHERE partition < 2"); err != nil {
			t.Error(err)
		}
		consumer.Go(func() { // much slower than the repair's transaction
			<-time.After(100 * time.Millisecond)
			if _, err := pool.Exec(context.WithoutCancel(t.Context()), "UPDATE projector_position SET next_offset = next_offset + 1 WHERE partition = 0"); err != nil {
				t.Error(err)
			}
		})
	})
	consumer.Wait()
	if err != nil || len(at) != 4 {
		t.Fatalf("%d transactions, error %v", len(at), err)
	}
	for i := 1; i < len(at); i++ {
		if at[i] <= at[i-1] {
			t.Errorf("the consumer was at %v: it did not move between two transactions", at)
		}
	}
}
