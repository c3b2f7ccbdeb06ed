// Command bench compares the projector with the limits of Kafka and PostgreSQL, on one machine in
// one run. It starts a real broker and a real PostgreSQL and loads each topic once. The limits and
// the projector run alternately (A B A B), so a disturbance of the machine affects all of them.
//
// These programs are measured:
//
//	raw        only the projection's own statements, with nothing else running. Each event is a
//	           row, and all rows are decoded before the clock starts. A statement has 2,000 rows,
//	           and there are 2 connections. For a custom projection, only its SQL is measured,
//	           with 10,000 events a statement.
//	decode     only fetching and decoding the topic, with nothing else running.
//	projector  the binary, from the process start until the last record is durable.
//	kfake      the projector with a broker in the process of bench, so no JVM uses the cores.
//
// Each limit runs in its own process, like the projector, so CPU and memory are read from /proc in
// the same way for all. The final state of a run is compared with the produced events. The CPU time
// of other processes is measured too. A run in which they used much CPU time is marked as
// disturbed.
//
// Results are stored as JSON next to the document that shows them. A new run of some workloads
// replaces only the results of these workloads.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type cli struct {
	Run    runCmd    `cmd:"" default:"withargs" help:"Run the workloads and print the ratios."`
	Peers  peersCmd  `cmd:"" help:"Run another team's batch listener, for comparison."`
	Report reportCmd `cmd:"" help:"Write the document from the stored results."`
	Raw    rawCmd    `cmd:"" hidden:"" help:"The raw limit; started by run."`
	Decode decodeCmd `cmd:"" hidden:"" help:"The decode limit; started by run."`
}

// streams are the input and outputs of a command. Results go to out, and progress goes to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := execute(ctx, os.Args[1:], &streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(status) //nolint:forbidigo // [exit] this is main
}

// execute runs one command and returns the exit status. The status is 0 for success, 1 for failure
// and 2 for wrong usage.
func execute(ctx context.Context, args []string, std *streams) int {
	exited := -1
	parser, err := kong.New(&cli{},
		kong.Name("bench"), kong.Description("Measures the projector, and the limits of PostgreSQL and the Kafka client."),
		kong.UsageOnError(), kong.Writers(std.out, std.err), kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std))
	if err != nil {
		return fail(std, err, 1)
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // the parser exited, for example after --help
		return exited
	}
	if err != nil {
		return fail(std, err, 2)
	}
	if err := parsed.Run(); err != nil {
		return fail(std, err, 1)
	}
	return 0
}

func fail(std *streams, err error, status int) int {
	if errors.Is(err, context.Canceled) {
		err = errors.New("stopped")
	}
	_, _ = fmt.Fprintf(std.err, "bench: %v\n", err)
	return status
}

const documentPath = "docs/performance.md"

type runCmd struct {
	Only      []string      `placeholder:"GROUP" help:"Groups of workloads to run: uniform, duplicates, hot, cold, steady, readers, start, limit, memory, cost, statement, turnover, once, ordered, partitions, replicas (default all of these); balances-100m, statement-50m (once, 45 GB of disk each)."`
	Scale     float64       `default:"1" help:"Size of the workloads; 0.2 makes a quick run. Other than 1 is printed and not written down, unless --document is given."`
	Rounds    int           `default:"3" help:"Turns of all subjects of a group (default 3)."`
	Projector string        `default:"bin/projector" placeholder:"FILE" help:"The binary to measure (default bin/projector)."`
	Beside    string        `placeholder:"FILE" help:"Another binary of the projector, as one more subject that takes turns with the rest."`
	Subjects  []string      `placeholder:"SUBJECT" help:"Only these subjects: raw, decode, projector, kfake, steady, readers, start, other (default all)."`
	Quiet     time.Duration `default:"15s" help:"How long to wait for an idle machine before a run (default 15s)."`
	Document  string        `placeholder:"FILE" help:"Document to write the results to (default docs/performance.md at scale 1)."`
}

