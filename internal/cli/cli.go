// Package cli has the command line of the program.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"projector/errclass"
	"projector/internal/cli/account"
	"projector/internal/cli/change"
	"projector/internal/cli/database"
	"projector/internal/cli/dlq"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/inspect"
	"projector/internal/cli/ledger"
	"projector/internal/cli/output"
	"projector/internal/cli/position"
	"projector/internal/cli/process"
	"projector/internal/cli/rebuild"
	"projector/readmodel"
)

type commands struct {
	Run process.RunCmd `cmd:"" help:"Consume account events and keep the read model up to date, until stopped."`
	demoCommand
	Inspect  inspect.Cmd            `cmd:"" help:"Show how the first records of the topic are read. Writes nothing, joins no group."`
	DLQ      dlq.Cmd                `cmd:"" name:"dlq" help:"List, repair and discard dead letters."`
	Account  account.Cmd            `cmd:"" help:"Show an account, or skip one of its versions."`
	Gaps     gapsCmd                `cmd:"" help:"List the accounts that wait for a missing or corrected event, or fetch what is missing from the producer's outbox."`
	Position position.Cmd           `cmd:"" help:"Show the position of every partition, set where one continues, or remove the positions of an unused group."`
	Pause    position.PauseCmd      `cmd:"" help:"Pause partitions until they are resumed."`
	Resume   position.ResumeCmd     `cmd:"" help:"Resume partitions that were paused, or stopped by a storm of dead letters."`
	Lag      position.LagCmd        `cmd:"" help:"Show how far the read model is behind the topic, from outside the running process."`
	Open     ledger.OpenCmd         `cmd:"" help:"Start accounts from a ledger when the topic does not have their first events."`
	Verify   ledger.VerifyCmd       `cmd:"" help:"Compare the read model with an authoritative ledger; exit status 1 when they differ."`
	Audit    database.AuditCmd      `cmd:"" help:"List what people have done, or check whether the audit trail was altered."`
	Requests change.RequestsCmd     `cmd:"" help:"List the changes that people have asked for while four eyes are on, or show one."`
	Approve  change.ApproveCmd      `cmd:"" help:"Carry out what another login has requested, if the plan is still the same."`
	Reject   change.RejectCmd       `cmd:"" help:"Reject a request; nothing is changed."`
	Inbox    database.InboxCmd      `cmd:"" help:"Manage the markers of processed messages."`
	Rebuild  rebuild.Cmd            `cmd:"" help:"Rebuild a projection from the first record into shadow tables, compare them with the live ones and, with --yes, replace what differs."`
	Own      database.ProjectionCmd `cmd:"" name:"projection" help:"Check a projection of your own."`
	Mapping  events.MappingCmd      `cmd:"" help:"Check a mapping file."`
	Migrate  database.MigrateCmd    `cmd:"" help:"Bring the database schema up to date, or list its migrations."`

	Completion completionCmd `cmd:"" help:"Print a script that completes commands, flags and values in a shell."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

type gapsCmd struct {
	List  account.GapsListCmd `cmd:"" default:"withargs" help:"List the accounts that wait for a missing or corrected event."`
	Fetch dlq.FetchCmd        `cmd:"" help:"Ask the producer's outbox for the events that accounts wait for, and apply them."`
}

const description = `Projects account events from Kafka into account balances, statements and turnovers in PostgreSQL: each event once, in order, whatever is delivered twice, late or broken.

Every flag but --yes and --reason has an environment variable; a flag beats it. Exit status: 0 done, or stopped by a signal (commands that run until stopped); 1 failed or interrupted; 2 wrong usage or configuration.`

// aboutRequests are the commands that read the stored request of any other command. For this they
// need the grammar of all commands.
var aboutRequests = []string{"requests", "approve", "reject"}

// grammarOf returns the struct that describes the command line to kong. If the first argument is a
// command, it has only this command, because kong needs 20 ms for all of them.
func grammarOf(args []string) any {
	if len(args) > 0 && !slices.Contains(aboutRequests, args[0]) {
		for _, f := range reflect.VisibleFields(reflect.TypeFor[commands]()) {
			if !f.Anonymous && cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name)) == args[0] {
				return reflect.New(reflect.StructOf([]reflect.StructField{{Name: f.Name, Type: f.Type, Tag: f.Tag}})).Interface()
			}
		}
	}
	return new(commands)
}

func newParser(args []string, built flags.BuildInfo, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(grammarOf(args), append([]kong.Option{
		kong.Name("projector"), kong.Description(description), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.DefaultEnvars("PROJECTOR"), // for flags whose field does not name a variable
		kong.NamedMapper("url", kong.MapperFunc(trimmedURL)),
		kong.NamedMapper("path", kong.MapperFunc(path)),
		kong.KindMapper(reflect.Int, kong.MapperFunc(decimal)),
		kong.KindMapper(reflect.Int32, kong.MapperFunc(decimal)),
		kong.KindMapper(reflect.Int64, kong.MapperFunc(decimal)),
		database.TagVars(),
		kong.PostBuild(typedOnly),
		kong.PostBuild(addManual),
		kong.WithBeforeReset(ignoreVariable),
		kong.Bind(built),
	}, options...)...)
}

// trimmedURL reads a database URL without the white space around it. A variable that is filled from a
// file often ends with a line break, and pgx would read this as a part of the last parameter. A URL
// with a space before it would be ignored.
func trimmedURL(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	err := ctx.Scan.PopValueInto("url", &text)
	target.SetString(strings.TrimSpace(text))
	return err
}

// path reads the name of a file, where - is standard output. It must not be empty, for example because
// a variable of a script is not set: Kong would use the working directory.
func path(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("file", &text); err != nil {
		return err
	}
	if text == "" {
		return errors.New("is empty; give it a value or leave it out")
	}
	if text != "-" {
		text = kong.ExpandPath(text)
	}
	target.SetString(text)
	return nil
}

// decimal reads an integer. Kong would read one with a zero before it as octal, for example an offset
// that was copied from the name of a log segment.
func decimal(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("int", &text); err != nil {
		return err
	}
	bits := target.Type().Bits()
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return fmt.Errorf("expected a valid %d bit int but got %q", bits, text) // as kong says it, see reworded
	}
	target.SetInt(n)
	return nil
}

// typedOnly removes the environment variables of flags that confirm a change. A person must type
// these flags each time, because a variable that is still set would confirm every later change too.
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

// ignoreVariable makes the parser ignore the environment variable of a flag that was typed. The flag
// takes precedence, so a wrong value of the variable must not be an error then.
func ignoreVariable(step *kong.Path) error {
	if step.Flag != nil {
		step.Flag.Tag.Envs = nil // Flag.Envs stays, because errors name the variable
	}
	return nil
}

// Main runs one command and returns the exit status.
func Main(ctx context.Context, args []string, out, errOut io.Writer, built flags.BuildInfo) int {
	stdout, stderr := output.NewSafe(out), output.NewSafe(errOut)
	status := runCommand(ctx, args, stdout, stderr, built)
	if err := stdout.Close(); err != nil && status == exit.OK {
		status = exit.Report(stderr, err)
	}
	_ = stderr.Close()
	return status
}

func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer, built flags.BuildInfo) int {
	if len(args) > 0 && args[0] == "--version" { // as other programs have it
		args = slices.Concat([]string{"version"}, args[1:])
	}
	std := &output.Streams{Out: stdout, Err: stderr}
	exited := -1
	parser, err := newParser(args, built, kong.Writers(stdout, stderr), kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std))
	if err != nil {
		return exit.Report(stderr, err)
	}
	if len(args) > 0 && args[0] == completionRequest {
		return exit.Report(stderr, printSuggestions(stdout, suggest(parser.Model, args[1:])))
	}
	if err := forgetEmptyEnvironment(parser.Model); err != nil {
		return exit.Report(stderr, err)
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // the parser has already exited, for example after --help
		return exited
	}
	if unwritten := new(fs.PathError); errors.As(err, &unwritten) && unwritten.Op == "write" {
		return exit.Report(stderr, err) // the parser writes the help
	}
	if err != nil {
		return exit.Report(stderr, exit.WrongUsage(reword(err)))
	}
	if err := refuseEmpty(parsed); err != nil {
		return exit.Report(stderr, err)
	}
	if err := refuseRepeated(parsed); err != nil {
		return exit.Report(stderr, err)
	}
	parsed.BindTo(readmodel.WithReader(ctx, func() string { return flags.ReaderOf(parsed.Selected()) }), (*context.Context)(nil))
	err = parsed.Run()
	return exit.Report(stderr, withRole(commandPath(parsed), interrupted(ctx, commandPath(parsed), err)))
}

// interrupted returns the error of a command that a signal has ended. An error that implements
// errclass.Describer stays unchanged, because package change returns such an error to report what
// was done. The other one-shot commands only read, except migrate up, approve and reject.
func interrupted(ctx context.Context, command string, err error) error {
	if err == nil || ctx.Err() == nil || errors.As(err, new(errclass.Describer)) {
		return err
	}
	switch command {
	case "migrate up":
		return exit.Refuse("interrupted; `projector migrate status` lists what was done")
	case "approve", "reject":
		return exit.Refuse("interrupted; `projector requests show ID` says whether the request was decided")
	}
	return exit.Refuse("interrupted, nothing was changed")
}

func commandPath(parsed *kong.Context) string {
	var names []string
	for _, step := range parsed.Path {
		if step.Command != nil {
			names = append(names, step.Command.Name)
		}
	}
	return strings.Join(names, " ")
}

// forgetEmptyEnvironment makes flags ignore environment variables with an empty value. Compose and
// Kubernetes set variables even if they have no value.
func forgetEmptyEnvironment(app *kong.Application) error {
	return kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		flag, isFlag := node.(*kong.Flag)
		if !isFlag {
			return next(nil)
		}
		for _, name := range flag.Envs {
			if value, set := os.LookupEnv(name); set && value == "" {
				if err := os.Unsetenv(name); err != nil {
					return err
				}
			}
		}
		return next(nil)
	})
}

// refuseEmpty refuses an argument or a filter with an empty value, which may come from an unset
// variable of a script. A repair with an empty filter would change more than intended, and an empty
// group would select the default group. It also refuses names of white space only, which may come
// from the environment too.
func refuseEmpty(parsed *kong.Context) error {
	for _, f := range parsed.Flags() {
		if text, is := f.Target.Interface().(string); is && slices.Contains(neverBlank, f.Name) && text != "" && strings.TrimSpace(text) == "" {
			return exit.Usagef("--%s (%s): is blank; give it a value or leave it out", f.Name, strings.Join(f.Envs, ", "))
		}
	}
	for _, step := range parsed.Path {
		if p := step.Positional; p != nil && p.Target.IsZero() && p.Target.Kind() == reflect.String {
			return exit.Usagef("<%s>: is empty; give it a value", p.Name)
		}
		if f := step.Flag; f != nil && (slices.Contains(neverEmpty, f.Name) || f.Group != nil && f.Group.Key == filterGroup) && isEmpty(f) {
			return exit.Usagef("--%s: is empty; give it a value or leave it out", f.Name)
		}
	}
	return nil
}

// refuseRepeated refuses a second value for a flag that selects what a command works on. The parser
// would use only the last one, so `pause --partition=1 --partition=2` would not pause partition 1.
func refuseRepeated(parsed *kong.Context) error {
	given := map[*kong.Flag]bool{}
	for _, step := range parsed.Path {
		f := step.Flag
		if f == nil || f.Group == nil || f.Group.Key != filterGroup && f.Group.Key != targetGroup || f.IsCumulative() || f.IsBool() {
			continue
		}
		if given[f] {
			return exit.Usagef("--%s: is given twice, and takes one value", f.Name)
		}
		given[f] = true
	}
	return nil
}

// neverEmpty are flags outside of filterGroup without which a command does something else. For
// example, dlq replay without --from-file applies the records of the topic, and audit verify without
// --expect-head does not compare the head.
var neverEmpty = []string{"group", "from-file", "to-topic", "expect-head", "through"}

// neverBlank are flags with names that nothing else checks: Kafka accepts any name of a group.
var neverBlank = []string{"group", "actor"}

// These are the help groups of flags that select what a command works on.
const (
	filterGroup = "Filter"
	targetGroup = "Target"
)

func isEmpty(f *kong.Flag) bool {
	switch value := f.Target.Interface().(type) {
	case string:
		return value == ""
	case flags.File:
		return !value.Given()
	case []string:
		return len(flags.Items(value)) == 0
	case []int32:
		return len(value) == 0
	case []int64:
		return len(value) == 0
	default:
		return false
	}
}
