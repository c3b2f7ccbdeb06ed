package account

import (
	"context"
	"fmt"

	"projector/internal/cli/foureyes"
	"projector/internal/cli/output"
	"projector/readmodel"
)

type accountUnskipCmd struct {
	ID      string `arg:"" help:"The account."`
	Version int64  `required:"" placeholder:"N" help:"The version that was skipped: the last one of the account."`
	Reason  string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	Yes     bool   `help:"Do it. Without it, only say what would be done."`
	skipFlags
}

// unskipDocument is a skip that is taken back, in JSON.
type unskipDocument struct {
	AccountID string  `json:"account_id"`
	Version   int64   `json:"version"`
	EventID   *string `json:"event_id"`
	eventDocument
	Before stateDocument `json:"before"`
	After  stateDocument `json:"after"`
	Result *string       `json:"result"`
}

// Run takes a skip back.
func (c *accountUnskipCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	repair, pool, err := c.open(ctx, c.Reason)
	if err != nil {
		return err
	}
	defer pool.Close()
	skip := readmodel.Skip{AccountID: readmodel.Storable(c.ID), Version: c.Version, Actor: c.ActorName(), Reason: readmodel.Storable(c.Reason)}
	plan, err := repair.PlanUnskip(ctx, skip)
	if err != nil && !c.Yes {
		return skipFailure(err)
	}
	d := unskipDocument{
		AccountID: c.ID, Version: c.Version, EventID: output.OrNull(plan.Event.EventID), eventDocument: describeEvent(&plan.Event),
		Before: describeState(&plan.Before), After: describeState(&plan.After),
	}
	if !c.Yes {
		return c.print(std, &plan, d)
	}
	err = gate.Pass(ctx, pool, string(readmodel.ActionUnskip), func(p *foureyes.Plan) error {
		if err != nil {
			return skipFailure(err)
		}
		d := d
		d.Before.Stale, d.After.Stale = false, false // events go on arriving
		return p.Add(d)
	})
	if err != nil {
		return err
	}
	if err := repair.Unskip(ctx, skip); err != nil {
		return skipFailure(err)
	}
	d.Result = output.OrNull(readmodel.ResultUnskipped)
	return c.print(std, &plan, d)
}

func (c *accountUnskipCmd) print(std *output.Streams, plan *readmodel.UnskipPlan, d unskipDocument) error {
	if c.JSON() {
		return output.PrintJSON(std.Out, d)
	}
	id := output.Printable(c.ID)
	if d.Result != nil {
		_, err := fmt.Fprintf(std.Out, "took back the skip of version %d of account %s; an event of it that has come since is read again by position set\n", c.Version, id)
		return err
	}
	_, err := fmt.Fprintf(std.Out, "now: %s\nversion %d: %s\nthen: %s\nwould take back the skip of version %d of account %s; nothing was changed, add --yes to do it\n",
		stateText(&plan.Before), c.Version, eventText(&plan.Event), stateText(&plan.After), c.Version, id)
	return err
}
