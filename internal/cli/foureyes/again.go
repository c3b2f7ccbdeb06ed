package foureyes

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/internal/cli/parse"
	"projector/readmodel"
)

// Parse makes the parser of the command line, reading results, and a gate for what it runs.
type Parse func(ctx context.Context, std *output.Streams, gate *Gate, options ...kong.Option) (*kong.Kong, error)

// Again runs the command of a request once more, with the servers of whoever does it.
type Again struct {
	Request readmodel.Request
	Command readmodel.RequestedCommand
	Servers *kong.Context // a command that was typed: its flags for servers count
	Parse   Parse
}

// Plan shows what the command would do now: with amounts for those who may approve, and as
// JSON lines where the command has them.
func (a *Again) Plan(ctx context.Context, std *output.Streams, pool *pgxpool.Pool, amounts, json bool) error {
	var more []string
	if json {
		more = append(more, "--output=json")
	}
	return a.run(ctx, std, pool, &Gate{amounts: amounts}, more)
}

// Approve does what was requested, if it is still what it would do.
func (a *Again) Approve(ctx context.Context, std *output.Streams, pool *pgxpool.Pool, reason string) error {
	approving := &approval{request: &a.Request, plan: a.Command.Plan, reason: reason}
	err := a.run(readmodel.WithRequest(ctx, a.Request.ID), std, pool, &Gate{std: std, approving: approving}, []string{"--yes"})
	var (
		refusal exit.Refusal
		usage   exit.UsageError
	)
	switch {
	case approving.passed:
		return err
	case err == nil, errors.As(err, &refusal), errors.As(err, &usage):
		return errors.Join(err, approving.refuse(ctx, pool, "it cannot be planned any more"))
	default:
		return err // servers that cannot be reached, for one: somebody may try again
	}
}

func (a *Again) run(ctx context.Context, std *output.Streams, pool *pgxpool.Pool, gate *Gate, more []string) error {
	if err := checkFiles(ctx, pool, &a.Command); err != nil {
		return err
	}
	parser, err := a.Parse(ctx, std, gate, kong.PostBuild(typedOnly), kong.Exit(func(int) {}))
	if err != nil {
		return err
	}
	args, err := a.arguments(parser)
	if err != nil {
		return err
	}
	for _, f := range a.Command.Files {
		more = append(more, "--"+f.Flag+"="+filepath.Base(f.Name))
	}
	parsed, err := parser.Parse(joined(args, more))
	if err != nil {
		return exit.WrongUsage(err)
	}
	for _, f := range a.Command.Files {
		file, ok := flagNamed(parsed.Selected(), f.Flag).Target.Addr().Interface().(*parse.File)
		if !ok {
			return fmt.Errorf("--%s holds no file", f.Flag) // a test in internal/cli finds such a flag
		}
		file.Hold(f.Content)
	}
	if why, who := reasonAndActor(parsed.Selected()); why != a.Request.Reason || who != a.Request.Actor {
		return exit.Refusef("request %d was made by hand: its command has another reason or actor than it is listed with", a.Request.ID)
	}
	return parsed.Run()
}

// arguments are those of the request, if they are what the program itself would have kept,
// and the servers of whoever runs them again. A request may have been made by hand: it names
// no server, no file and no command that changes nothing.
func (a *Again) arguments(parser *kong.Kong) ([]string, error) {
	leaf, err := a.leaf(parser)
	if err != nil {
		return nil, err
	}
	for _, arg := range a.Command.Arguments {
		if arg == "--" {
			break
		}
		flag, isFlag := strings.CutPrefix(arg, "-")
		if !isFlag {
			continue
		}
		name, _, valued := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		if f := flagNamed(leaf, name); !valued || !strings.HasPrefix(flag, "-") || f == nil || Local(f) || Kept(f) || f.Name == "yes" {
			return nil, exit.Refusef("request %d was made by hand: %q has no place in it", a.Request.ID, "--"+name)
		}
	}
	for _, f := range a.Command.Files {
		if named := flagNamed(leaf, f.Flag); named == nil || !Kept(named) {
			return nil, exit.Refusef("request %d was made by hand: --%s has no file", a.Request.ID, f.Flag)
		}
	}
	return joined(a.Command.Arguments, a.servers(leaf)), nil
}

// leaf is the command of the request: one that changes something.
func (a *Again) leaf(parser *kong.Kong) (*kong.Node, error) {
	if leaf := leafOf(parser.Model, a.Command.Arguments); leaf != nil {
		return leaf, nil
	}
	return nil, exit.Refusef("request %d was made by hand, or by another version: its command changes nothing", a.Request.ID)
}

// leafOf is the command that changes something and that the arguments begin with; nil: none.
func leafOf(model *kong.Application, arguments []string) *kong.Node {
	for _, leaf := range model.Leaves(false) {
		path := strings.Fields(leaf.Path())
		if len(path) <= len(arguments) && slices.Equal(path, arguments[:len(path)]) && Changes(leaf) {
			return leaf
		}
	}
	return nil
}

// servers are the flags for servers that were typed now, as far as the command has them.
func (a *Again) servers(leaf *kong.Node) []string {
	var args []string
	for _, level := range a.Servers.Selected().AllFlags(false) {
		for _, f := range level {
			if text := textOf(f); Local(f) && f.Name != "output" && text != "" && text != f.Default && flagNamed(leaf, f.Name) != nil {
				args = append(args, "--"+f.Name+"="+text)
			}
		}
	}
	return args
}

// joined puts flags before the arguments that are none.
func joined(args, flags []string) []string {
	for i, arg := range args {
		if arg == "--" {
			return append(append(append([]string{}, args[:i]...), flags...), args[i:]...)
		}
	}
	return append(append([]string{}, args...), flags...)
}

// typedOnly takes the environment from what a request says: it was settled when it was made.
func typedOnly(k *kong.Kong) error {
	for _, leaf := range k.Model.Leaves(false) {
		for _, level := range leaf.AllFlags(false) {
			for _, f := range level {
				if !Local(f) {
					f.Envs, f.Tag.Envs = nil, nil
				}
			}
		}
	}
	return nil
}
