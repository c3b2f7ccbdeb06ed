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
	// logger. They serve for more than one client, so hooks stand apart.
	Client []kgo.Opt
	// Hooks observe the client that publishes, e.g. for metrics.
	Hooks []kgo.Hook
	// Timeout bounds how long one attempt may keep a dead letter; it is noticed when
	// the request in flight ends. 0: 10 s. At least 1 s.
	Timeout time.Duration
	// Published is told of each dead letter the brokers have acknowledged. It is called on
	// the client's goroutine, so it must not wait. nil: nobody is.
	Published func(Published)
	Logger    *slog.Logger // nil: none
}

// Published is where an acknowledged dead letter stands and where its record came from.
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
		_ = it.collect() // why an earlier attempt failed was told by that attempt, or is about to be found again
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

// forgetTopic makes the client look the topic up anew when it is not the one it
// knew: after a topic is deleted and created again the client would go on with
// the old topic's id for ever.
func (p *Publisher) forgetTopic(err error) {
	if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InconsistentTopicID) ||
		errors.Is(err, kerr.UnknownTopicOrPartition) {
		p.pending.Go(func() { p.client.PurgeTopicsFromProducing(p.cfg.Topic) })
	}
}

// maxLargeBytes is the limit of a large record's client, before compression: the
// broker's own default for a whole request (socket.request.max.bytes). Beyond it
// a broker does not answer but hangs up.
const maxLargeBytes = 100 << 20

// deliverLarge publishes what was refused as too large. The broker refuses a
// whole batch, and the client then fails all that is buffered for that
// partition, so most of these may well fit: they are tried in ever smaller
// groups, and only what is refused alone is cut.
//
// It uses a client of its own, ended afterwards: no dead letter of another batch gets
// into its requests, and the limit of the other client can stay at the usual
// batch size. Large dead letters are rare enough to pay for a connection.
func (p *Publisher) deliverLarge(ctx context.Context, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	client, err := kgo.NewClient(append(p.options(),
		kgo.BrokerMaxWriteBytes(maxLargeBytes),
		kgo.ProducerBatchMaxBytes(maxLargeBytes),
		// The closest to whatever the record was compressed with when it fitted.
		kgo.ProducerBatchCompression(kgo.ZstdCompression(), kgo.GzipCompression(), kgo.NoCompression()),
		kgo.DisableClientMetrics(),
	)...)
	if err != nil {
		return fmt.Errorf("client for large records: %w", err)
	}
	defer p.pending.Go(client.Close)

	err = p.halve(ctx, client, items)
	for _, it := range items {
		// What is still on its way ends with the client; the next attempt sends
		// it again and does not wait for it.
		_ = it.collect()
		it.flight = nil
	}
	return err
}

// halve delivers a group that was refused in one piece.
func (p *Publisher) halve(ctx context.Context, client *kgo.Client, items []*item) error {
	if len(items) == 1 {
		return p.deliverAlone(ctx, client, items[0])
	}
	middle := len(items) / 2
	for _, half := range [][]*item{items[:middle], items[middle:]} {
		if err := p.deliverGroup(ctx, client, half); err != nil {
			return err
		}
	}
	return nil
}

func (p *Publisher) deliverGroup(ctx context.Context, client *kgo.Client, items []*item) error {
	if len(items) > 1 {
		for _, it := range items {
			p.launchOne(client, it)
		}
		if err := waitAll(ctx, items); err != nil {
			return err
		}
		items = refused(items)
	}
	if len(items) == 0 {
		return nil
	}
	return p.halve(ctx, client, items)
}

// deliverAlone publishes one dead letter in a batch of its own, and cuts it further
// each time it is refused.
func (p *Publisher) deliverAlone(ctx context.Context, client *kgo.Client, it *item) error {
	for {
		p.launchOne(client, it)
		if err := it.wait(ctx); err != nil {
			return err
		}
		if it.acked {
			p.logCut(ctx, it)
			return nil
		}
		if it.cut == WithoutKey {
			return fmt.Errorf("the limit of the topic (max.message.bytes) has no room for a dead letter's headers alone")
		}
		it.cut++
	}
}

func (p *Publisher) logCut(ctx context.Context, it *item) {
	if it.cut == Whole {
		return
	}
	record := it.letter.Record
	p.log.WarnContext(ctx, "dead letter was too large for its topic and was cut",
		"dlq_topic", p.cfg.Topic, "topic", record.Topic, "partition", record.Partition, "offset", record.Offset,
		"class", it.letter.Class, "left_out", it.cut.String(),
		"key_bytes", len(record.Key), "value_bytes", len(record.Value), "headers", len(record.Headers))
}
