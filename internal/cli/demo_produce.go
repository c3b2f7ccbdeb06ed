package cli

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/testbank"
)

// produce makes the stream, produces all of it and has the ledger decide what it comes
// to. The stream is let go then: what is measured later is the projector.
func (d *demo) produce(ctx context.Context) error {
	d.bar.show("making up events", 0, 0)
	stream := testbank.NewShowcase(testbank.ShowcaseOptions{
		Accounts: d.cmd.Accounts, Events: d.cmd.Events, Seed: d.cmd.Seed, Prefix: d.accountPrefix, Refused: d.ownDatabase,
	})
	d.records = len(stream.Records)
	d.page.fact("Stream", fmt.Sprintf("%s records of %s accounts in %d currencies, %s of them delivered twice; seed %d",
		grouped(d.records), grouped(d.cmd.Accounts), stream.Currencies, grouped(stream.Redelivered), d.cmd.Seed))
	if err := d.send(ctx, stream.Records); err != nil {
		return err
	}
	d.ledger = testbank.New()
	if d.ownDatabase {
		d.ledger.RefuseCurrency = testbank.RefusedCurrency
	}
	d.ledger.Decide(stream.Records)
	return nil
}

// send produces the records, returns when all are acknowledged and notes in each where
// it stands.
func (d *demo) send(ctx context.Context, records []testbank.Record) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var acknowledged atomic.Int64
	for i := range records {
		to := &records[i]
		r := &kgo.Record{Topic: d.run.Topic, Key: to.Key, Value: to.Value}
		d.kafka.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err != nil {
				cancel(err)
				return
			}
			to.Partition, to.Offset = r.Partition, r.Offset
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
