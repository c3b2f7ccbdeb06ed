package consumer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/retry"
	"projector/internal/session"
)

// TestAPartitionWithoutALeader shows that a partition without a leader makes the instance unready
// but does not delay other partitions. It is consumed again when it has a leader.
func TestAPartitionWithoutALeader(t *testing.T) {
	t.Parallel()
	cluster, seeds := startFake(t, 1, 2)
	produceToEach(t, seeds, 2)
	leaderless := cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Metadata}, Topic: "t", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1,
	})

	h, s := &healthLog{}, pending(0)
	c := scriptedConsumer(t, s, func(cfg *Config) {
		cfg.Client, cfg.Health = []kgo.Opt{seeds, kgo.MetadataMinAge(50 * time.Millisecond)}, h
		cfg.Open = func(int32) session.Projection { return pending(0) }
		cfg.Retry = retry.Policy{Initial: 50 * time.Millisecond, Attempt: 10 * time.Second}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	await := func(what string, holds func() bool) {
		t.Helper()
		awaitOn(ctx, t, c, what, holds)
	}
	await("the other partition is consumed", func() bool { return consumed(c, 0) })
	await("the instance is unready", func() bool { return h.count(0, "soon partition t/1 leader") > 0 })
	if consumed(c, 1) {
		t.Error("consumed a partition without a leader")
	}
	h.mu.Lock()
	beforeRepair := len(h.reported)
	h.mu.Unlock()
	leaderless.Remove()
	await("it has a leader again", func() bool { return h.count(beforeRepair, "ok partition t/1 leader") > 0 })
	await("it is consumed", func() bool { return consumed(c, 1) })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// awaitOn waits until holds returns true. The test fails if ctx ends before.
func awaitOn(ctx context.Context, t *testing.T, c *Consumer, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: never; %+v", what, c.Status())
		}
	}
}

// consumed reports whether the only record of a partition is durable.
func consumed(c *Consumer, partition int32) bool {
	for _, p := range c.Status() {
		if p.Partition == partition {
			return p.Position == 1
		}
	}
	return false
}

func produceToEach(t *testing.T, seeds kgo.Opt, partitions int32) {
	t.Helper()
	cl, err := kgo.NewClient(seeds, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for p := range partitions {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Partition: p, Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALeaderThatDoesNotAnswer shows that a frozen leader delays only its own partitions. For some
// seconds the brokers still report it as the leader. During that time, the answers of the other
// leaders must count.
func TestALeaderThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	cluster, _ := startFake(t, 2, 2)
	// The group's coordinator must work, because only the partition's leader is frozen.
	working := cluster.CoordinatorFor("g")
	frozen := 1 - working
	if err := cluster.MoveTopicPartition("t", 0, working); err != nil {
		t.Fatal(err)
	}
	if err := cluster.MoveTopicPartition("t", 1, frozen); err != nil {
		t.Fatal(err)
	}
	seeds := kgo.SeedBrokers(cluster.ListenAddrs()[working])
	produceToEach(t, seeds, 2)
	cluster.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if cluster.CurrentNode() != frozen {
			return nil, nil, false
		}
		// The broker does not answer, and closes the connection after one second. Otherwise the
		// client would wait for 25 s. Other requests, such as for metadata or for the coordinator,
		// wait on the same connection. It is random which requests go to the frozen broker.
		cluster.SleepControl(func() {
			select {
			case <-time.After(time.Second):
			case <-t.Context().Done():
			}
		})
		return nil, errors.New("no answer"), true
	})
	// The stored positions must not make the workers claim again, because a claim takes five
	// seconds while a leader does not answer.
	c := scriptedConsumer(t, agreeing(2), func(cfg *Config) {
		cfg.Client, cfg.Health = []kgo.Opt{seeds, kgo.MetadataMinAge(50 * time.Millisecond)}, &healthLog{}
		cfg.Open = func(int32) session.Projection { return pending(0) }
		cfg.Retry = retry.Policy{Initial: 50 * time.Millisecond, Max: time.Second, Attempt: 10 * time.Second}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !consumed(c, 0) {
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
			t.Errorf("the partition whose leader answers is not consumed: %+v", c.Status())
		}
		break
	}
	stopped := time.Now()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(stopped); took > 40*time.Second {
		t.Errorf("the stop took %s", took)
	}
}
