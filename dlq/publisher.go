package dlq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection/event"
)

const (
	defaultTimeout = 10 * time.Second
	// quickRetries is how often the client itself repeats a request within one
	// attempt: enough for a leader that moved. All longer patience is the
	// caller's, who backs off, counts and says why.
	quickRetries = 3
	// maxBuffered is out of reach on purpose: a dead letter is buffered at most once,
	// its bytes are held by its batch anyway, and a full buffer would let one
	// stuck partition stop the others.
	maxBuffered = 1 << 24
)

// PublisherConfig is what a Publisher needs.
type PublisherConfig struct {
	Topic string // of the dead letters
	Stamp Stamp
	// Client are the options to reach the brokers: seeds, TLS, SASL, client id,
	// logger. More than one client uses them, so Hooks are separate.
	Client []kgo.Opt
	// Hooks observe the client that publishes, e.g. for metrics.
	Hooks []kgo.Hook
	// Timeout bounds how long one attempt may keep a dead letter; it is noticed when
	// the request in flight ends. 0: 10 s. At least 1 s.
	Timeout time.Duration
	// Published is called for each dead letter that the brokers have acknowledged, on the
	// client's goroutine, so it must not wait. nil: it is not called.
	Published func(Published)
	Logger    *slog.Logger // nil: none
}

// Published has the place of an acknowledged dead letter and of its original.
type Published struct {
	FailedAt     time.Time
	Class        event.Class
	DLQPartition int32
	DLQOffset    int64
	Topic        string // of the source, as the two that follow
	Partition    int32
	Offset       int64
}

// Publisher publishes dead letters with a client of its own. It is safe for use
// by several goroutines, each with its own Delivery.
type Publisher struct {
	cfg     PublisherConfig
	log     *slog.Logger
	client  *kgo.Client
	pending sync.WaitGroup // clean-up that must not hold up a caller
	large   largeRecords
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
	p := &Publisher{cfg: cfg, log: cfg.Logger}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	client, err := kgo.NewClient(append(p.options(), kgo.WithHooks(cfg.Hooks...))...)
	if err != nil {
		return nil, fmt.Errorf("dead letter publisher: %w", err)
	}
	p.client = client
	return p, nil
}

// options are those of every client of the Publisher. Idempotence is off: it
// needs a further grant on old brokers and keeps records that must be allowed to
// fail, and a repeated dead letter is allowed.
func (p *Publisher) options() []kgo.Opt {
	return append(slices.Clone(p.cfg.Client),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.DisableIdempotentWrite(),
		kgo.ProducerLinger(0),
		kgo.RecordRetries(quickRetries),
		kgo.RecordDeliveryTimeout(p.cfg.Timeout),
		kgo.ProduceRequestTimeout(p.cfg.Timeout),
		kgo.MaxBufferedRecords(maxBuffered),
		// An account's dead letters stay together and in order; null keys are spread.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
	)
}

// Close ends the clients. It is to be called after the last Deliver has
// returned. Dead letters that are not acknowledged by then are not
// known to be published.
func (p *Publisher) Close() {
	p.client.Close()
	if client := p.large.take(); client != nil {
		client.Close()
	}
	p.pending.Wait()
}

// Deliver makes one attempt to publish what of d has not been acknowledged, and
// returns nil when all of d has. Otherwise it returns the first error, and the
// caller tries again with the same Delivery. When ctx ends it returns at once;
// dead letters that are on their way then still count when they arrive, and are not
// sent twice.
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

// launch sends what is idle. Items known to be too large wait for their turn.
func (p *Publisher) launch(items []*item) {
	for _, it := range items {
		_ = it.collect() // an earlier attempt has returned its error, or this one returns it
		if it.idle() && !it.refused {
			p.launchOne(p.client, it)
		}
	}
}

func (p *Publisher) launchOne(client *kgo.Client, it *item) {
	letter, failedAt := it.letter, it.failedAt
	it.launch(client, p.record(it), func(written *kgo.Record) {
		if p.cfg.Published != nil {
			p.cfg.Published(Published{
				FailedAt: failedAt, Class: letter.Class, DLQPartition: written.Partition, DLQOffset: written.Offset,
				Topic: letter.Record.Topic, Partition: letter.Record.Partition, Offset: letter.Record.Offset,
			})
		}
	})
}

func (p *Publisher) record(it *item) *kgo.Record {
	return Truncated(it.letter, p.cfg.Stamp, p.cfg.Topic, it.failedAt, it.cut)
}

// forgetTopic makes the client look the topic up again. After a topic is deleted and
// created again, the client would otherwise use the old topic's id forever.
func (p *Publisher) forgetTopic(err error) {
	if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InconsistentTopicID) ||
		errors.Is(err, kerr.UnknownTopicOrPartition) {
		p.pending.Go(func() { p.client.PurgeTopicsFromProducing(p.cfg.Topic) })
	}
}
