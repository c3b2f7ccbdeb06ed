// Command debezium-demo runs a pretended bank with an outbox, Debezium, Kafka and the
// projector on this machine, kills Debezium twice, and compares the read model with the
// bank's own books. It ends with 0 when they are equal, with 1 when not, with 2 when it
// is used wrongly. `make demo-debezium` builds the projector and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"projector/tools/debezium-demo/outbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run answers the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	began := time.Now()
	options := outbox.Options{Say: func(what string) {
		_, _ = fmt.Fprintf(stdout, "%6.1f s  %s\n", time.Since(began).Seconds(), what)
	}}
	verbose, err := parse(args, stderr, &options)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // the flag set has said why
	case verbose:
		options.Log = stderr
	}
	report, err := outbox.Play(ctx, options)
	if err == nil {
		err = show(stdout, report)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "debezium-demo:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer, o *outbox.Options) (verbose bool, err error) {
	flags := flag.NewFlagSet("debezium-demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Projector, "projector", "bin/projector", "the program to run")
	flags.IntVar(&o.Accounts, "accounts", 200, "accounts of each of the two banks")
	flags.IntVar(&o.Clients, "clients", 8, "clients of each bank")
	flags.IntVar(&o.Rate, "rate", 200, "transactions a second of each bank")
	flags.Int64Var(&o.Unwritten, "unwritten", 300, "events that Debezium must publish again after each kill, at least")
	flags.BoolVar(&verbose, "verbose", false, "show what the servers and the projectors log")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if err := o.Validate(); err != nil {
		_, _ = fmt.Fprintln(stderr, "debezium-demo:", err)
		return false, err
	}
	return verbose, nil
}

// show prints the results. The error says what is not as it should be.
func show(w io.Writer, report *outbox.Report) error {
	var wrong error
	for _, r := range report.Results {
		_, _ = fmt.Fprintf(w, "\n%s (%s)\n  events in the outbox   %7d\n  records in the topic   %7d, so %d were redelivered\n"+
			"  dead letters           %7d\n  accounts               %7d, of which %d differ from the bank's books\n",
			r.Topic, r.Pipeline, r.Events, r.Records, r.Redelivered(), r.DeadLetters, r.Accounts, len(r.Differences))
		wrong = errors.Join(wrong, r.Check())
	}
	if wrong == nil {
		_, _ = fmt.Fprintf(w, "\nEvery balance and version is the bank's own. Took %s.\n", report.Took.Round(time.Second))
	}
	return wrong
}
