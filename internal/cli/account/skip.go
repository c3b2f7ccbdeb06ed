package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"projector/internal/cli/change"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/repair"
)

type skipCmd = change.Command[skip, *skip]

type skip struct {
	ID           string `arg:"" help:"The account."`
	Version      int64  `required:"" placeholder:"N" help:"The version to skip: exactly the one the account waits for."`
	NothingWaits bool   `help:"Skip the next version of an account that waits for no event: it is known to be lost before a later one has arrived."`
	skipFlags
}

type skipFlags struct {
	change.ReasonFlags
	flags.BalanceFlags
	flags.DatabaseFlags
	events.EventFlags
	output.Flags

	kind    readmodel.Definition
	formats event.Resolver
}

func (f *skipFlags) check(version int64) (err error) {
	if version < 0 {
		return exit.Usagef("--version: must not be less than 0")
	}
	if f.kind, err = f.Kind(); err == nil {
		f.formats, err = f.Formats(f.CustomTypes)
	}
	return err
}

// skipper returns the Repair that skips versions of accounts in the projection. It returns an error
// if the rows were written with another projection file, or with a mapping that reads events
// differently.
func (f *skipFlags) skipper(ctx context.Context, on *change.On) (*repair.Repair, error) {
	skipper, skips := f.kind.Replayer(readmodel.RepairConfig{Pool: on.Pool, Formats: f.formats, FirstVersion: f.FirstVersion}).(*repair.Repair)
	if err := f.CheckFile(ctx, on.Pool); err != nil {
		return nil, err
	}
	if err := f.CheckMapping(ctx, on.Pool, f.kind.Name()); err != nil {
		return nil, err
	}
	if !skips {
		return nil, exit.Usagef("--projection (PROJECTION): %s has no versions to skip", f.kind.Name())
	}
	return skipper, nil
}

type skipDocument struct {
	AccountID    string  `json:"account_id"`
	Version      int64   `json:"version"`
	EventID      *string `json:"event_id"`
	HealedEvents int     `json:"healed_events"`
	Result       *string `json:"result"`
}

// skipPlanDocument is the plan of a skip in JSON. Class, topic, partition and offset are null if
// the event is not known.
type skipPlanDocument struct {
	skipDocument
	eventDocument
	Before stateDocument `json:"before"`
	After  stateDocument `json:"after"`
}

// eventDocument describes a skipped event without its id. Unknown fields are null.
type eventDocument struct {
	Class     *string `json:"class"`
	Topic     *string `json:"topic"`
	Partition *int32  `json:"partition"`
	Offset    *int64  `json:"offset"`
}

// stateDocument is an account before or after a skip.
type stateDocument struct {
	Version  int64        `json:"version"`
	Currency *string      `json:"currency"`
	Balance  *json.Number `json:"balance"`
	Stale    bool         `json:"stale"`
}

func describeEvent(of *repair.SkippedEvent) (d eventDocument) {
	if d.Class = output.OrNull(string(of.Class)); of.Place.Topic != "" {
		d.Topic, d.Partition, d.Offset = &of.Place.Topic, &of.Place.Partition, &of.Place.Offset
	}
	return d
}

func describeState(s *repair.AccountState) stateDocument {
	return stateDocument{Version: s.Version, Currency: output.OrNull(s.Currency), Balance: output.NumberOrNull(&s.Balance), Stale: s.Waits}
}

func (c *skip) Check() error { return c.check(c.Version) }

func (*skip) Action() readmodel.ActionKind { return readmodel.ActionSkip }

func (c *skip) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	of := repair.Skip{AccountID: readmodel.Storable(c.ID), Version: c.Version, NothingWaits: c.NothingWaits}
	planned, err := c.plan(ctx, on, of, (*repair.Repair).PlanSkip)
	return &skipPlan{skip: c, plannedSkip: planned}, err
}

type skipPlan struct {
	*skip
	plannedSkip
	done repair.Skipped
}

