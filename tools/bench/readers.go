package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"projector/internal/pace"
)

// waitingReaders is how many readers wait at the same time. It is the maximum that an instance
// accepts.
const waitingReaders = 10_000

// accountVersion identifies an event.
type accountVersion struct {
	account int
	version int32
}

// between is the time between two checks of the positions. The field before is the time of the last
// check that did not find the event committed. The field found is the time of the first check that
// found it committed.
type between struct{ before, found time.Time }

// answers shows how soon the waiting readers were answered after an event became visible, in
// milliseconds. Each time starts at the last check that did not yet see the event, or at the
// request if it came later. The time may therefore be too long by the interval between two checks,
// but it is never too short.
type answers struct {
	Readers       int
	Answered      int // answers with the requested version, after the warm-up
	Late          int // answers 202 or 404, because the wait of 30 s ended first
	P50, P99, Max float64
	Look          float64 // 99th percentile of the interval between two checks, weighted by events
}

// reply is the answer to a waiting reader.
type reply struct {
	accountVersion
	asked, at time.Time
}

// crowd is a group of readers. Each reader waits for the next version of its own account.
type crowd struct {
	stop    context.CancelFunc
	waiting sync.WaitGroup

	mu    sync.Mutex
	reply []reply
	late  int
	err   error
}

var servesReaders = regexp.MustCompile(`"read_http":"([^"]+)"`)

// gather starts the readers. Each reader has its own connection.
func gather(ctx context.Context, p *program, readers int) (*crowd, error) {
	address := servesReaders.FindStringSubmatch(p.began.String()) // from the log; the program has already claimed its partitions
	if address == nil {
		return nil, errors.New("the projector serves no readers: " + p.Output())
	}
	ctx, stop := context.WithCancel(ctx)
	c := &crowd{stop: stop}
	for n := range readers {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address[1])
		if err != nil {
			c.leave()
			return nil, fmt.Errorf("reader %d: %w", n, err)
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		c.waiting.Go(func() { c.read(ctx, conn, n) })
	}
	return c, nil
}

// leave cancels the waiting requests and returns when all readers have ended.
func (c *crowd) leave() {
	c.stop()
	c.waiting.Wait()
}

// read requests one version of an account after another.
func (c *crowd) read(ctx context.Context, conn net.Conn, account int) {
	const buffer = 512
	in := bufio.NewReaderSize(conn, buffer)
	want := int32(1)
	for {
		asked := time.Now()
		version, err := ask(conn, in, account, want)
		at := time.Now()
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		switch {
		case err != nil:
			c.err = errors.Join(c.err, err)
		case version < want:
			c.late++
		default:
			c.reply = append(c.reply, reply{accountVersion{account, want}, asked, at})
			want = version + 1
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// ask requests a version. It returns the account's current version, or 0 if the account does not
// exist.
func ask(conn net.Conn, in *bufio.Reader, account int, version int32) (int32, error) {
	if _, err := fmt.Fprintf(conn, "GET /v1/accounts/%s?min_version=%d&wait=30s HTTP/1.1\r\nHost: bench\r\n\r\n", accountID(account), version); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	var document struct{ Version int32 }
	if err := json.NewDecoder(answer.Body).Decode(&document); err != nil {
		return 0, err
	}
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNotFound:
		return document.Version, nil
	default:
		return 0, fmt.Errorf("a reader is answered with %s", answer.Status)
	}
}

// lastAnswers is how long to wait for the last answers after the last event is visible.
const lastAnswers = time.Second

// answered returns the statistics of the answers. It is called when all events are visible, and
// first waits for the last answers. Readers that have no answer then are not counted, because they
// wait for events that do not exist.
func (c *crowd) answered(sw *stopwatch) (*answers, error) {
	_ = pace.Sleep(context.Background(), lastAnswers)
	c.mu.Lock()
	defer c.mu.Unlock()
	sw.mu.Lock()
	defer sw.mu.Unlock()
	var took, looks []time.Duration
	for _, t := range c.reply {
		visible, known := sw.visible[t.accountVersion]
		if !known || t.at.Before(sw.from) {
			continue
		}
		looks = append(looks, visible.found.Sub(visible.before))
		since := visible.before
		if t.asked.After(since) { // the event was visible before the request, or nearly so
			since = t.asked
		}
		took = append(took, t.at.Sub(since))
	}
	if c.err != nil || len(took) == 0 {
		return nil, errors.Join(c.err, fmt.Errorf("%d answers to readers", len(took)))
	}
	slices.Sort(took)
	slices.Sort(looks)
	return &answers{
		Readers: waitingReaders, Answered: len(took), Late: c.late,
		P50: millisAt(took, 0.5), P99: millisAt(took, 0.99), Max: millisAt(took, 1), Look: millisAt(looks, 0.99),
	}, nil
}

// renderReaders writes the cost of waiting readers and how soon they are answered.
func renderReaders(b *strings.Builder, r *results) {
	with, without := r.runsOf("readers", subjectReaders), r.runsOf("readers", subjectSteady)
	if len(with) == 0 {
		return
	}
	b.WriteString("### Readers who wait\n\n" +
		"| readers | round | answered | p50 ms | p99 ms | max ms | p99 of a query, ms | 202 or 404 | PostgreSQL CPU | CPU, share of a core | peak MiB | disturbed |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, run := range append(without, with...) {
		readers, times := "none", "– | – | – | – | – | –"
		if a := run.Answers; a != nil {
			readers = thousands(float64(a.Readers))
			times = fmt.Sprintf("%s | %.1f | %.1f | %.1f | %.1f | %d", thousands(float64(a.Answered)), a.P50, a.P99, a.Max, a.Look, a.Late)
		}
		fmt.Fprintf(b, "| %s | %d | %s | %.1f %% | %.0f %% | %.0f | %s |\n", readers, run.Round, times,
			100*run.CPU.Postgres/run.Seconds, 100*run.Latency.Core, run.PeakMiB, run.disturbedText())
	}
	b.WriteString("\nFrom the last query of the positions before the row was visible until the answer, so too high by up to one query. Targets: p99 under 50 ms, and PostgreSQL's CPU within 2 points of without.\n\n")
}
