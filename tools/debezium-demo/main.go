// Command debezium-demo runs a simulated bank with an outbox, Debezium, Kafka and the projector on
// this machine. It kills Debezium twice and compares each read model with the books of its bank. It
// exits with 0 if they are equal, with 1 if they differ or the run fails, and with 2 after wrong
// usage. `make demo-debezium` builds the projector and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
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

// run returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	began := time.Now()
	options := outbox.Options{Say: func(what string) {
		_, _ = fmt.Fprintf(stdout, "%6.1f s  %s\n", time.Since(began).Seconds(), what)
	}}
	given, err := parse(args, stderr, &options)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // the flag set has printed the reason
	}
	if given.verbose {
		options.Log = stderr
	}
	var wrong error
	if given.stay {
		options.Stay = func(report *outbox.Report, places []outbox.Place) {
			wrong = show(stdout, report)
			showPlaces(stdout, places)
		}
	}
	report, err := outbox.Play(ctx, options)
	if err == nil && !given.stay {
		wrong = show(stdout, report)
	}
	err = errors.Join(err, wrong)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "debezium-demo:", err)
		return 1
	}
	return 0
}

// given holds the flags that are not part of outbox.Options.
type given struct{ verbose, stay bool }

func parse(args []string, stderr io.Writer, o *outbox.Options) (g given, err error) {
	flags := flag.NewFlagSet("debezium-demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Projector, "projector", "bin/projector", "the program to run")
	flags.IntVar(&o.Accounts, "accounts", 200, "accounts of each of the two banks")
	flags.IntVar(&o.Clients, "clients", 8, "clients of each bank")
	flags.IntVar(&o.Rate, "rate", 200, "transactions a second of each bank")
	flags.Int64Var(&o.Unwritten, "unwritten", 300, "events that Debezium must publish again after each kill, at least")
	flags.BoolVar(&g.verbose, "verbose", false, "show what the servers and the projectors log")
	flags.BoolVar(&g.stay, "stay", false, "keep everything running afterwards, until Ctrl-C")
	if err := flags.Parse(args); err != nil {
		return given{}, err
	}
	if err := o.Validate(); err != nil {
		_, _ = fmt.Fprintln(stderr, "debezium-demo:", err)
		return given{}, err
	}
	return g, nil
}

// show prints the results. It returns an error that names the differences.
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

// sample is SQL that adds an event to an outbox by hand.
const sample = `INSERT INTO outbox (aggregatetype, aggregateid, type, version, occurred_at, payload)
      VALUES ('account', 'my-account', 'FundsCredited', 1, now(), '{"amount":"10.25","currency":"EUR"}')`

// showPlaces prints commands that a user can try while the servers keep running.
func showPlaces(w io.Writer, places []outbox.Place) {
	_, _ = fmt.Fprintf(w, "\nEverything stays, until Ctrl-C. What to type, in another terminal:\n")
	for _, p := range places {
		_, _ = fmt.Fprintf(w, "\n  # %s%s; status page %s\n", p.Pipeline, runWith(p.Flags), p.Page)
		for _, variable := range p.Env {
			name, value, _ := strings.Cut(variable, "=")
			_, _ = fmt.Fprintf(w, "  export %s='%s'\n", name, value)
		}
		_, _ = fmt.Fprintf(w, "  psql '%s' -c \\\n    \"%s\"\n", p.Bank, strings.ReplaceAll(sample, `"`, `\"`))
		_, _ = fmt.Fprintf(w, "  bin/projector account show my-account\n  bin/projector lag\n")
	}
}

func runWith(flags []string) string {
	if len(flags) == 0 {
		return ""
	}
	return ", read with " + strings.Join(flags, " ")
}
