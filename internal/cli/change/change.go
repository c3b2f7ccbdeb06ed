// Package change runs the commands that make a plan and then change something. A Change has the
// options of a command and makes the plan. Command adds --yes and Run. Run connects, makes the
// plan, prints it, checks whether a second person has to approve it, executes it and prints the
// result. The commands about requests are here too.
package change

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/retry"
	"projector/readmodel"
)

// Change is the options of a command that changes something. It embeds ReasonFlags or
// OptionalReasonFlags, flags.DatabaseFlags, output.Flags and, if it reads a topic,
// flags.KafkaFlags and output.LogFlags.
type Change interface {
	// Action is the name that the change has in the audit trail.
	Action() readmodel.ActionKind
	// Check refuses wrong usage. It is called before connecting.
	Check() error
	// Plan makes the plan. It changes nothing.
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

// Plan is what a change would do. Do executes the same plan that Print has shown.
type Plan interface {
	// Hash calls Add for each record that would be changed. It adds what must not change until a
	// second person approves the plan, usually the JSON output of the record. It leaves out values
	// that change by themselves, for example a time or a lag, because they would make each plan
	// different. While four eyes are on, a plan without a record stores no request and does nothing.
	Hash(context.Context, *Hash) error
	// Do executes the plan. If a second person has approved the plan, the context contains the
	// number of the request for the audit trail.
	Do(ctx context.Context) error
	// Print prints the plan or, if done is true, the result. It returns an error if not everything
	// could be done. While four eyes are on, a plan without a record is printed with done = true,
	// without a call of Do.
	Print(ctx context.Context, done bool) error
}

// Partial is a Plan that is executed in several transactions. Its results so far are printed even
// after an error.
type Partial interface {
	Plan
	DoneInParts()
}

// Refused is a Plan that can be refused as a whole. A refused plan is printed too.
type Refused interface {
	Plan
	Refused() error
}

// On has the connections and settings of a change.
type On struct {
	Std           *output.Streams
	Log           *slog.Logger // nil: the change does not read a topic
	Pool          *pgxpool.Pool
	Client        *kgo.Client // nil: the change does not read a topic
	Actor, Reason string      // for the audit trail

	// Amounts means that the plan is printed with amounts and balances, because the user may
	// approve changes.
	Amounts bool
	// Whole means that the plan will be executed or approved, so it must be complete.
	Whole bool
	// Now means that the plan will be executed in this run.
	Now bool

	request *readmodel.Request // the request of the plan; nil: none
	closers []func() error
}

// NothingChanged returns the last line of a plan in text output. If a flag or another command
// executes the plan, the line names it.
func (on *On) NothingChanged() string {
	const unchanged = "nothing was changed"
	switch {
	case on.request != nil && on.request.State == readmodel.RequestOpen:
		return fmt.Sprintf("%s, another login does it by projector approve %d", unchanged, on.request.ID)
	case on.request != nil, on.Whole:
		return unchanged
	default:
		return unchanged + ", add --yes to do it"
	}
}

// Later registers a function that is called when the command ends.
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

// Command is the command that runs a Change. It adds the flag --yes. A Change does not know this
// flag, so the plan is the same with and without it.
type Command[C any, P interface {
	*C
	Change
}] struct {
	Yes bool `help:"Do it. Without it, only print the plan."`
	Unattended[C, P]
}

// Run prints the plan of the change and, with --yes, executes it or stores a request.
func (c *Command[C, P]) Run(ctx context.Context, std *output.Streams, typed *kong.Context) error {
	return run(ctx, std, typed, c.change(), c.Yes)
}

// Unattended is the command of a change that a timer starts. It has no --yes.
type Unattended[C any, P interface {
	*C
	Change
}] struct {
	Options C `embed:""`
}

func (c *Unattended[C, P]) change() Change { return P(&c.Options) }

// fresh returns an empty change of this command. adopt sets the options of the command to those of
// another change.
func (c *Unattended[C, P]) fresh() Change { return P(new(C)) }

func (c *Unattended[C, P]) adopt(other Change) {
	if options, same := other.(P); same {
		c.Options = *options
	}
}

// AfterApply calls AfterApply of the change. The parser does not find the change's own method,
// because that method is promoted from an unexported field.
func (c *Unattended[C, P]) AfterApply(built flags.BuildInfo) error {
	if kafka, reads := c.change().(interface{ AfterApply(flags.BuildInfo) error }); reads {
		return kafka.AfterApply(built)
	}
	return nil
}

// Run executes the change or stores a request.
func (c *Unattended[C, P]) Run(ctx context.Context, std *output.Streams, typed *kong.Context) error {
	return run(ctx, std, typed, c.change(), true)
}

func run(ctx context.Context, std *output.Streams, typed *kong.Context, c Change, yes bool) (err error) {
	on, err := begin(ctx, std, c)
	if err != nil {
		return untouched(ctx, err)
	}
	defer func() { err = errors.Join(err, on.close()) }()
	if yes {
		fourEyes, err := readmodel.FourEyes(ctx, on.Pool)
		if err != nil {
			return untouched(ctx, err)
		}
		on.Whole, on.Now = true, !fourEyes
	}
	plan, err := c.Plan(ctx, on)
	switch {
	case err != nil:
		return untouched(ctx, err)
	case !yes:
		err := plan.Print(ctx, false)
		if refused := refusal(plan); err == nil && refused != nil {
			std.Notef("with --yes this is refused: %s\n", errclass.Safe(refused))
		}
		return untouched(ctx, err)
	case refusal(plan) != nil:
		return cmp.Or(plan.Print(ctx, false), refusal(plan))
	case on.Now:
		return do(ctx, plan)
	}
	h, err := hashOf(ctx, c.Action(), plan)
	switch {
	case err != nil:
		return untouched(ctx, err)
	case h.records == 0: // no request, because there is nothing to change
		return plan.Print(ctx, true)
	}
	return request(ctx, on, typed, c, h)
}

// refusal returns why a plan is refused, or nil.
func refusal(plan Plan) error {
	if p, may := plan.(Refused); may {
		return p.Refused()
	}
	return nil
}

// untouched returns the error of a change that has not begun. If the command was interrupted, or if a
// server failed and may be back later, this error says that nothing was changed.
func untouched(ctx context.Context, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return exit.Refuse("interrupted, nothing was changed")
	case err != nil && (retry.Passing(err) || errclass.Kafka(err) == errclass.Retry):
		return fmt.Errorf("%w; nothing was changed, run it again when this is over", err)
	default:
		return err
	}
}

