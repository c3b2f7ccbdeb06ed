package account

import (
	"context"
	"fmt"

	"projector/internal/cli/change"
	"projector/internal/cli/output"
	"projector/readmodel"
	"projector/readmodel/repair"
)

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
		p.on.Std.Printf("took back the skip of version %d of account %s; an event of it that has come since is read again by position set\n", p.Version, output.Printable(p.ID))
	default:
		p.print("", fmt.Sprintf("would take back the skip of version %d", p.Version), p.ID)
	}
	return nil
}
