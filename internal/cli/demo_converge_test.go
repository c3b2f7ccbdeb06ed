package cli

import (
	"testing"

	"projector/internal/consumer"
)

// A partition that has reached its end is called idle when the others take their time.
func TestAPartitionThatIsIdleHasConverged(t *testing.T) {
	ends := map[int32]int64{0: 10, 1: 20}
	for state, want := range map[consumer.State]bool{
		consumer.Flowing: true, consumer.Idle: true, consumer.Paused: true,
		consumer.Starting: false, consumer.Retrying: false, consumer.Stopped: false,
	} {
		idle, behind := standing([]consumer.PartitionStatus{
			{Partition: 0, State: state, Position: 10, Claimed: true},
			{Partition: 1, State: consumer.Flowing, Position: 20, Claimed: true},
		}, ends)
		if idle != want || behind != 0 {
			t.Errorf("%s: converged %t, %d behind", state, idle, behind)
		}
	}
}