func do(ctx context.Context, plan Plan) error {
	err := plan.Do(ctx)
	_, partial := plan.(Partial)
	stopped := err != nil && ctx.Err() != nil && !errors.As(err, new(errclass.Describer))
	switch {
	case stopped && partial:
		err = exit.Refuse("interrupted; only what is listed was done")
	case stopped: // a single transaction may have been committed before the connection ended
		return exit.Refuse("interrupted, nothing was changed unless `projector audit` lists it")
	case err != nil && !partial:
		return err
	}
	return cmp.Or(err, plan.Print(ctx, true))
}

// begin refuses wrong usage. Then it connects to the servers for which the change has flags, or
// fails after flags.OneShotWithin.
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

// ReasonFlags are the flags for the actor and the reason of a change.
type ReasonFlags struct {
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	flags.ActorFlags
}

func (f *ReasonFlags) asked() (reason *string, by *flags.ActorFlags) { return &f.Reason, &f.ActorFlags }

func (f *ReasonFlags) checkReason() error { return checkReason(f.Reason) }

func checkReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return exit.Usagef("--reason: must not be empty")
	}
	return nil
}

// OptionalReasonFlags are ReasonFlags for a change that needs no reason.
type OptionalReasonFlags struct {
	Reason string `placeholder:"TEXT" help:"Why, for the audit trail."`
	flags.ActorFlags
}

func (f *OptionalReasonFlags) asked() (reason *string, by *flags.ActorFlags) {
	return &f.Reason, &f.ActorFlags
}

func (f *OptionalReasonFlags) checkReason() error {
	if f.Reason != "" && strings.TrimSpace(f.Reason) == "" {
		return exit.Usagef("--reason: is blank; give a reason or leave it out")
	}
	return nil
}

func audited(c reasoned) (actor, reason string) {
	why, by := c.asked()
	return by.ActorName(), readmodel.Storable(*why)
}

// Balances has an account's balance before and after a change, for a person who may approve it. A
// value is null if the account has no balance then.
type Balances struct {
	Currency *string      `json:"currency"`
	Before   *json.Number `json:"balance_before"`
	After    *json.Number `json:"balance_after"`
}

// BalanceColumns returns the columns of a table with the balance before, the balance after and the
// currency.
func BalanceColumns() []output.Column {
	return []output.Column{output.Right("BALANCE BEFORE", 14), output.Right("BALANCE AFTER", 14), output.Left("CURRENCY", 8)}
}
