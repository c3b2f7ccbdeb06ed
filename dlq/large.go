package dlq

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxLargeBytes is the limit of a large record's client, before compression: the
// broker's own default for a whole request (socket.request.max.bytes). Beyond it
// a broker does not answer but hangs up.
const maxLargeBytes = 100 << 20

// deliverLarge publishes what was refused as too large. The broker refuses a
// whole batch, and the client then fails all that is buffered for that
// partition, so most of these may well fit: they are tried in ever smaller
// groups, and only what is refused alone is cut.
//
// It uses a client of its own, ended afterwards: no letter of another batch gets
// into its requests, and the limit of the other client can stay at the usual
// batch size. Large letters are rare enough to pay for a connection.
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
		_ = it.settle()
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

// deliverAlone publishes one letter in a batch of its own, and cuts it further
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
