package consumer

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/session"
)

// TestAnIdleConsumerAsksSeldom shows that a consumer without new records pauses between its
// fetches. A record that arrives during a pause is still read.
func TestAnIdleConsumerAsksSeldom(t *testing.T) {
	t.Parallel()
	cluster, seeds := startFake(t, 2, 2)
	for p := range int32(2) { // each broker leads one partition
		if err := cluster.MoveTopicPartition("t", p, p); err != nil {
			t.Fatal(err)
		}
	}
	rests := make(chan struct{}, 100)
	var last [2]time.Time
	cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		at := &last[cluster.CurrentNode()]
		if now := time.Now(); !at.IsZero() && now.Sub(*at) >= idleRest {
			select {
			case rests <- struct{}{}:
			default:
			}
		}
		*at = time.Now()
		return nil, nil, false
	})
	// The stored positions must not make the workers claim again. Each claim causes a seek, and a
	// seek ends a pause.
	c := scriptedConsumer(t, agreeing(2), func(cfg *Config) {
		cfg.Client, cfg.Health = []kgo.Opt{seeds}, &healthLog{}
		cfg.Open = func(int32) session.Projection { return pending(0) }
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	for range 8 {
		select {
		case <-rests:
		case <-ctx.Done():
			t.Fatal("brokers are asked without a rest")
		}
	}
	produceToEach(t, seeds, 2)
	for p := range int32(2) {
		for ctx.Err() == nil && !consumed(c, p) {
			<-time.After(5 * time.Millisecond)
		}
	}
	if ctx.Err() != nil {
		t.Error("records that came at rest were not read")
	}
	cancel()
	running.Wait()
}
