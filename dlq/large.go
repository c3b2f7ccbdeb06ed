package dlq

import (
	"context"
	"fmt"
	"sync"
	"time"

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
// It uses a client that nobody else uses meanwhile: no dead letter of another batch gets
// into its requests, and the limit of the other client can stay at the usual
// batch size. After an error the client is ended, with what is on its way.
func (p *Publisher) deliverLarge(ctx context.Context, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	client := p.large.take()
	if client == nil {
		var err error
		if client, err = p.largeClient(); err != nil {
			return err
		}
	}
	err := p.halve(ctx, client, items)
	for _, it := range items {
		// What is still on its way ends with the client; the next attempt sends
		// it again and does not wait for it.
		_ = it.collect()
		it.flight = nil
	}
	if err != nil || !p.large.put(client) {
		p.pending.Go(client.Close)
	}
	return err
}

func (p *Publisher) largeClient() (*kgo.Client, error) {
	client, err := kgo.NewClient(append(p.options(),
		kgo.BrokerMaxWriteBytes(maxLargeBytes),
		kgo.ProducerBatchMaxBytes(maxLargeBytes),
		// The closest to whatever the record was compressed with when it fitted.
		kgo.ProducerBatchCompression(kgo.ZstdCompression(), kgo.GzipCompression(), kgo.NoCompression()),
		kgo.DisableClientMetrics(),
	)...)
	if err != nil {
		return nil, fmt.Errorf("client for large records: %w", err)
	}
	return client, nil
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

// logCut logs at most one dead letter a minute, and how many others were cut before it.
func (p *Publisher) logCut(ctx context.Context, it *item) {
	if it.cut == Whole {
		return
	}
	others, due := p.large.cut(time.Now())
	if !due {
		return
	}
	record := it.letter.Record
	p.log.WarnContext(ctx, "dead letter was too large for its topic and was cut",
		"dlq_topic", p.cfg.Topic, "topic", record.Topic, "partition", record.Partition, "offset", record.Offset,
		"class", it.letter.Class, "left_out", it.cut.String(),
		"key_bytes", len(record.Key), "value_bytes", len(record.Value), "headers", len(record.Headers), "others", others)
}

// logCutEvery is how often a dead letter that was cut is logged.
const logCutEvery = time.Minute

// largeRecords is what is kept from one group of large dead letters to the next. Its zero value
// is ready for use.
type largeRecords struct {
	mu     sync.Mutex
	client *kgo.Client // nobody uses it now; nil: there is none
	logged time.Time   // zero: never
	others int         // were cut since then
}

// take hands the client over, if there is one.
func (l *largeRecords) take() *kgo.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	client := l.client
	l.client = nil
	return client
}

// put keeps a client for the next group; false when there is one already.
func (l *largeRecords) put(client *kgo.Client) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil {
		return false
	}
	l.client = client
	return true
}

// cut counts a dead letter that was cut. due: it is to be logged, with how many others were cut
// since the last that was.
func (l *largeRecords) cut(now time.Time) (others int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.logged.IsZero() && now.Sub(l.logged) < logCutEvery {
		l.others++
		return 0, false
	}
	others, l.others, l.logged = l.others, 0, now
	return others, true
}
