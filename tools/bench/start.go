package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/pace"
)

const (
	// starts is the number of measured starts in a run. One start with a new group comes before
	// them.
	starts = 20
	// startEvents is how many events are produced before each start, over all partitions.
	startEvents = 160
)

// start measures the time from the process start to the first committed row, for a consumer group
// that already has positions.
func (s *stack) start(ctx context.Context, l *loaded, d database, group string, m *meter) (run Run, err error) {
	w, err := watch(ctx, d, group, l.table())
	if err != nil {
		return run, err
	}
	defer w.close()
	client, err := l.broker.producer(&l.workload)
	if err != nil {
		return run, err
	}
	defer client.Close()
	g := newGenerator(&l.workload)
	m.watcher = w.pid()
	m.begin()
	var took []time.Duration
	var cpu float64
	for i := range starts + 1 {
		first, used, err := s.startOnce(ctx, l, d, group, w, client, g)
		if err != nil {
			return run, err
		}
		if i > 0 {
			took, cpu = append(took, first), cpu+used
		}
	}
	run.CPU, run.Disturbed = m.end()
	run.CPU.Subject = cpu
	for _, t := range took {
		run.Seconds += t.Seconds()
	}
	run.Events = len(took)
	run.Latency = newLatency(took, cpu/run.Seconds)
	run.Problem, err = w.check(ctx, g.fingerprint())
	return run, err
}

// startOnce returns the time to the first row, and the processor time in seconds until all rows are
// committed.
func (s *stack) startOnce(
	ctx context.Context, l *loaded, d database, group string, w *watcher, client *kgo.Client, g *generator,
) (first time.Duration, used float64, err error) {
	var failure firstError
	var c change
	for range startEvents {
		g.next(&c)
		client.Produce(ctx, record(&c), failure.promise)
	}
	if err := errors.Join(client.Flush(ctx), failure.get()); err != nil {
		return 0, 0, err
	}
	before, err := w.durable(ctx)
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	p, err := s.startProjector(l, group, d)
	if err != nil {
		return 0, 0, err
	}
	for n := before; n < g.made; {
		if n, err = w.durable(ctx); err == nil {
			err = p.alive()
		}
		if err == nil && time.Since(begun) > stuckAfter {
			err = fmt.Errorf("%d of %d events durable: %s", n, g.made, p.Output())
		}
		if err != nil {
			break
		}
		if n > before && first == 0 {
			first = time.Since(begun)
		}
		if err = pace.Sleep(ctx, checkEvery); err != nil {
			break
		}
	}
	used = processCPU(p.PID())
	_, stopErr := p.stop()
	return first, used, errors.Join(err, stopErr)
}

func renderStart(b *strings.Builder, r *results) {
	runs := r.runsOf("start", subjectStart)
	if len(runs) == 0 {
		return
	}
	b.WriteString("### Start\n\n| round | starts | p50 ms | p99 ms | CPU ms a start | disturbed |\n|---|---|---|---|---|---|\n")
	for i := range runs {
		run := &runs[i]
		fmt.Fprintf(b, "| %d | %d | %.0f | %.0f | %.0f | %s |\n", run.Round, run.Events, run.Latency.P50, run.Latency.P99,
			1000*run.CPU.Subject/float64(run.Events), run.disturbedText())
	}
	b.WriteString("\nFrom the start of the process to the first committed row, 8 partitions, the group has positions. Target: p50 under 200 ms.\n\n")
}
