package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection"
)

// TestAPartitionThatNobodyConsumesIsFound compares the positions with the ends of the logs. Another
// program that owns a partition of the group, and commits nothing, would otherwise not be noticed.
func TestAPartitionThatNobodyConsumesIsFound(t *testing.T) {
	t.Parallel()
	_, seeds := startFake(t, 1, 7)
	at := func(partition int32, next int64) projection.StoredPosition {
		return projection.StoredPosition{Partition: partition, Position: projection.Position{Next: next, Fence: 4}}
	}
	paused, halted := at(4, 1), at(5, 1)
	paused.PausedReason, halted.HaltedReason = "new column", "no schema"
	// Partition 0 is owned, 1 is consumed, 2 is not, and 3 has no position. Partition 6 is empty.
	s := &script{positions: []projection.StoredPosition{at(0, 1), at(1, 2), at(2, 1), paused, halted}}
	c := scriptedConsumer(t, s, func(*Config) {})
	connect(t, c, seeds)
	c.workers[0] = newWorker(t.Context(), c, 0)
	producer, err := kgo.NewClient(seeds, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	for partition := range int32(6) {
		for range 2 {
			if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Partition: partition}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	found, err := c.findUnconsumed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[int32][2]int64{}
	for _, u := range found {
		got[u.partition] = [2]int64{u.position, u.fence}
	}
	if len(found) != 2 || got[2] != [2]int64{1, 4} || got[3] != [2]int64{0, 0} {
		t.Errorf("found %+v", found)
	}
}

// TestAPartitionThatNobodyConsumesIsReported warns if a position stays the same for long. Each new
// claim and each new position begin the time again.
func TestAPartitionThatNobodyConsumesIsReported(t *testing.T) {
	health := &healthLog{}
	c := scriptedConsumer(t, &script{}, func(cfg *Config) { cfg.Health = health })
	begin := time.Now()
	var (
		seen   []unconsumed
		warned bool
	)
	note := func(after time.Duration, now ...unconsumed) bool {
		for i := range now {
			now[i].since, now[i].seen = begin.Add(after), begin.Add(after)
		}
		seen = sinceFirstSeen(seen, now)
		warned = c.noteUnconsumed(seen, begin.Add(after), warned)
		return warned
	}
	stays, moves := unconsumed{partition: 2, position: 5, fence: 2}, unconsumed{partition: 0, position: 7, fence: 2}
	claimed := unconsumed{partition: 1, position: 5, fence: 2}
	for after := time.Duration(0); after < unconsumedAfter; after += unconsumedEvery {
		if note(after, stays, moves, claimed) {
			t.Errorf("warned too early, after %s", after)
		}
	}
	moves.position++
	claimed.fence++
	if !note(unconsumedAfter, claimed, stays, moves) || !note(unconsumedAfter+1, claimed, stays, moves) {
		t.Error("not warned")
	}
	if note(unconsumedAfter+2, claimed, moves) || note(unconsumedAfter+3) {
		t.Error("the warning did not end")
	}
	const warning = "warn partitions: partition 2 has records from offset 5 on that have not been processed for more than 5m0s, and this instance does not own it. " +
		"If no instance reports the cause, a program that is not projector may be a member of group g"
	if health.count(0, warning) != 2 || health.count(0, "ok partitions") != 1 || len(health.reported) != 3 {
		t.Errorf("%q", health.reported)
	}
}

// TestAnOutageIsNotTimeWithoutAConsumer shows that the time begins again if a server did not answer for
// long. The owner could not consume either, and it needs a moment after the outage.
func TestAnOutageIsNotTimeWithoutAConsumer(t *testing.T) {
	begin := time.Now()
	at := func(after time.Duration) []unconsumed {
		return []unconsumed{{partition: 2, position: 5, fence: 2, since: begin.Add(after), seen: begin.Add(after)}}
	}
	seen := sinceFirstSeen(at(0), at(unconsumedEvery))
	if one := sinceFirstSeen(seen, at(3*unconsumedEvery)); !one[0].since.Equal(begin) {
		t.Error("one failed check has begun the time again")
	}
	if one := sinceFirstSeen(seen, at(unconsumedAfter)); one[0].since.Equal(begin) {
		t.Error("an outage counts as time without a consumer")
	}
}

// TestAWarningAboutTheGroupEndsWithItsWatcher expects that warnings end when the client is replaced,
// because the topic was deleted and created again. The next watchers do not know these warnings.
func TestAWarningAboutTheGroupEndsWithItsWatcher(t *testing.T) {
	health := &healthLog{}
	c := scriptedConsumer(t, &script{}, func(cfg *Config) { cfg.Health = health })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.watchElsewhere(ended)
	c.watchUnconsumed(ended)
	if health.count(0, "ok group") != 1 || health.count(0, "ok partitions") != 1 {
		t.Errorf("%q", health.reported)
	}
}
