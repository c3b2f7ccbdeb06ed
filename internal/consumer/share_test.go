package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/session"
)

// TestWorkersBeginWithTheirShare shows that the number of partitions is known when a worker opens
// its projection. The worker's share of the memory depends on it.
func TestWorkersBeginWithTheirShare(t *testing.T) {
	const partitions = 8
	_, seeds := startFake(t, 1, partitions)
	among := make(chan int, partitions)
	var c *Consumer
	c = scriptedConsumer(t, agreeing(partitions), func(cfg *Config) {
		cfg.Client = []kgo.Opt{seeds}
		cfg.Open = func(int32) session.Projection {
			among <- c.Partitions()
			return pending(0)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for range partitions {
		select {
		case n := <-among:
			if n != partitions {
				t.Errorf("a worker takes a %dth of the memory, want an %dth", n, partitions)
			}
		case <-time.After(time.Minute):
			t.Fatal("not assigned")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
