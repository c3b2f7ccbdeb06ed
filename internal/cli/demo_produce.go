package cli

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/bank"
)

// place is where a record stands in the topic.
type place struct {
	partition int32
	offset    int64
}

// produce makes the stream, writes it into the ledger and produces all of it. The
// stream is let go then: what is measured later is the projector.
func (d *demo) produce(ctx context.Context) error {
	d.bar.show("making up events", 0, 0)
	stream := bank.NewStream(bank.Options{
		Accounts: d.cmd.Accounts, Events: d.cmd.Events, Seed: d.cmd.Seed, Prefix: d.accountPrefix, Refused: d.ownDatabase,
	})
	d.ledger = bank.NewLedger()
	for i := range stream.Records {
		d.ledger.Deliver(i, stream.Records[i].Value)
	}
	d.places = make([]place, len(stream.Records))
	d.page.fact("Stream", fmt.Sprintf("%s records of %s accounts in %d currencies, %s of them delivered twice; seed %d",
		grouped(len(stream.Records)), grouped(d.cmd.Accounts), stream.Currencies, grouped(stream.Redelivered), d.cmd.Seed))
	return d.send(ctx, stream.Records)
}

// send produces the records and returns when all are acknowledged.
func (d *demo) send(ctx context.Context, records []bank.Record) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var acknowledged atomic.Int64
	for i := range records {
		r := &kgo.Record{Topic: d.run.Topic, Key: records[i].Key, Value: records[i].Value}
		d.kafka.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err != nil {
				cancel(err)
				return
			}
			d.places[i] = place{r.Partition, r.Offset}
			acknowledged.Add(1)
		})
		if i%1000 == 0 {
			d.bar.show("producing", int(acknowledged.Load()), len(records))
		}
	}
	if err := d.kafka.Flush(ctx); err != nil || int(acknowledged.Load()) < len(records) {
		return fmt.Errorf("produce the stream: %w", context.Cause(ctx))
	}
	return nil
}

// rate is events a second, as text.
func rate(n int, took time.Duration) string {
	if took <= 0 {
		return "-"
	}
	return grouped(int(float64(n) / took.Seconds()))
}
