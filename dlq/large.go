package dlq

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/topic"
)

// maxLargeBytes limits a request of the client for large records, before compression. It is the
// broker's default limit of a request (socket.request.max.bytes). A broker closes the connection
// when a request is larger.
const maxLargeBytes = 100 << 20

// deliverLarge publishes dead letters that were refused as too large. The broker refuses a whole
// batch, and the client then fails all records that are buffered for that partition. So most of
// these dead letters may be small enough. They are sent in smaller and smaller groups, and a dead
// letter is cut only if it is refused alone.
//
// It uses a separate client, and no other call uses this client at the same time. So its requests
// contain no dead letters of another batch, and the main client keeps the usual batch size. After
// an error the client is closed, which ends the requests that it is sending.
func (p *Publisher) deliverLarge(ctx context.Context, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	client := p.large.Swap(nil)
	if client == nil {
		var err error
		if client, err = p.largeClient(); err != nil {
			return err
		}
	}
	err := p.halve(ctx, client, items)
	for _, it := range items {
		// A record that is still being sent fails when the client is closed. The next attempt sends
		// it again.
		_ = it.collect()
		it.flight = nil
	}
	if err != nil || !p.large.CompareAndSwap(nil, client) { // another call has stored its client
		p.pending.Go(client.Close)
	}
	return err
}

func (p *Publisher) largeClient() (*kgo.Client, error) {
	client, err := kgo.NewClient(append(p.options(),
		kgo.BrokerMaxWriteBytes(maxLargeBytes),
		kgo.ProducerBatchMaxBytes(topic.MaxBatchBytes), // or the commands could not read the batch
		// The original may have been small enough only because it was compressed, so zstd is used
		// if possible.
		kgo.ProducerBatchCompression(kgo.ZstdCompression(), kgo.GzipCompression(), kgo.NoCompression()),
		kgo.DisableClientMetrics(),
	)...)
	if err != nil {
		return nil, fmt.Errorf("client for large records: %w", err)
	}
	return client, nil
}

// halve splits a group that was refused, and delivers the two halves one after the other.
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

const errNoRoom errclass.Text = "the limit of the DLQ topic (max.message.bytes) has no room for the headers of a dead letter alone: raise it"

// deliverAlone publishes a batch with one dead letter. It cuts the dead letter further each
// time it is refused.
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
			return errNoRoom
		}
		it.cut++
	}
}

// logCut writes at most one log line a minute. The line names one dead letter and counts the others
// that were cut since the last line.
func (p *Publisher) logCut(ctx context.Context, it *item) {
	if it.cut == Whole {
		return
	}
	record := it.letter.Record
	attrs := []any{ // without the record, whose memory would stay in use until the next line
		"dlq_topic", p.cfg.Topic, "topic", record.Topic, "partition", record.Partition, "offset", record.Offset,
		"class", it.letter.Class, "left_out", it.cut.String(),
		"key_bytes", len(record.Key), "value_bytes", len(record.Value), "headers", len(record.Headers),
	}
	p.cuts.Count("cut", 1, func(n int) {
		p.cfg.Logger.WarnContext(ctx, "dead letter was too large for its topic and was cut", append(attrs, "others", n-1)...)
	})
}

// logCutEvery is the shortest time between two log lines about dead letters that were cut.
const logCutEvery = time.Minute
