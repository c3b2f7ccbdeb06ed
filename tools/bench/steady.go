package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/pace"
)

const (
	steadyRate   = 1000 // in events/s, if the workload has no other rate
	steadyWarmUp = 3 * time.Second
	// checkEvery is the interval between checks of the committed positions. Measured latencies are
	// therefore too high by half of this interval on average, but never too low.
	checkEvery = time.Millisecond
)

// acked is an event that the broker has acknowledged and that the watcher has not yet seen
// committed.
type acked struct {
	offset int64
	at     time.Time
	event  accountVersion
}

// stopwatch measures the time from the acknowledgement of an event to its commit.
type stopwatch struct {
	mu      sync.Mutex
	waiting map[int32][]acked // by partition, in the order of the offsets
	took    []time.Duration
	count   int
	from    time.Time // earlier acknowledgements belong to the warm-up
	err     error

	lastCheck map[int32]time.Time // time of the last check, by partition
	// visible holds, for each event, the two checks between which the event became visible. If it
	// is nil, nothing is recorded.
	visible map[accountVersion]between
}

// promise is called when the broker has acknowledged or rejected an event.
func (s *stopwatch) promise(event accountVersion, r *kgo.Record, err error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	s.waiting[r.Partition] = append(s.waiting[r.Partition], acked{r.Offset, now, event})
}

// committed records that all events with an offset below next are committed.
func (s *stopwatch) committed(partition int32, next int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.waiting[partition]
	for len(queue) > 0 && queue[0].offset < next {
		if queue[0].at.After(s.from) {
			s.took = append(s.took, now.Sub(queue[0].at))
		}
		if s.visible != nil {
			s.visible[queue[0].event] = between{s.lastCheck[partition], now}
		}
		s.count++
		queue = queue[1:]
	}
	s.waiting[partition] = queue
	s.lastCheck[partition] = now
}

// state returns how many events are committed, and the first error.
func (s *stopwatch) state() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count, s.err
}

// steady measures the latency at a constant load that is easy for one instance.
func (s *stack) steady(ctx context.Context, l *loaded, d database, group string, m *meter, readers int) (Run, error) {
	return s.observed(ctx, l, d, group, m, func(w *watcher) (run Run, err error) {
		var environment []string
		if readers > 0 {
			environment = []string{"READ_LISTEN_ADDR=127.0.0.1:0"}
		}
		p, err := s.startProjector(l, group, d, environment...)
		if err != nil {
			return run, err
		}
		m.subjects = []int{p.PID()}
		err = awaitClaims(ctx, w, p, int(l.partitions))
		if err == nil {
			run, l.fingerprint, err = s.drip(ctx, l, w, p, m, readers)
		}
		took, stopErr := p.stop()
		run.StopSeconds = took.Seconds()
		return run, errors.Join(err, stopErr)
	})
}

func awaitClaims(ctx context.Context, w *watcher, p *program, partitions int) error {
	for end := time.Now().Add(stuckAfter); time.Now().Before(end); {
		n, err := w.claimed(ctx)
		if err != nil || n == partitions {
			return err
		}
		if err := p.alive(); err != nil {
			return err
		}
		if pace.Sleep(ctx, watchEvery) != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("the projector claimed no partitions for %s: %s", stuckAfter, p.Output())
}

// drip produces at a constant rate and observes the committed positions at the same time.
func (s *stack) drip(ctx context.Context, l *loaded, w *watcher, p *program, m *meter, readers int) (Run, string, error) {
	client, err := l.broker.producer(&l.workload, kgo.ProducerLinger(0))
	if err != nil {
		return Run{}, "", err
	}
	defer client.Close()
	g := newGenerator(&l.workload)
	sw := &stopwatch{waiting: map[int32][]acked{}, lastCheck: map[int32]time.Time{}}
	var waiting *crowd
	if readers > 0 {
		sw.visible = map[accountVersion]between{}
		if waiting, err = gather(ctx, p, readers); err != nil {
			return Run{}, "", err
		}
		defer waiting.leave()
	}
	rate, warmUp := cmp.Or(l.rate, steadyRate), steadyWarmUp
	if l.large { // at first the system has little of a large table in memory
		warmUp = min(5*time.Minute, time.Duration(l.events/rate)*time.Second/5)
	}
	sw.from = time.Now().Add(warmUp)
	var producing sync.WaitGroup
	stop := make(chan struct{})
	producing.Go(func() { producePaced(client, g, rate, l.events, sw, stop) })
	run, err := awaitCommits(ctx, rate, l.events, w, p, m, sw)
	close(stop)
	producing.Wait()
	if waiting != nil && err == nil {
		run.Answers, err = waiting.answered(sw)
	}
	return run, g.fingerprint(), err
}

// producePaced produces events at a constant rate. After a late tick it sends all events that are
// due, so the average rate is right.
func producePaced(client *kgo.Client, g *generator, rate, events int, sw *stopwatch, stop <-chan struct{}) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	start := time.Now()
	var c change
	for g.made < events {
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
		for due := int(time.Since(start).Seconds() * float64(rate)); g.made < min(due, events); {
			g.next(&c)
			event := accountVersion{c.account, c.version}
			client.Produce(context.Background(), record(&c), func(r *kgo.Record, err error) { sw.promise(event, r, err) })
		}
	}
}

// awaitCommits checks the positions until every event is committed.
func awaitCommits(ctx context.Context, rate, events int, w *watcher, p *program, m *meter, sw *stopwatch) (Run, error) {
	start, measuring := time.Now(), false
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		if err := w.positions(ctx, sw.committed); err != nil {
			return Run{}, err
		}
		count, err := sw.state()
		if err == nil {
			err = p.alive()
		}
		if err == nil && time.Since(start) > time.Duration(events/rate)*time.Second+stuckAfter {
			err = fmt.Errorf("%d of %d events committed: %s", count, events, p.Output())
		}
		if err != nil {
			return Run{}, err
		}
		if !measuring && time.Now().After(sw.from) {
			m.begin()
			measuring = true
		}
		if count == events {
			return steadyResult(m, p, sw, events)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return Run{}, ctx.Err()
		}
	}
}

// positions reads each partition's durable position and calls the function report with the position
// and the time at which it was read.
func (w *watcher) positions(ctx context.Context, report func(int32, int64, time.Time)) error {
	rows, err := w.conn.Query(ctx, `SELECT partition, next_offset FROM projector_position WHERE consumer_group = $1`, w.group)
	if err != nil {
		return err
	}
	var partition int32
	var next int64
	_, err = pgx.ForEachRow(rows, []any{&partition, &next}, func() error {
		report(partition, next, time.Now())
		return nil
	})
	return err
}

func steadyResult(m *meter, p *program, sw *stopwatch, events int) (Run, error) {
	if len(sw.took) == 0 {
		return Run{}, errors.New("too few events to measure a latency: raise --scale")
	}
	seconds := time.Since(m.began).Seconds()
	run := Run{Events: events, Seconds: seconds}
	run.CPU, run.Disturbed = m.end()
	_, run.PeakMiB = memory(p.PID())
	run.Events = len(sw.took)
	run.Latency = newLatency(sw.took, run.CPU.Subject/seconds)
	return run, nil
}

// emptyTopic creates the topic that a steady run produces to.
func emptyTopic(ctx context.Context, w workload, b broker) (*loaded, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return &loaded{workload: w, broker: b}, w.createTopic(ctx, client)
}
