// Package change is the one way in which a command changes something. A command is a Change: its
// options, which plan what would be done. Command gives it --yes and Run, which does the rest:
// it connects, plans, prints the plan, asks whether a second person has to agree, does what was
// planned and prints what was done. The commands about requests are here, too.
package change

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
)

// Change is the options of a command that changes something. It embeds ReasonFlags or
// OptionalReasonFlags, flags.DatabaseFlags, output.Flags and, if it reads a topic,
// flags.KafkaFlags and output.LogFlags.
type Change interface {
	// Action is the name that the change has in the audit trail.
	Action() readmodel.ActionKind
	// Check refuses wrong usage. Nothing is connected to yet.
	Check() error
	// Plan reads what would be done now. It changes nothing.
	Plan(ctx context.Context, on *On) (Plan, error)

	Printed() *output.Flags
	Database() *flags.DatabaseFlags
	reasoned
}

// reasoned is implemented by ReasonFlags and OptionalReasonFlags.
type reasoned interface {
	asked() (reason *string, by *flags.ActorFlags)
	checkReason() error
}

// Plan is what a change would do. What is done is exactly what was shown.
type Plan interface {
	// Hash adds each record that would be changed: what is printed of it as JSON, and what else
	// has to be the same when a second person approves it. What changes by itself (a time, a
	// lag, what consumers write) is left out: it would make each plan another.
	Hash(context.Context, *Hash) error
	// Do executes the plan. The context has the request, which the audit trail needs.
	Do(ctx context.Context) error
	// Print prints what would be done or, when it is done, what was done. It returns an error
	// also when not all could be done. A plan without a record to change is not done, and is
	// printed as if it were.
	Print(ctx context.Context, std *output.Streams, done bool) error
}

// Partial is a Plan that is done in several transactions. What was done is printed after an
// error, too.
type Partial interface {
	Plan
	DoneInParts()
}

// Refused is a Plan that may have to be refused as a whole. It is printed all the same.
type Refused interface {
	Plan
	Refused() error
}

// NothingChanged ends what is printed of a plan for people.
const NothingChanged = "nothing was changed, add --yes to do it"

// On is what a change works with.
type On struct {
	Std           *output.Streams
	Log           *slog.Logger // nil: the change does not read a topic
	Pool          *pgxpool.Pool
	Client        *kgo.Client // nil: the change does not read a topic
	Actor, Reason string      // for the audit trail

	// Amounts: the plan is shown to a person who may approve it, with amounts and balances.
	Amounts bool
	// Whole: the plan is to be done or approved, and not only shown, so it has to be complete.
	Whole bool
	// Now: it is done after it was planned, and not only shown or requested.
	Now bool

	closers []func() error
}

// Later has something closed when the command ends.
func (on *On) Later(closing func() error) { on.closers = append(on.closers, closing) }

func (on *On) close() (err error) {
	for _, end := range slices.Backward(on.closers) {
		err = errors.Join(err, end())
	}
	if on.Client != nil {
		on.Client.Close()
	}
	if on.Pool != nil {
		on.Pool.Close()
	}
	return err
}

// Command is the command of a change, and gives it --yes. The change itself does not know the
// flag: without a Plan that can be hashed, done and printed there is no command.
type Command[C any, P interface {
	*C
	Change
}] struct {
	Yes bool `help:"Do it. Without it, only print the plan."`
	Unattended[C, P]
}

// Run prints the plan of the change and, with --yes, does it or has it requested.
func (c *Command[C, P]) Run(ctx context.Context, std *output.Streams, typed *kong.Context) error {
	return run(ctx, std, typed, c.change(), c.Yes)
}

// Unattended is the command of a change that runs from a timer, where nobody types --yes.
type Unattended[C any, P interface {
	*C
	Change
}] struct {
	Options C `embed:""`
}

func (c *Unattended[C, P]) change() Change { return P(&c.Options) }

// fresh is a change without options, and adopt makes one the change of the command.
func (c *Unattended[C, P]) fresh() Change { return P(new(C)) }

func (c *Unattended[C, P]) adopt(other Change) {
	if options, same := other.(P); same {
		c.Options = *options
	}
}

