package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection/event"
)

// decodeCmd is the decode limit: how fast the topic can be fetched and decoded when
// nothing is done with the events.
type decodeCmd struct {
	Brokers    []string
	Topic      string
	Partitions int
	Events     int
}

// Run implements a limit.
func (c *decodeCmd) Run(ctx context.Context, std *streams) error {
	return serve(std, func() (answer, error) {
		start := time.Now()
		if err := c.decodeAll(ctx); err != nil {
			return answer{}, err
		}
		return answer{Seconds: time.Since(start).Seconds(), Events: c.Events}, nil
	})
}

func (c *decodeCmd) decodeAll(ctx context.Context) error {
	format := event.NewJSON(event.Options{FirstVersion: 1})
	// One partition's fetched records wait a core: what is ahead is bounded, as in
	// any consumer.
	work := make(chan []*kgo.Record, runtime.GOMAXPROCS(0))
	var faults atomic.Int64
	var decoding sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		decoding.Go(func() {
			var d event.Decoded
			for records := range work {
				for _, r := range records {
					format.Decode(event.Message{Key: r.Key, Value: r.Value}, &d)
					if d.Fault != nil {
						faults.Add(1)
					}
				}
			}
		})
	}
	err := fetchAll(ctx, c.Brokers, c.Topic, c.Partitions, c.Events, func(records []*kgo.Record) { work <- records })
	close(work)
	decoding.Wait()
	if n := faults.Load(); err == nil && n > 0 {
		return fmt.Errorf("%d events could not be decoded", n)
	}
	return err
}
