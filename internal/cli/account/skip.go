package account

import (
	"context"
	"errors"
	"fmt"

	"projector/internal/cli/connect"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/foureyes"
	"projector/internal/cli/output"
	"projector/internal/cli/projections"
	"projector/readmodel"
)

type accountSkipCmd struct {
	ID      string `arg:"" help:"The account."`
	Version int64  `required:"" placeholder:"N" help:"The version to skip: exactly the one the account waits for."`
	Reason  string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	Yes     bool   `help:"Do it. Without it, only say what would be done."`
	connect.ActorFlags
	projections.BalanceFlags
	connect.DatabaseFlags
	events.EventFlags
	output.Flags
}

// skipDocument is a skip in JSON.
type skipDocument struct {
	AccountID    string  `json:"account_id"`
	Version      int64   `json:"version"`
	EventID      *string `json:"event_id"`
	HealedEvents int     `json:"healed_events"`
	Result       *string `json:"result"`
}

// Run passes over a version.
func (c *accountSkipCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	kind, err := c.Kind()
	if err != nil {
		return err
	}
	if c.Reason == "" {
		return exit.Usagef("--reason: must not be empty")
	}
	formats, err := c.Formats(c.Taken)
	if err != nil {
		return err
	}
	pool, err := connect.ReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := c.Kept(ctx, pool); err != nil {
		return err
	}
	repair, skips := kind.Replayer(readmodel.RepairConfig{Pool: pool, Formats: formats, FirstVersion: c.FirstVersion}).(readmodel.Skipper)
	if !skips {
		return exit.Usagef("--projection (PROJECTION): %s has no versions to pass over", kind.Name())
	}
	skip := readmodel.Skip{AccountID: readmodel.Storable(c.ID), Version: c.Version, Actor: c.ActorName(), Reason: readmodel.Storable(c.Reason)}
	if !c.Yes {
		if err := repair.PlanSkip(ctx, skip); err != nil {
			return skipFailure(err)
		}
		return c.print(std, skipDocument{AccountID: c.ID, Version: c.Version})
	}
	err = gate.Pass(ctx, pool, string(readmodel.ActionSkip), func(p *foureyes.Plan) error {
		if err := repair.PlanSkip(ctx, skip); err != nil {
			return skipFailure(err)
		}
		return p.Add(skipDocument{AccountID: c.ID, Version: c.Version})
	})
	if err != nil {
		return err
	}
	done, err := repair.Skip(ctx, skip)
	if err != nil {
		return skipFailure(err)
	}
	return c.print(std, skipDocument{
		AccountID: c.ID, Version: c.Version, EventID: output.OrNull(done.EventID), HealedEvents: done.Healed,
		Result: output.OrNull(readmodel.ResultSkipped),
	})
}

func skipFailure(err error) error {
	var refused *readmodel.SkipRefused
	if errors.As(err, &refused) {
		return exit.Refuse(refused.Error() + "; nothing was changed")
	}
	return err
}

func (c *accountSkipCmd) print(std *output.Streams, d skipDocument) error {
	if c.JSON() {
		return output.PrintJSON(std.Out, d)
	}
	var err error
	if d.Result == nil {
		_, err = fmt.Fprintf(std.Out, "would pass over version %d of account %s; nothing was changed, add --yes to do it\n",
			d.Version, output.Printable(d.AccountID))
	} else {
		_, err = fmt.Fprintf(std.Out, "passed over version %d of account %s; %d waiting events were applied\n",
			d.Version, output.Printable(d.AccountID), d.HealedEvents)
	}
	return err
}
