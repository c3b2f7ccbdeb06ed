package clitest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"projector/internal/cli/exit"
	"projector/readmodel"
)

// Running is a consumer of a stage, with its metrics and its log.
type Running struct {
	t       *testing.T
	stage   *Stage
	address string
	stop    context.CancelFunc
	ended   chan int
	log     bytes.Buffer
}

// Running starts a consumer, which Stop ends.
func (s *Stage) Running() *Running {
	s.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.T.Fatal(err)
	}
	_ = listener.Close()
	return s.run(listener.Addr().String())
}

func (s *Stage) run(address string) *Running {
	r := &Running{t: s.T, stage: s, address: address, ended: make(chan int, 1)}
	ctx, stop := context.WithCancel(s.T.Context())
	r.stop = stop
	args := append(s.Servers([]string{"run", "--listen=" + r.address, "--log-format=json"}), "--log-level=warn")
	go func() { r.ended <- Execute(ctx, args, &bytes.Buffer{}, &r.log) }()
	return r
}

// Projection returns the name of the projection that runs.
func (r *Running) Projection() string { return cmp.Or(r.stage.own, readmodel.BalanceName) }

// AwaitMetric waits until the metrics contain a line. The consumer may still be starting.
func (r *Running) AwaitMetric(line string) { r.await("/metrics", line+"\n") }

// AwaitUnready waits until the consumer is unready and reports the given reason.
func (r *Running) AwaitUnready(reason string) { r.await("/readyz", reason) }

// AwaitReady waits until the consumer is ready.
func (r *Running) AwaitReady() { r.await("/readyz", "ready\n") }

func (r *Running) await(path, text string) {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	last := "" // body
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+path, http.NoBody)
		if err != nil {
			r.t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil {
				r.t.Fatal(err)
			}
			if last = string(body); strings.Contains(last, text) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("%s has no %s: %v\n%s", path, text, err, last)
		}
	}
}

// Stop ends the consumer and returns the log lines that contain text.
func (r *Running) Stop(text string) []map[string]any {
	r.t.Helper()
	r.stop()
	if status := <-r.ended; status != exit.OK {
		r.t.Fatalf("run: status %d\n%s", status, r.log.String())
	}
	var chosen strings.Builder
	for line := range strings.Lines(r.log.String()) {
		if text != "" && strings.Contains(line, text) {
			chosen.WriteString(line)
		}
	}
	return r.stage.parse([]string{"run"}, chosen.String())
}
