package cli

import (
	"context"
	"errors"
	"fmt"

	"projector/readmodel"
)

type accountSkipCmd struct {
	ID      string `arg:"" help:"The account."`
	Version int64  `required:"" placeholder:"N" help:"The version to pass over: exactly the one the account waits for."`
	Reason  string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	Yes     bool   `help:"Do it. Without it, only say what would be done."`
	actorFlags
	balanceFlags
	databaseFlags
	eventFlags
	outputFlags
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
func (c *accountSkipCmd) Run(ctx context.Context, std *streams) error {
	if err := c.validate(); err != nil {
		return err
	}
	if c.Reason == "" {
		return usagef("--reason: must not be empty")
	}
	formats, err := c.formats()
	if err != nil {
		return err
	}
	pool, err := openReadModel(ctx, &c.databaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	repair := readmodel.NewRepair(readmodel.RepairConfig{Pool: pool, Formats: formats, FirstVersion: c.FirstVersion})
	skip := readmodel.Skip{AccountID: storable(c.ID), Version: c.Version, Actor: c.name(), Reason: storable(c.Reason)}
	if !c.Yes {
		if err := repair.PlanSkip(ctx, skip); err != nil {
			return skipFailure(err)
		}
		return c.print(std, skipDocument{AccountID: c.ID, Version: c.Version})
	}
	done, err := repair.Skip(ctx, skip)
	if err != nil {
		return skipFailure(err)
	}
	return c.print(std, skipDocument{
		AccountID: c.ID, Version: c.Version, EventID: orNull(done.EventID), HealedEvents: done.Healed,
		Result: orNull(readmodel.ResultSkipped),
	})
}

func skipFailure(err error) error {
	var refused *readmodel.SkipRefused
	if errors.As(err, &refused) {
		return refusal{refused.Error() + "; nothing was changed"}
	}
	return err
}

func (c *accountSkipCmd) print(std *streams, d skipDocument) error {
	if c.json() {
		return printJSON(std.out, d)
	}
	var err error
	if d.Result == nil {
		_, err = fmt.Fprintf(std.out, "would pass over version %d of account %s; nothing was changed, add --yes to do it\n",
			d.Version, printable(d.AccountID))
	} else {
		_, err = fmt.Fprintf(std.out, "passed over version %d of account %s; %d waiting events were applied\n",
			d.Version, printable(d.AccountID), d.HealedEvents)
	}
	return err
}