func (c *runCmd) Run(ctx context.Context, std *streams) error {
	if c.Scale <= 0 || c.Rounds < 1 {
		return errors.New("--scale and --rounds must be positive")
	}
	chosen, err := selected(c.Only, c.Scale)
	if err != nil {
		return err
	}
	at := commit(ctx)
	if c.document() != "" && strings.HasSuffix(at, "-dirty") {
		return errors.New("the results of an uncommitted build are not written down: commit first, or use --scale other than 1")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s, err := startStack(ctx, c.Projector, self)
	if err != nil {
		return err
	}
	b := &bench{stack: s, runCmd: c, std: std, commit: at}
	err = b.measure(ctx, chosen)
	return errors.Join(err, s.close())
}

// bench is the state of one call of the command run.
type bench struct {
	*stack
	*runCmd
	std    *streams
	commit string
	groups int // number of groups named by --only
}

// measure runs one group after another and stores the results after each group.
func (b *bench) measure(ctx context.Context, chosen [][]workload) error {
	now := results{Machine: describeMachine(b.version)}
	for _, group := range chosen {
		runs, err := b.measureGroup(ctx, group)
		if err != nil {
			return fmt.Errorf("%s: %w", group[0].group, err)
		}
		now.Runs = append(now.Runs, runs...)
		if err := b.keep(now.Machine, runs); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(b.std.out, page(&now))
	return errors.Join(err, wrongRuns(&now))
}

// keep stores runs, unless the flags say that results are only printed.
func (b *bench) keep(m machine, runs []Run) error {
	if b.document() == "" {
		return nil
	}
	return keepRuns(b.document(), m, runs)
}

// document returns the path of the page that the results are written to. An empty path means that
// they are only printed.
func (c *runCmd) document() string {
	if c.Document == "" && c.Scale == 1 {
		return documentPath
	}
	return c.Document
}

func wrongRuns(r *results) error {
	for i := range r.Runs {
		if problem := r.Runs[i].Problem; problem != "" {
			return fmt.Errorf("%s, %s: %s", r.Runs[i].Workload, r.Runs[i].Subject, problem)
		}
	}
	return nil
}

func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.std.err, format+"\n", args...)
}

func (b *bench) progress(r *Run) {
	line := fmt.Sprintf("%-14s %-10s round %d: %9s events/s", r.Workload, r.Subject, r.Round, thousands(eventsPerSecond(r)))
	if r.WindowEvents > 0 {
		line += fmt.Sprintf(", %s from the first commit", thousands(windowEventsPerSecond(r)))
	}
	if r.Latency != nil {
		line = fmt.Sprintf("%-14s %-10s round %d: p50 %.1f ms, p99 %.1f ms, max %.1f ms, %.0f %% of a core",
			r.Workload, r.Subject, r.Round, r.Latency.P50, r.Latency.P99, r.Latency.Max, 100*r.Latency.Core)
	}
	if a := r.Answers; a != nil {
		line += fmt.Sprintf(", %s readers answered %s times: p50 %.1f ms, p99 %.1f ms, max %.1f ms (p99 of a look %.1f ms); %d not in time",
			thousands(float64(a.Readers)), thousands(float64(a.Answered)), a.P50, a.P99, a.Max, a.Look, a.Late)
	}
	line += fmt.Sprintf(", peak %.0f MiB, CPU %.1f + PostgreSQL %.1f + broker %.1f s, others %.1f s",
		r.PeakMiB, r.CPU.Subject, r.CPU.Postgres, r.CPU.Broker, r.CPU.Other)
	if r.RowsWritten > 0 {
		line += fmt.Sprintf(", %.2f events a row", float64(r.Events)/float64(r.RowsWritten))
	}
	if len(r.Shares) > 0 {
		line += fmt.Sprintf(", each %s %% of the records, %d connections", r.sharesText(), r.Connections)
	}
	if r.Workload == "memory" { // shows whether a long catch-up is equally fast to its end
		for i, q := range r.Quarters {
			line += fmt.Sprintf(", quarter %d: %s events/s %.0f MiB", i+1, thousands(q.Rate), q.MaxMiB)
		}
	}
	if r.Disturbed {
		line += " (disturbed)"
	}
	if r.Problem != "" {
		line += " WRONG: " + r.Problem
	}
	b.say("%s", line)
}

// resultsPath returns the path of the file with the results of a document.
func resultsPath(document string) string {
	return strings.TrimSuffix(document, filepath.Ext(document)) + ".json"
}