// AfterApply passes on what the parser would only find in an exported field.
func (c *Unattended[C, P]) AfterApply(built flags.BuildInfo) error {
	if kafka, reads := c.change().(interface{ AfterApply(flags.BuildInfo) error }); reads {
		return kafka.AfterApply(built)
	}
	return nil
}

// Run does the change, or has it requested.
func (c *Unattended[C, P]) Run(ctx context.Context, std *output.Streams, typed *kong.Context) error {
	return run(ctx, std, typed, c.change(), true)
}

func run(ctx context.Context, std *output.Streams, typed *kong.Context, c Change, yes bool) (err error) {
	on, err := begin(ctx, std, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	if yes {
		requested, err := readmodel.FourEyes(ctx, on.Pool)
		if err != nil {
			return untouched(ctx, err)
		}
		on.Whole, on.Now = true, !requested
	}
	plan, err := c.Plan(ctx, on)
	switch {
	case err != nil:
		return untouched(ctx, err)
	case !yes:
		return untouched(ctx, plan.Print(ctx, std, false))
	case refusal(plan) != nil:
		return cmp.Or(plan.Print(ctx, std, false), refusal(plan))
	case on.Now:
		return do(ctx, std, plan)
	}
	h, err := hashOf(ctx, c.Action(), plan)
	switch {
	case err != nil:
		return untouched(ctx, err)
	case h.records == 0: // and this login may not be permitted to change anything
		return plan.Print(ctx, std, true)
	}
	return request(ctx, on, typed, c, h)
}

// refusal is the reason why a plan must not be done; nil: there is none.
func refusal(plan Plan) error {
	if p, may := plan.(Refused); may {
		return p.Refused()
	}
	return nil
}

// untouched is the error of a change that had not begun: an interruption has changed nothing.
func untouched(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return exit.Refuse("interrupted, nothing was changed")
	}
	return err
}

func do(ctx context.Context, std *output.Streams, plan Plan) error {
	err := plan.Do(ctx)
	_, partial := plan.(Partial)
	stopped := err != nil && ctx.Err() != nil && !errors.As(err, new(errclass.Describer))
	switch {
	case stopped && partial:
		err = exit.Refuse("interrupted; only what is listed was done")
	case stopped: // in one transaction, whose end may have been lost with the connection
		return exit.Refuse("interrupted, nothing was changed unless `projector audit` lists it")
	case err != nil && !partial:
		return err
	}
	if printed := plan.Print(ctx, std, true); err == nil {
		err = printed
	}
	return err
}

// begin refuses wrong usage, and connects to the servers that the change has flags for, or fails in
// time for a person who waits.
func begin(ctx context.Context, std *output.Streams, c Change) (on *On, err error) {
	if err := cmp.Or(c.Check(), c.checkReason()); err != nil {
		return nil, err
	}
	on = &On{Std: std}
	on.Actor, on.Reason = audited(c)
	kafka, reads := c.(interface {
		Kafka() *flags.KafkaFlags
		Logger(w io.Writer) (*slog.Logger, error)
	})
	if !reads {
		on.Pool, err = flags.OpenReadModel(ctx, c.Database())
	} else if on.Log, err = kafka.Logger(std.Err); err == nil {
		on.Pool, on.Client, err = flags.OpenBoth(ctx, c.Database(), kafka.Kafka(), on.Log)
	}
	if err != nil {
		return nil, err
	}
	return on, nil
}

// ReasonFlags say who changes something, and why.
type ReasonFlags struct {
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	flags.ActorFlags
}

func (f *ReasonFlags) asked() (reason *string, by *flags.ActorFlags) { return &f.Reason, &f.ActorFlags }

func (f *ReasonFlags) checkReason() error {
	if f.Reason == "" {
		return exit.Usagef("--reason: must not be empty")
	}
	return nil
}

// OptionalReasonFlags are ReasonFlags of a change that needs no reason.
type OptionalReasonFlags struct {
	Reason string `placeholder:"TEXT" help:"Why, for the audit trail."`
	flags.ActorFlags
}

func (f *OptionalReasonFlags) asked() (reason *string, by *flags.ActorFlags) {
	return &f.Reason, &f.ActorFlags
}

func (*OptionalReasonFlags) checkReason() error { return nil }

// audited are the actor and the reason of a change for the audit trail.
func audited(c reasoned) (actor, reason string) {
	why, by := c.asked()
	return by.ActorName(), readmodel.Storable(*why)
}
