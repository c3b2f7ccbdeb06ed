package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/retry"
	"projector/internal/session"
)

// TestACommittedOffsetIsRefusedForSomeTime shows that a partition is consumed when the brokers return
// its committed offset again. The client itself would leave the partition out until its next
// assignment, and nothing would report this.
func TestACommittedOffsetIsRefusedForSomeTime(t *testing.T) {
	t.Parallel()
	cluster, seeds := startFake(t, 1, 2)
	produceToEach(t, seeds, 2)
	refused := cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.OffsetFetch}, Topic: "t", Partitions: []int32{1}, Err: kerr.TopicAuthorizationFailed, Count: 2,
	})
	c := scriptedConsumer(t, pending(0), func(cfg *Config) {
		cfg.Client = []kgo.Opt{seeds}
		cfg.Open = func(int32) session.Projection { return pending(0) }
		cfg.Retry = retry.Policy{Initial: 50 * time.Millisecond, Attempt: 10 * time.Second}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	awaitOn(ctx, t, c, "both partitions are consumed", func() bool { return consumed(c, 0) && consumed(c, 1) })
	if hits := refused.Hits(); hits < 2 {
		t.Errorf("%d requests were refused, want at least 2", hits)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
