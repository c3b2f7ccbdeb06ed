package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// peersCmd compares the projector with other programs for the same task (the peers). The peers are
// in a folder outside this repository. This folder also has their broker, database and topics, and
// the scripts build.sh, cluster.sh and run.sh. run.sh measures the peer and the projector in the
// same way.
type peersCmd struct {
	Dir       string   `env:"PEERS_DIR" required:"" placeholder:"DIR" help:"The peers' harness."`
	Peer      string   `default:"spring-batch" help:"Which of them (default spring-batch)."`
	Workloads []string `default:"W1L,W2" help:"Which of their workloads (default W1L,W2)."`
	Rounds    int      `default:"3" help:"Turns of both (default 3)."`
	Projector string   `default:"bin/projector" placeholder:"FILE" help:"The binary to measure (default bin/projector)."`
	Document  string   `placeholder:"FILE" help:"Document to write the results to (default: they are only printed, because the peers are not part of this repository)."`
}

// peersPrefix marks the workloads of the comparison with peers.
const peersPrefix = "peers-"

// peerResult is a line that the peers' run.sh appends to the file of results.
type peerResult struct {
	When                                   time.Time
	Peer, Workload                         string
	Records                                int
	EventsPerS, WindowS, WallS, PeakRSSMiB float64
	PeerCPU, PGCPU, KafkaCPU, OtherCPU     float64
	StealS, StopS                          float64
	Correct                                bool
	WrongRows                              int
	Note                                   string
}

// Run runs the peer and the projector alternately.
func (c *peersCmd) Run(ctx context.Context, std *streams) (err error) {
	h, err := c.harness(std)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(h.results) }()
	if err := h.build(ctx); err != nil {
		return err
	}
	if err := h.script(ctx, "cluster.sh", "start"); err != nil {
		return err
	}
	// The script gets a new context, because it must stop the servers even if ctx has ended.
	defer func() { err = errors.Join(err, h.script(context.Background(), "cluster.sh", "stop")) }()
	var runs []Run
	for _, w := range c.Workloads {
		for round := range c.Rounds {
			for _, name := range []string{c.Peer, "projector"} {
				run, err := h.run(ctx, name, w)
				if err != nil {
					return err
				}
				run.Round, run.Commit = round+1, commit(ctx)
				runs = append(runs, run)
			}
		}
	}
	m := describeMachine(h.postgresVersion(ctx))
	now := results{Machine: m, Runs: runs}
	_, _ = fmt.Fprint(std.out, page(&now))
	if c.Document != "" {
		err = keepRuns(c.Document, m, runs)
	}
	return errors.Join(err, wrongRuns(&now))
}

// harness is the peers' folder and the environment of its scripts.
type harness struct {
	dir     string
	results string // file with one JSON line for each run
	env     []string
	std     *streams
}

func (c *peersCmd) harness(std *streams) (*harness, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"build.sh", "cluster.sh", "run.sh"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("there is no %s in %s: the peers are not part of this repository; "+
				"name their folder by PEERS_DIR or --dir", name, c.Dir)
		}
	}
	binary, err := filepath.Abs(c.Projector)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("%s is not there: make build", c.Projector)
	}
	scratch, err := os.CreateTemp("", "projector-bench-peers-*.jsonl")
	if err != nil {
		return nil, err
	}
	h := &harness{dir: dir, results: scratch.Name(), std: std}
	h.env = append(os.Environ(), "RUNS=1", "RESULTS="+h.results, "LISTEN_ADDR=127.0.0.1:0",
		"PROJECTOR_CMD='"+binary+"' run", "PROJECTOR_MIGRATE_CMD='"+binary+"' migrate")
	return h, scratch.Close()
}

// build builds the peers, unless they are already built.
func (h *harness) build(ctx context.Context) error {
	built := exec.CommandContext(ctx, "bash", "-c", `. "$1/env.sh" && [ -x "$LAB/bin/drive" ]`, "bash", h.dir) //nolint:gosec // G204: the operator's choice
	if built.Run() == nil {
		return nil
	}
	return h.script(ctx, "build.sh")
}

// script runs one of the scripts and prints its output as progress.
func (h *harness) script(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(h.dir, name), args...) //nolint:gosec // G204: the operator's choice
	cmd.Env, cmd.Stdout, cmd.Stderr = h.env, h.std.err, h.std.err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// run runs a workload once with one program: the peer or the projector.
func (h *harness) run(ctx context.Context, name, workload string) (Run, error) {
	one := *h
	one.env = append(append([]string{}, h.env...), "WORKLOADS="+workload)
	if err := one.script(ctx, "run.sh", name); err != nil {
		return Run{}, err
	}
	line, err := lastLine(h.results)
	if err != nil {
		return Run{}, fmt.Errorf("%s over %s left no result: %w", name, workload, err)
	}
	var p peerResult
	if err := json.Unmarshal(line, &p); err != nil {
		return Run{}, err
	}
	if p.Peer != name || p.Workload != workload {
		return Run{}, fmt.Errorf("%s over %s left no result", name, workload)
	}
	return p.run(), nil
}

// run returns a result of run.sh as a Run. The time window of run.sh starts at the first committed
// row.
func (p *peerResult) run() Run {
	r := Run{
		Workload: peersPrefix + p.Workload, Subject: subject(p.Peer), When: p.When, Scale: 1,
		Seconds: p.WallS, Events: p.Records, PeakMiB: p.PeakRSSMiB, StopSeconds: p.StopS,
		WindowSeconds: p.WindowS, WindowEvents: int(p.EventsPerS * p.WindowS),
		CPU: cpuUse{Subject: p.PeerCPU, Postgres: p.PGCPU, Broker: p.KafkaCPU, Other: p.OtherCPU, Steal: p.StealS},
	}
	r.Disturbed = p.OtherCPU+p.StealS > disturbedFrom(p.WallS)
	if !p.Correct {
		r.Problem = fmt.Sprintf("%d rows are wrong %s", p.WrongRows, p.Note)
	}
	return r
}

func lastLine(path string) ([]byte, error) {
	text, err := os.ReadFile(path) //nolint:gosec // G304: made above
	if err != nil {
		return nil, err
	}
	var last []byte
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		last = bytes.Clone(s.Bytes())
	}
	if len(last) == 0 {
		return nil, errors.New("the file is empty")
	}
	return last, nil
}

// postgresVersion returns the version of the server that the peers use.
func (h *harness) postgresVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "bash", "-c", `. "$1/env.sh" && "$PG_BIN/postgres" --version`, "bash", h.dir).Output() //nolint:gosec // G204: see script
	fields := bytes.Fields(out)
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return string(fields[2])
}
