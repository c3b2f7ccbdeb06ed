package dlq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/retry"
	"projector/projection/event"
)

const (
	defaultTimeout = 10 * time.Second
	// quickRetries is how often the client itself repeats a request within one attempt. This is
	// enough when a partition's leader changes. The caller retries after longer outages.
	quickRetries = 3
	// maxBuffered is so high that it is not reached in practice. Otherwise one stuck partition
	// could fill the buffer and stop the others. The buffer needs little memory, because it holds
	// each dead letter at most once and shares its bytes with the batch.
	maxBuffered = 1 << 24
)

// PublisherConfig contains the settings of a Publisher.
type PublisherConfig struct {
	Topic string // topic of the dead letters
	Stamp Stamp
	// Client contains the options to connect to the brokers: seeds, TLS, SASL, client id, logger.
	// Several clients use these options, so Hooks is a separate field.
	Client []kgo.Opt
	// Hooks observe the client that publishes, e.g. for metrics.
	Hooks []kgo.Hook
	// Timeout limits how long one attempt may take for a dead letter. The client checks the limit
	// when a request ends. The default is 10 seconds, and the minimum is 1 second.
	Timeout time.Duration
	// Published is called for each dead letter that the brokers have acknowledged. The client's
	// goroutine calls it, so it must not block. It may be nil.
	Published func(Published)
	Logger    *slog.Logger
}

// Published identifies an acknowledged dead letter by its partition and offset in the DLQ topic. It
// also identifies the original record in the source topic.
type Published struct {
	FailedAt     time.Time
	Class        event.Class
	DLQPartition int32
	DLQOffset    int64
	Topic        string // of the source, like Partition and Offset
	Partition    int32
	Offset       int64
}

// Publisher publishes dead letters with Kafka clients that nothing else uses. It is safe for use by
// several goroutines, each with its own Delivery.
type Publisher struct {
	cfg     PublisherConfig
	client  *kgo.Client
	pending sync.WaitGroup             // closing of clients, which callers do not wait for
	large   atomic.Pointer[kgo.Client] // sends large dead letters; nil if there is none or a call uses it
	cuts    *retry.Lines               // log lines about dead letters that were cut
}

// NewPublisher returns a Publisher that connects when it is first used. The
// caller closes it.
func NewPublisher(cfg PublisherConfig) (*Publisher, error) {
	if cfg.Topic == "" {
		return nil, errors.New("dead letter publisher: no topic")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	p := &Publisher{cfg: cfg, cuts: retry.NewLines(logCutEvery, logCutEvery)}
	client, err := kgo.NewClient(append(p.options(), kgo.WithHooks(cfg.Hooks...))...)
	if err != nil {
		return nil, fmt.Errorf("dead letter publisher: %w", err)
	}
	p.client = client
	return p, nil
}

// options returns the options of every client of the Publisher. Idempotence is off for two reasons.
// Old brokers require an extra permission for it. And an idempotent client must not give up a
// record that may already be written. Without idempotence a dead letter may be published twice.
func (p *Publisher) options() []kgo.Opt {
	return append(slices.Clone(p.cfg.Client),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.DisableIdempotentWrite(),
		kgo.ProducerLinger(0),
		kgo.RecordRetries(quickRetries),
		kgo.RecordDeliveryTimeout(p.cfg.Timeout),
		kgo.ProduceRequestTimeout(p.cfg.Timeout),
		kgo.MaxBufferedRecords(maxBuffered),
		// The partitioner uses the key, which is that of the original record. So dead letters with
		// the same key go to the same partition, in order, unless some of them are sent again or
		// cut. Records with a null key are spread over the partitions.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
	)
}

// Close closes the clients. Call it after the last Deliver has returned. A dead letter that
// is not acknowledged by then may or may not be published.
func (p *Publisher) Close() {
	p.client.Close()
	if client := p.large.Swap(nil); client != nil {
		client.Close()
	}
	p.pending.Wait()
	p.cuts.End()
}

// Deliver makes one attempt to publish the dead letters of d that are not acknowledged yet. It
// returns nil if all are acknowledged now. Otherwise it returns the first error, and the caller
// tries again with the same Delivery. Deliver returns at once when ctx ends. If dead letters are
// still being sent at that time, the next attempt does not send them again, except large ones.
//
// A dead letter that is too large for the topic is cut and published within the call.
func (p *Publisher) Deliver(ctx context.Context, d *Delivery) error {
	if err := p.attempt(ctx, d.items); err != nil {
		return fmt.Errorf("publish dead letters to %q: %d of %d not acknowledged: %w",
			p.cfg.Topic, d.Pending(), d.Len(), err)
	}
	return nil
}

func (p *Publisher) attempt(ctx context.Context, items []*item) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.launch(items)
	err := waitAll(ctx, items)
	p.forgetTopic(err)
	if ctx.Err() != nil {
		return err
	}
	if largeErr := p.deliverLarge(ctx, refused(items)); err == nil {
		err = largeErr
	}
	return err
}

// launch sends the idle items, except those that are known to be too large. The large items are
// sent by deliverLarge.
func (p *Publisher) launch(items []*item) {
	for _, it := range items {
		_ = it.collect() // the error is not needed, because the item is sent again
		if it.idle() && !it.refused {
			p.launchOne(p.client, it)
		}
	}
}

func (p *Publisher) launchOne(client *kgo.Client, it *item) {
	letter, failedAt := it.letter, it.failedAt
	record := Truncated(letter, p.cfg.Stamp, p.cfg.Topic, failedAt, it.cut)
	it.launch(client, record, func(written *kgo.Record) {
		if p.cfg.Published != nil {
			p.cfg.Published(Published{
				FailedAt: failedAt, Class: letter.Class, DLQPartition: written.Partition, DLQOffset: written.Offset,
				Topic: letter.Record.Topic, Partition: letter.Record.Partition, Offset: letter.Record.Offset,
			})
		}
	})
}

// forgetTopic makes the client ask for the topic's id again. After a topic is deleted and
// created again, the client would otherwise use the old id for ever.
func (p *Publisher) forgetTopic(err error) {
	if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InconsistentTopicID) ||
		errors.Is(err, kerr.UnknownTopicOrPartition) {
		p.pending.Go(func() { p.client.PurgeTopicsFromProducing(p.cfg.Topic) })
	}
}
