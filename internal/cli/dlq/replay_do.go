package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/connect"
	"projector/internal/cli/output"
	"projector/internal/pace"
	"projector/readmodel"
)

// apply applies the records to the database and takes note of the results.
func (r *replay) apply(ctx context.Context) error {
	if err := r.recordFixed(ctx); err != nil {
		return err
	}
	shown, done := output.NewProgress(r.std.Err, "replayed"), int64(0)
	err := r.letters.Apply(ctx, r.judged, func(step readmodel.Step) {
		done += int64(step.Records)
		shown.Update(done, int64(len(r.items)))
	})
	shown.Done()
	for _, item := range r.items {
		if item.repair != nil && item.repair.Judged {
			item.result = string(readmodel.EffectOf(item.repair.Verdict))
		}
	}
	return err
}

// recordFixed records what was asked for and not even tried.
func (r *replay) recordFixed(ctx context.Context) error {
	var actions []readmodel.Action
	for _, item := range r.items {
		if item.repair != nil {
			continue
		}
		if item.result == "" {
			item.result = item.plan
		}
		actions = append(actions, r.done(item))
	}
	return readmodel.RecordActions(ctx, r.pool, actions)
}

// done is the action of an item that was not judged.
func (r *replay) done(item *replayItem) readmodel.Action {
	a := item.action(readmodel.ActionReplay, r.cmd.ActorName())
	a.Result, a.Reason = item.result, item.why
	return a
}

const (
	// publishChunk is how many records are on their way to a topic at once.
	publishChunk = 500
	// publishWithin bounds how long one may take.
	publishWithin = 20 * time.Second
)

// publish publishes the raw records to a topic, in order, and records it.
func (r *replay) publish(ctx context.Context) error {
	client, err := r.producer()
	if err != nil {
		return err
	}
	defer client.Close()
	size := publishChunk
	if r.cmd.Rate > 0 {
		size = min(size, r.cmd.Rate)
	}
	shown, done := output.NewProgress(r.std.Err, "published"), 0
	defer shown.Done()
	for chunk := range slices.Chunk(r.items, size) {
		if err := r.pace(ctx, done, len(chunk)); err != nil {
			return err
		}
		if err := r.publishChunk(ctx, client, chunk); err != nil {
			return err
		}
		done += len(chunk)
		shown.Update(int64(done), int64(len(r.items)))
	}
	return nil
}

// pace waits for as long as the rate asks between chunks.
func (r *replay) pace(ctx context.Context, done, n int) error {
	if r.cmd.Rate == 0 || done == 0 {
		return ctx.Err()
	}
	return pace.Sleep(ctx, time.Duration(n)*time.Second/time.Duration(r.cmd.Rate))
}

// producer is a client that keeps the order of an account's records.
func (r *replay) producer() (*kgo.Client, error) {
	log, err := r.cmd.Logger(r.std.Err)
	if err != nil {
		return nil, err
	}
	opts, err := r.cmd.Client(log)
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(append(opts,
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.DisableIdempotentWrite(), // needs a further grant on old brokers; the read model takes a copy for a duplicate
		kgo.MaxProduceRequestsInflightPerBroker(1),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.RecordDeliveryTimeout(publishWithin),
		kgo.ProducerLinger(0),
	)...)
}

// publishChunk ends what it has begun, also when ctx ends: what is in the topic has to be
// in the audit trail.
func (r *replay) publishChunk(ctx context.Context, client *kgo.Client, chunk []*replayItem) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishWithin+connect.OneShotWithin)
	defer cancel()
	flights := make([]chan error, len(chunk))
	for i, item := range chunk {
		record, ok := r.record(item)
		if !ok {
			continue
		}
		flight := make(chan error, 1)
		flights[i] = flight
		client.Produce(ctx, record, func(_ *kgo.Record, err error) { flight <- err })
	}
	var (
		actions []readmodel.Action
		failure error
	)
	for i, item := range chunk {
		if flights[i] != nil {
			if err := <-flights[i]; err != nil {
				failure = fmt.Errorf("publish to topic %q: %w", r.cmd.ToTopic, err)
				continue
			}
			item.result = readmodel.ResultPublished
		}
		action := r.done(item)
		if item.result == readmodel.ResultPublished {
			action.Reason = "to topic " + r.cmd.ToTopic
		}
		actions = append(actions, action)
	}
	return errors.Join(failure, readmodel.RecordActions(ctx, r.pool, actions))
}

// record is what is published of an item; false when it is not published, with the
// reason noted.
func (r *replay) record(item *replayItem) (*kgo.Record, bool) {
	if item.result == readmodel.ResultRefused {
		return nil, false
	}
	entry := item.Entry
	entry.Replays = item.replays // those to the database count as well
	record, err := entry.Republish(r.cmd.ToTopic)
	if err != nil {
		item.result, item.why = planPoison, err.Error()
		return nil, false
	}
	return record, true
}