// plannedSkip is the plan of a skip, or of its reversal.
type plannedSkip struct {
	on      *change.On
	skipper *repair.Repair
	of      repair.Skip
	planned repair.SkipPlan
	refused error  // why the skip is refused
	again   string // the flags that a proposed command repeats
}

func (f *skipFlags) plan(
	ctx context.Context, on *change.On, of repair.Skip, plan func(*repair.Repair, context.Context, repair.Skip) (repair.SkipPlan, error),
) (p plannedSkip, err error) {
	if p.skipper, err = f.skipper(ctx, on); err != nil {
		return p, err
	}
	p.on, p.of, p.again = on, of, readmodel.ReaderFlags(ctx)
	p.of.Actor, p.of.Reason = on.Actor, on.Reason
	p.planned, err = plan(p.skipper, ctx, p.of)
	p.refused, err = refusedSkip(on, err)
	return p, err
}

// refusedSkip separates a refusal from other errors if the skip is executed in this run. Such a
// skip is still tried, so that the audit trail records the refusal.
func refusedSkip(on *change.On, err error) (refused, failure error) {
	if err = skipFailure(err); on.Now && errors.As(err, new(exit.Refusal)) {
		return err, nil
	}
	return nil, err
}

// Hash implements change.Plan. The number of waiting events that would be applied is shown, but it
// is not part of the hash, because events continue to arrive.
func (p *skipPlan) Hash(_ context.Context, h *change.Hash) error {
	if p.refused != nil {
		return p.refused
	}
	h.Add(skipDocument{AccountID: p.ID, Version: p.Version, EventID: output.OrNull(p.planned.Event.EventID)},
		describeEvent(&p.planned.Event), describeState(&p.planned.Before), p.NothingWaits)
	return nil
}

func (p *skipPlan) Do(ctx context.Context) (err error) {
	p.done, err = p.skipper.Skip(ctx, p.asPlanned())
	return skipFailure(err)
}

func (p *skipPlan) Print(_ context.Context, done bool) error {
	d := skipDocument{AccountID: p.ID, Version: p.Version, EventID: output.OrNull(p.planned.Event.EventID), HealedEvents: p.planned.Healed}
	plan := &p.planned
	switch {
	case done:
		d.EventID, d.HealedEvents, d.Result = output.OrNull(p.done.EventID), p.done.Healed, output.OrNull(readmodel.ResultSkipped)
		return p.Flags.Print(p.on.Std.Out, d, fmt.Sprintf("skipped version %d of account %s; waiting events applied: %d\n%s",
			d.Version, output.Printable(d.AccountID), d.HealedEvents, p.notHealed(d.HealedEvents)))
	case p.JSON():
		return output.PrintJSON(p.on.Std.Out, skipPlanDocument{
			skipDocument: d, eventDocument: describeEvent(&plan.Event), Before: describeState(&plan.Before), After: describeState(&plan.After),
		})
	}
	p.print(fmt.Sprintf("waiting events that would be applied: %d\n%s", plan.Healed, p.notHealed(plan.Healed)), fmt.Sprintf("would skip version %d", p.Version), p.ID)
	return nil
}

// asPlanned returns the planned skip. Executing it changes nothing if the plan was refused or is
// out of date.
func (p *plannedSkip) asPlanned() repair.Skip {
	of := p.of
	of.Planned, of.Refused = &p.planned.Event, p.refused != nil
	return of
}

// notHealed explains why a skip applies no later events, or not all of them. Later events are not
// parked if the partition is stopped or the park limit was reached.
func (p *plannedSkip) notHealed(healed int) string {
	switch n := p.planned.StillParked; {
	case n > 0:
		return fmt.Sprintf("waiting events that still wait, for version %d: %d\n", p.planned.After.Version+1, n)
	case healed > 0 || !p.planned.Before.Waits:
		return ""
	}
	return fmt.Sprintf("no later event of it is parked: if there are any, they are dead letters (`projector dlq replay --account=%s%s`) or not read yet (`projector lag%[2]s`)\n",
		flags.ShellWord(p.of.AccountID), p.again)
}

