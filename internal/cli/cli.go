// Package cli is the command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/alecthomas/kong"

	"projector/errclass"
	"projector/internal/cli/build"
)

// Exit statuses of the contract.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a wrong flag, environment variable or file: exit status 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usagef names what is wrong and the remedy.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// commands is the command line.
type commands struct {
	Run      runCmd      `cmd:"" help:"Consume account events and keep the read model right, until stopped."`
	Demo     demoCmd     `cmd:"" help:"Show the whole system on this machine, with nothing to set up."`
	DLQ      dlqCmd      `cmd:"" name:"dlq" help:"Look at dead letters, and deal with them."`
	Account  accountCmd  `cmd:"" help:"Look at one account, or pass over one of its versions."`
	Gaps     gapsCmd     `cmd:"" help:"List the accounts that wait for a missing or corrected event."`
	Position positionCmd `cmd:"" help:"Show where every partition stands, or set where one goes on."`
	Lag      lagCmd      `cmd:"" help:"Show how far the read model is behind the topic, from outside the running process."`
	Verify   verifyCmd   `cmd:"" help:"Compare the read model with an authoritative ledger; exit status 1 when they differ."`
	Inbox    inboxCmd    `cmd:"" help:"Look after the markers of messages taken in."`
	Rebuild  rebuildCmd  `cmd:"" help:"Build the balances again from the first record beside the live ones, compare them, and put them in their place."`
	Migrate  migrateCmd  `cmd:"" help:"Bring the database schema up to date. Safe to run from many places at once."`

	Completion completionCmd `cmd:"" help:"Print a script that completes commands, flags and values in a shell."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

// streams is where a command writes: results to out, logs and progress to err.
type streams struct {
	out io.Writer
	err io.Writer
}

const description = `Projects account events from Kafka into account balances, statements and turnovers in PostgreSQL: each event once, in order, whatever is delivered twice, late or broken.

Every flag but --yes and --reason has an environment variable; a flag beats it. Exit status: 0 done, or stopped by a signal while running on; 1 failed or interrupted; 2 wrong usage or configuration.`

// newParser makes the parser of the command line.
func newParser(built build.Info, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(new(commands), append([]kong.Option{
		kong.Name("projector"), kong.Description(description), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.DefaultEnvars("PROJECTOR"), // of flags whose field names none
		kong.PostBuild(typedOnly),
		kong.PostBuild(addManual),
		kong.Bind(built),
	}, options...)...)
}

// typedOnly takes the environment variables from the flags that somebody has to mean each
// time: a variable that was left set would agree to whatever comes next.
func typedOnly(k *kong.Kong) error {
	for _, node := range k.Model.Leaves(false) {
		for _, flag := range node.Flags {
			if flag.Name == "yes" || flag.Name == "reason" {
				flag.Envs, flag.Tag.Envs = nil, nil
			}
		}
	}
	return nil
}

// Main runs one command and answers the exit status.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer, built build.Info) (status int) {
	std := &streams{out: stdout, err: stderr}
	exited := -1
	parser, err := newParser(built,
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std),
	)
	if err != nil {
		return report(stderr, err)
	}
	if len(args) > 0 && args[0] == completionRequest {
		return report(stderr, printSuggestions(stdout, suggest(parser.Model, args[1:])))
	}
	if err := forgetEmptyEnvironment(parser.Model); err != nil {
		return report(stderr, err)
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		return report(stderr, usageError{err})
	}
	if err := refuseEmptyFilters(parsed); err != nil {
		return report(stderr, err)
	}
	return report(stderr, parsed.Run())
}

// typedPassword finds the password in a connection string. Wrong usage is answered with
// what was typed, and that may be one in the wrong place.
var typedPassword = regexp.MustCompile(`(:)[^\s:/"@][^\s"]*(@)|(password=)[^\s"&]+`)

// report prints an error as one line and answers the exit status.
func report(stderr io.Writer, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(stderr, "projector: %s\n", typedPassword.ReplaceAllString(usage.Error(), "${1}${3}***${2}"))
		return exitUsage
	default:
		_, _ = fmt.Fprintf(stderr, "projector: %s\n", errclass.Safe(err))
		return exitFailed
	}
}
