package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/pace"
)

type fleet []*program

// startFleet starts the replicas of the workload and does not wait until they are ready.
func (s *stack) startFleet(l *loaded, group string, d database) (fleet, error) {
	var f fleet
	for range max(1, l.replicas) {
		p, err := s.startProjector(l, group, d)
		if err != nil {
			_, stopErr := f.stop()
			return nil, errors.Join(err, stopErr)
		}
		f = append(f, p)
	}
	return f, nil
}

func (f fleet) pids() []int {
	pids := make([]int, len(f))
	for i, p := range f {
		pids[i] = p.PID()
	}
	return pids
}

// memory returns the memory use of the largest replica, because each replica has its own memory
// limit.
func (f fleet) memory() (now, peak float64) {
	for _, p := range f {
		n, high := memory(p.PID())
		now, peak = max(now, n), max(peak, high)
	}
	return now, peak
}

// alive returns an error if a replica has ended by itself.
func (f fleet) alive() error {
	for _, p := range f {
		if err := p.alive(); err != nil {
			return err
		}
	}
	return nil
}

// stop ends all replicas at the same time. It returns how long the slowest replica took.
func (f fleet) stop() (longest time.Duration, err error) {
	took, failures := make([]time.Duration, len(f)), make([]error, len(f))
	var stopping sync.WaitGroup
	for i, p := range f {
		stopping.Go(func() { took[i], failures[i] = p.stop() })
	}
	stopping.Wait()
	if len(f) > 0 {
		longest = slices.Max(took)
	}
	return longest, errors.Join(failures...)
}

// String returns the end of each replica's output.
func (f fleet) String() string {
	outputs := make([]string, len(f))
	for i, p := range f {
		outputs[i] = p.Output()
	}
	return strings.Join(outputs, "\n--\n")
}

// accountWithin limits the wait until the replicas' metrics include all durable records.
const accountWithin = 5 * time.Second

// account returns each replica's share of the records, largest first, and the number of connections
// of all replicas. Each replica counts a record when the record is durable. If the sum is not the
// number of events, records were lost or processed twice. The method then returns an error.
func (f fleet) account(ctx context.Context, w *watcher, events int) (shares []float64, connections int, err error) {
	if connections, err = w.connections(ctx); err != nil {
		return nil, 0, err
	}
	for end := time.Now().Add(accountWithin); ; {
		sum := 0
		shares = shares[:0]
		for _, p := range f {
			n, err := p.consumed(ctx)
			if err != nil {
				return nil, 0, err
			}
			sum += n
			shares = append(shares, float64(n)/float64(events))
		}
		if sum == events {
			slices.SortFunc(shares, func(a, b float64) int { return cmp.Compare(b, a) })
			return shares, connections, nil
		}
		if time.Now().After(end) || pace.Sleep(ctx, watchEvery) != nil {
			return nil, 0, fmt.Errorf("the replicas have counted %d records of %d", sum, events)
		}
	}
}

// connections counts the database sessions of all projectors.
func (w *watcher) connections(ctx context.Context) (n int, err error) {
	err = w.conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'projector'`).Scan(&n)
	return n, err
}

var (
	listens  = regexp.MustCompile(`"http":"([^"]+)"`)
	recorded = regexp.MustCompile(`(?m)^projector_records_total\{.*\} (\S+)$`)
)

// consumed returns how many records the replica has made durable, from its metrics.
func (p *program) consumed(ctx context.Context) (int, error) {
	address := listens.FindStringSubmatch(p.began.String())
	if address == nil {
		return 0, errors.New("the projector has not said where it listens: " + p.Output())
	}
	ctx, cancel := context.WithTimeout(ctx, accountWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address[1]+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	return recordsTotal(string(page))
}

// recordsTotal adds the records of all partitions and outcomes on a page of metrics.
func recordsTotal(page string) (int, error) {
	sum := 0.0
	for _, sample := range recorded.FindAllStringSubmatch(page, -1) {
		n, err := strconv.ParseFloat(sample[1], 64)
		if err != nil {
			return 0, fmt.Errorf("metrics: %w", err)
		}
		sum += n
	}
	return int(sum), nil
}

// loaded is a workload whose topic exists.
type loaded struct {
	workload
	broker broker
	// fingerprint is the expected result of fingerprintQuery.
	fingerprint string
	bytes       int64 // size of all values
}

func (w *workload) createTopic(ctx context.Context, client *kgo.Client) error {
	created, err := kadm.NewClient(client).CreateTopic(ctx, w.partitions, 1, nil, w.topic())
	if err == nil {
		err = created.Err
	}
	if err != nil {
		return fmt.Errorf("create topic %s: %w", w.topic(), err)
	}
	return nil
}

// producer returns a client that produces to the topic of a workload.
func (b broker) producer(w *workload, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(opts, kgo.SeedBrokers(b.addrs...), kgo.DefaultProduceTopic(w.topic()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))...) // murmur2 of the key, as in the Java client
}

// load creates the workload's topic and fills it.
func load(ctx context.Context, w workload, b broker) (*loaded, error) {
	client, err := b.producer(&w, kgo.ProducerLinger(10*time.Millisecond), kgo.MaxBufferedRecords(100_000))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := w.createTopic(ctx, client); err != nil {
		return nil, err
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

func record(c *change) *kgo.Record {
	return &kgo.Record{
		Key:   appendAccountID(make([]byte, 0, 12), c.account),
		Value: c.appendJSON(make([]byte, 0, 288)),
	}
}

// firstError stores the first error of many produced records.
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

// warm reads a topic once before the first measured run. The JVM then has compiled the broker's
// code, and the data is in the page cache.
func warm(ctx context.Context, l *loaded) error {
	return fetchAll(ctx, l.broker.addrs, l.topic(), int(l.partitions), l.events, func([]*kgo.Record) {})
}

// fetchAll fetches a whole topic and calls handle with the records of each partition, on the
// calling goroutine.
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