// print prints a plan as text: the present state of the account, the event, the effect on waiting
// events, and the state afterwards.
func (p *plannedSkip) print(healing, would, account string) {
	p.on.Std.Printf("now: %s\nversion %d: %s\n%sthen: %s\n%s of account %s; %s\n",
		stateText(&p.planned.Before), p.of.Version, eventText(&p.planned.Event), healing, stateText(&p.planned.After),
		would, output.Printable(account), p.on.NothingChanged())
}

func skipFailure(err error) error {
	if refused, is := errors.AsType[*repair.SkipRefused](err); is {
		return exit.Refuse(refused.Error() + "; nothing was changed")
	}
	return err
}

func stateText(s *repair.AccountState) string {
	text := fmt.Sprintf("version %d", s.Version)
	if s.Balance != "" {
		text += ", balance " + s.Balance
		if s.Currency != "" {
			text += " " + s.Currency
		}
	}
	if s.Closed {
		text += ", closed"
	}
	if s.Waits {
		return text + fmt.Sprintf(", waits for version %d", s.Version+1)
	}
	return text + ", waits for nothing"
}

func eventText(of *repair.SkippedEvent) string {
	if *of == (repair.SkippedEvent{}) {
		return "nothing is known of its event"
	}
	if of.Place.Topic == "" {
		return "its event is in the DLQ topic only, if there is one: events of this account came beyond the park limit"
	}
	text := "its event cannot be applied: " + string(of.Class)
	if of.EventID != "" {
		text += ", event id " + output.Printable(of.EventID)
	}
	return text + fmt.Sprintf(", record %s/%d/%d", of.Place.Topic, of.Place.Partition, of.Place.Offset)
}

type unskipCmd = change.Command[unskip, *unskip]

type unskip struct {
	ID      string `arg:"" help:"The account."`
	Version int64  `required:"" placeholder:"N" help:"The version that was skipped: the last one of the account."`
	skipFlags
}

type unskipDocument struct {
	AccountID string  `json:"account_id"`
	Version   int64   `json:"version"`
	EventID   *string `json:"event_id"`
	eventDocument
	Before stateDocument `json:"before"`
	After  stateDocument `json:"after"`
	Result *string       `json:"result"`
}

func (c *unskip) Check() error { return c.check(c.Version) }

func (*unskip) Action() readmodel.ActionKind { return readmodel.ActionUnskip }

func (c *unskip) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	of := repair.Skip{AccountID: readmodel.Storable(c.ID), Version: c.Version}
	planned, err := c.plan(ctx, on, of, (*repair.Repair).PlanUnskip)
	return &unskipPlan{c, planned}, err
}

type unskipPlan struct {
	*unskip
	plannedSkip
}

func (p *unskipPlan) document() unskipDocument {
	return unskipDocument{
		AccountID: p.ID, Version: p.Version, EventID: output.OrNull(p.planned.Event.EventID), eventDocument: describeEvent(&p.planned.Event),
		Before: describeState(&p.planned.Before), After: describeState(&p.planned.After),
	}
}

func (p *unskipPlan) Hash(_ context.Context, h *change.Hash) error {
	if p.refused != nil {
		return p.refused
	}
	d := p.document()
	d.Before.Stale, d.After.Stale = false, false // not part of the hash, because events continue to arrive
	h.Add(d)
	return nil
}

func (p *unskipPlan) Do(ctx context.Context) error {
	return skipFailure(p.skipper.Unskip(ctx, p.asPlanned()))
}

func (p *unskipPlan) Print(_ context.Context, done bool) error {
	d := p.document()
	if done {
		d.Result = output.OrNull(readmodel.ResultUnskipped)
	}
	switch {
	case p.JSON():
		return output.PrintJSON(p.on.Std.Out, d)
	case done:
		p.on.Std.Printf("took back the skip of version %d of account %s; if its event has arrived since, have it read again (projector position set)\n", p.Version, output.Printable(p.ID))
	default:
		p.print("", fmt.Sprintf("would take back the skip of version %d", p.Version), p.ID)
	}
	return nil
}
