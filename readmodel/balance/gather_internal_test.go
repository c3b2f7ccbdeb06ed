package balance

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"projector/internal/pace"
)

// TestTheLeaderWaitsForPartitionsThatMayJoin lets partitions arrive one by one, every 100 µs. In
// some cases, some or all of them read before they write. The first partition must wait until the
// others have arrived, and no longer. If one of them does not arrive, the first partition waits for
// gatherFor.
func TestTheLeaderWaitsForPartitionsThatMayJoin(t *testing.T) {
	const apart, asking = 100 * time.Microsecond, 200 * time.Microsecond
	for name, c := range map[string]struct {
		busy, come, read int // the first partitions to arrive read before they write
		reads, writes    []int
		took             time.Duration
	}{
		"all write":                 {busy: 4, come: 4, writes: []int{4}, took: 3 * apart},
		"one is alone":              {busy: 1, come: 1, writes: []int{1}},
		"all read first":            {busy: 4, come: 4, read: 4, reads: []int{4}, writes: []int{4}, took: 3*apart + asking},
		"some read first":           {busy: 4, come: 4, read: 2, reads: []int{2}, writes: []int{4}, took: 3*apart + asking},
		"one does not come":         {busy: 5, come: 4, writes: []int{4}, took: gatherFor},
		"one does not come to read": {busy: 5, come: 4, read: 4, reads: []int{4}, writes: []int{4}, took: 2*gatherFor + asking},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGathering(func() int { return c.busy })
				var (
					reads, writes []int
					took          time.Duration
					coming        sync.WaitGroup
				)
				began := time.Now()
				for i := range c.come {
					coming.Go(func() {
						if i < c.read {
							r := &read{done: make(chan error, 1)}
							if all := join(&g, &g.reads, r); all != nil {
								reads = append(reads, len(all))
								_ = pace.Sleep(t.Context(), asking)
								done(&g, &g.reads, len(all))
								for _, r := range all {
									r.done <- nil
								}
							}
							if err := <-r.done; err != nil {
								t.Error(err)
							}
						}
						if all := join(&g, &g.writes, &member{}); all != nil {
							writes, took = append(writes, len(all)), time.Since(began)
						}
					})
					_ = pace.Sleep(t.Context(), apart)
				}
				coming.Wait()
				if !slices.Equal(reads, c.reads) || !slices.Equal(writes, c.writes) || took != c.took {
					t.Errorf("reads %v, writes %v after %s, want %v, %v after %s", reads, writes, took, c.reads, c.writes, c.took)
				}
			})
		})
	}
}

// In TestPartitionsInATransactionAreNotWaitedFor, a third member arrives during the transaction of
// two others. The third member must not wait for them.
func TestPartitionsInATransactionAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGathering(func() int { return 3 })
		g.writes.acting = 2
		began := time.Now()
		if all := join(&g, &g.writes, &member{}); len(all) != 1 || time.Since(began) != 0 {
			t.Errorf("%d after %s", len(all), time.Since(began))
		}
	})
}

// TestOneHasNothingLeftToWrite shows that the leader starts at the next check if the other
// partition has nothing left to write.
func TestOneHasNothingLeftToWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Int64
		busy.Store(2)
		g := newGathering(func() int { return int(busy.Load()) })
		time.AfterFunc(checkEvery/2, func() { busy.Store(1) })
		began := time.Now()
		if all := join(&g, &g.writes, &member{}); len(all) != 1 || time.Since(began) != checkEvery {
			t.Errorf("%d after %s, want one after %s", len(all), time.Since(began), checkEvery)
		}
	})
}

// TestTheNumberOfActivePartitionsIsUnknown shows that the first member waits for gatherFor if the
// number of active partitions is unknown.
func TestTheNumberOfActivePartitionsIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGathering(nil)
		began := time.Now()
		if all := join(&g, &g.writes, &member{}); len(all) != 1 || time.Since(began) != gatherFor {
			t.Errorf("%d after %s", len(all), time.Since(began))
		}
	})
}
