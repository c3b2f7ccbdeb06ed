package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/pace"
	"projector/internal/topic"
	"projector/readmodel"
)

// Apply executes the plan in the database. It sets the results even after an error, because
// committed transactions are not rolled back. The function shown is called with the progress,
// unless it is nil.
func (r *Replay) Apply(ctx context.Context, shown func(done, total int64)) error {
	if err := r.recordPlannedLocally(ctx); err != nil {
		return err
	}
	for _, item := range r.Items {
		if item.Record != nil {
			item.Record.Action = item.replayed(r)
		}
	}
	return r.events().apply(ctx, r.Store, shown)
}

// recordPlannedLocally writes the audit trail's rows of the items without a Record. Their plan was
// made without the database.
func (r *Replay) recordPlannedLocally(ctx context.Context) error {
	var actions []readmodel.Action
	for _, item := range r.Items {
		if item.Record != nil {
			continue
		}
		if item.Result == "" {
			item.Result = item.Plan
		}
		actions = append(actions, r.done(item))
	}
	return r.Store.Record(ctx, actions)
}

// done returns the audit trail's row for an item, with the result and the reason from the item.
func (r *Replay) done(item *Item) readmodel.Action {
	a := item.replayed(r)
	a.Result = item.Result
	return a.Because(item.why)
}

const (
	// publishAtOnce is how many records are published at the same time, and publishBytes is their size.
	// They fit into one batch of Kafka's default limit of 1,000,012 bytes. A larger record is published
	// alone.
	publishAtOnce = 500
	publishBytes  = 900_000
	// publishWithin is the deadline for the delivery of one record.
	publishWithin = 20 * time.Second
)

// Producer publishes records in the order of the calls of Produce.
type Producer interface {
	Produce(ctx context.Context, record *kgo.Record, promise func(*kgo.Record, error))
}

// NewProducer returns a client that keeps the order of the records with the same key.
func NewProducer(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(slices.Clip(options),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// Idempotent writes need a further ACL on old brokers, and duplicates do no harm.
		kgo.DisableIdempotentWrite(),
		kgo.MaxProduceRequestsInflightPerBroker(1),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.RecordDeliveryTimeout(publishWithin),
		kgo.ProducerLinger(0),
		// These options are for a large record, which is alone in its batch. The original may have been
		// small enough only because it was compressed. All consumers of the topic can read gzip.
		kgo.BrokerMaxWriteBytes(topic.MaxBatchBytes+1<<20),
		kgo.ProducerBatchMaxBytes(topic.MaxBatchBytes),
		kgo.ProducerBatchCompression(kgo.GzipCompression(), kgo.NoCompression()),
	)...)
}

// Publish publishes the original records to ToTopic in order, and writes each result except a
// failure to the audit trail. The function shown is called with the progress, unless it is nil.
func (r *Replay) Publish(ctx context.Context, producer Producer, shown func(done, total int64)) error {
	size := publishAtOnce
	if r.Rate > 0 {
		size = min(size, r.Rate)
	}
	done := 0
	for rest := r.Items; len(rest) > 0; {
		chunk := rest[:atOnce(rest, size)]
		rest = rest[len(chunk):]
		if err := r.pace(ctx, done, len(chunk)); err != nil {
			return err
		}
		if err := r.publish(ctx, producer, chunk); err != nil {
			return err
		}
		if done += len(chunk); shown != nil {
			shown(int64(done), int64(len(r.Items)))
		}
	}
	return nil
}

// atOnce returns how many of the items are published at the same time, at most as many as the parameter
// most says.
func atOnce(items []*Item, most int) int {
	most = min(most, len(items))
	size := 0
	for n, item := range items[:most] {
		if size += item.bytes(); size > publishBytes {
			return max(n, 1)
		}
	}
	return most
}

// pace waits between two chunks, so that Rate is not exceeded.
func (r *Replay) pace(ctx context.Context, done, n int) error {
	if r.Rate == 0 || done == 0 {
		return ctx.Err()
	}
	return pace.Sleep(ctx, time.Duration(n)*time.Second/time.Duration(r.Rate))
}

// publish publishes a chunk. It finishes the chunk even if ctx ends, because each published record
// must be in the audit trail.
func (r *Replay) publish(ctx context.Context, producer Producer, chunk []*Item) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishWithin+askWithin)
	defer cancel()
	flights := make([]chan error, len(chunk))
	for i, item := range chunk {
		record, ok := r.republished(item)
		if !ok {
			continue
		}
		flight := make(chan error, 1)
		flights[i] = flight
		producer.Produce(ctx, record, func(_ *kgo.Record, err error) { flight <- err })
	}
	var (
		actions []readmodel.Action
		failure error
	)
	for i, item := range chunk {
		if flights[i] != nil {
			err := <-flights[i]
			switch {
			case errclass.TooLarge(err) && len(chunk) == 1: // the other records can still be published
				item.Result, item.why = readmodel.ResultRefused, "topic "+r.ToTopic+" refuses it as too large: raise max.message.bytes of the topic"
			case err != nil:
				failure = fmt.Errorf("publish to topic %q: %w", r.ToTopic, err)
				if topic.Unauthorized(err) {
					failure = fmt.Errorf("missing ACL: WRITE on topic %s: %w", r.ToTopic, err)
				}
				continue
			default:
				item.Result = readmodel.ResultPublished
			}
		}
		action := r.done(item)
		if item.Result == readmodel.ResultPublished {
			action = action.Because("to topic " + r.ToTopic)
		}
		actions = append(actions, action)
	}
	return errors.Join(failure, r.Store.Record(ctx, actions))
}

// republished returns the record to publish for an item. If the item is refused, it returns false,
// and the item has the reason.
func (r *Replay) republished(item *Item) (*kgo.Record, bool) {
	if item.Result == readmodel.ResultRefused {
		return nil, false
	}
	entry := item.Entry
	entry.Replays = item.Replays // this count includes replays to the database
	record, err := entry.Republish(r.ToTopic)
	if err != nil {
		item.Result, item.why = PlanPoison, err.Error()
		return nil, false
	}
	return record, true
}
