package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// loaded is a workload whose topic has been filled.
type loaded struct {
	workload
	broker broker
	// fingerprint is that of the right read model, see fingerprintQuery.
	fingerprint string
	bytes       int64 // of all values
}

// load makes the workload's topic and fills it.
func load(ctx context.Context, w workload, b broker) (*loaded, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.DefaultProduceTopic(w.topic()),
		kgo.ProducerLinger(10*time.Millisecond), kgo.MaxBufferedRecords(100_000),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil))) // murmur2 of the key, as the Java client does
	if err != nil {
		return nil, err
	}
	defer client.Close()
	created, err := kadm.NewClient(client).CreateTopic(ctx, w.partitions, 1, nil, w.topic())
	if err == nil {
		err = created.Err
	}
	if err != nil {
		return nil, fmt.Errorf("create topic %s: %w", w.topic(), err)
	}
	l := &loaded{workload: w, broker: b}
	g := newGenerator(&w)
	var failure firstError
	var c change
	for range w.events {
		g.next(&c)
		r := record(&c)
		l.bytes += int64(len(r.Value))
		client.Produce(ctx, r, failure.promise)
	}
	if err := client.Flush(ctx); err != nil {
		return nil, err
	}
	l.fingerprint = w.table().want(&w, g)
	return l, failure.get()
}

// record is an event as it stands in a topic.
func record(c *change) *kgo.Record {
	return &kgo.Record{
		Key:   appendAccountID(make([]byte, 0, 12), c.account),
		Value: c.appendJSON(make([]byte, 0, 288)),
	}
}

// firstError keeps the first failure of many produced records.
type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) promise(_ *kgo.Record, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = fmt.Errorf("produce: %w", err)
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// warm reads a topic once, so that the broker has compiled its way and the pages are
// in memory before the first run that counts.
func warm(ctx context.Context, l *loaded) error {
	return fetchAll(ctx, l.broker.addrs, l.topic(), int(l.partitions), l.events, func([]*kgo.Record) {})
}

// fetchAll fetches a whole topic and hands over each partition's records as they
// come, on the calling goroutine.
func fetchAll(ctx context.Context, addrs []string, topic string, partitions, events int, handle func([]*kgo.Record)) error {
	from := map[int32]kgo.Offset{}
	for p := range partitions {
		from[int32(p)] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return err
	}
	defer client.Close()
	for got := 0; got < events; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			got += len(p.Records)
			handle(p.Records)
		})
	}
	return nil
}
