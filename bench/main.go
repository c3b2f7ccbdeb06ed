// Command bench measures the projector beside the limits of what it stands on, on
// one machine in one run. It starts a real broker and a real PostgreSQL, loads each
// topic once, and lets the limits and the projector take turns (A B A B), so that
// what disturbs the machine disturbs all of them.
//
//	raw        the projection's own statements, one row an event, rows decoded before the
//	           clock starts, 2,000 a statement, 2 connections, nothing else running
//	decode     fetching and decoding the topic, nothing else running
//	projector  the binary, from process start to the last record durable
//	kfake      the same with the broker in this process: no JVM on the cores
//
// Each limit runs in a process of its own, like the projector, so CPU and memory
// are read from /proc in the same way for all. A run's final state is compared with
// what was produced. CPU that none of the participants used is counted too: a run
// with much of it is marked as disturbed.
//
// Results are kept as JSON beside the document that shows them, so that running
// some workloads again replaces only theirs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Run    runCmd    `cmd:"" default:"withargs" help:"Run the workloads and print the ratios."`
	Peers  peersCmd  `cmd:"" help:"Run another team's batch listener beside the projector."`
	Report reportCmd `cmd:"" help:"Write the document anew from the results that are kept."`
	Raw    rawCmd    `cmd:"" hidden:"" help:"The raw limit; started by run."`
	Decode decodeCmd `cmd:"" hidden:"" help:"The decode limit; started by run."`
}

// streams is where a command writes: results to out, progress to err.
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

// execute runs one command and answers the exit status: 0 done, 1 failed, 2 wrong usage.
func execute(ctx context.Context, args []string, std *streams) int {
	exited := -1
	parser, err := kong.New(&cli{},
		kong.Name("bench"), kong.Description("Measures the projector beside the limits of what it stands on."),
		kong.UsageOnError(), kong.Writers(std.out, std.err), kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std))
	if err != nil {
		return fail(std, err, 1)
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help
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
