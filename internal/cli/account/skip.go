package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/connect"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/foureyes"
	"projector/internal/cli/output"
	"projector/internal/cli/projections"
	"projector/readmodel"
)

type accountSkipCmd struct {
	ID           string `arg:"" help:"The account."`
	Version      int64  `required:"" placeholder:"N" help:"The version to skip: exactly the one the account waits for."`
	Reason       string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	NothingWaits bool   `help:"Skip the next version of an account that waits for no event: it is known to be lost before a later one has arrived."`
	Yes          bool   `help:"Do it. Without it, only say what would be done."`
	skipFlags
}

// skipFlags are those of skip and unskip.
type skipFlags struct {
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

// skipPlanDocument is what is known of a skip before it is done, in JSON. Places and classes are
// null when nothing is known of the event.
type skipPlanDocument struct {
	skipDocument
	eventDocument
	Before stateDocument `json:"before"`
	After  stateDocument `json:"after"`
}

// eventDocument is what is known of a skipped event, beside its id.
type eventDocument struct {
	Class     *string `json:"class"`
	Topic     *string `json:"topic"`
	Partition *int32  `json:"partition"`
	Offset    *int64  `json:"offset"`
}

// stateDocument is an account before or after a skip. It waits for the version after its own.
type stateDocument struct {
	Version  int64        `json:"version"`
	Currency *string      `json:"currency"`
	Balance  *json.Number `json:"balance"`
	Stale    bool         `json:"stale"`
}

func describeEvent(of *readmodel.SkippedEvent) (d eventDocument) {
	if d.Class = output.OrNull(string(of.Class)); of.Place.Topic != "" {
		d.Topic, d.Partition, d.Offset = &of.Place.Topic, &of.Place.Partition, &of.Place.Offset
	}
	return d
}

func describeState(s *readmodel.AccountState) stateDocument {
	d := stateDocument{Version: s.Version, Currency: output.OrNull(s.Currency), Stale: s.Waits}
	if s.Balance != "" {
		d.Balance = new(json.Number(s.Balance))
	}
	return d
}

// Run passes over a version.
func (c *accountSkipCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	repair, pool, err := c.open(ctx, c.Reason)
	if err != nil {
		return err
	}
	defer pool.Close()
	skip := readmodel.Skip{
		AccountID: readmodel.Storable(c.ID), Version: c.Version, Actor: c.ActorName(), Reason: readmodel.Storable(c.Reason),
		NothingWaits: c.NothingWaits,
	}
	if !c.Yes {
		plan, err := repair.PlanSkip(ctx, skip)
		if err != nil {
			return skipFailure(err)
		}
		return c.printPlan(std, &plan)
	}
	err = gate.Pass(ctx, pool, string(readmodel.ActionSkip), func(p *foureyes.Plan) error {
		plan, err := repair.PlanSkip(ctx, skip)
		if err != nil {
			return skipFailure(err)
		}
		skip.Planned = &plan.Event
		// Events go on arriving after the gap: how many will heal is shown, and not agreed to.
		return p.Add(skipDocument{AccountID: c.ID, Version: c.Version, EventID: output.OrNull(plan.Event.EventID)},
			describeEvent(&plan.Event), describeState(&plan.Before), c.NothingWaits)
	})
	if err != nil {
		return err
	}
	done, err := repair.Skip(ctx, skip)
	if err != nil {
		return skipFailure(err)
	}
	d := skipDocument{
		AccountID: c.ID, Version: c.Version, EventID: output.OrNull(done.EventID), HealedEvents: done.Healed,
		Result: output.OrNull(readmodel.ResultSkipped),
	}
	if c.JSON() {
		return output.PrintJSON(std.Out, d)
	}
	_, err = fmt.Fprintf(std.Out, "passed over version %d of account %s; %d waiting events were applied\n",
		d.Version, output.Printable(d.AccountID), d.HealedEvents)
	return err
}

// open connects to the database, and to the projection that versions are skipped in. The file of
// a custom projection must be the one its rows came from.
func (f *skipFlags) open(ctx context.Context, reason string) (readmodel.Skipper, *pgxpool.Pool, error) {
	kind, err := f.Kind()
	if err != nil {
		return nil, nil, err
	}
	if reason == "" {
		return nil, nil, exit.Usagef("--reason: must not be empty")
	}
	formats, err := f.Formats(f.Taken)
	if err != nil {
		return nil, nil, err
	}
	pool, err := connect.ReadModel(ctx, &f.DatabaseFlags)
	if err != nil {
		return nil, nil, err
	}
	repair, skips := kind.Replayer(readmodel.RepairConfig{Pool: pool, Formats: formats, FirstVersion: f.FirstVersion}).(readmodel.Skipper)
	if err = f.Kept(ctx, pool); err == nil && !skips {
		err = exit.Usagef("--projection (PROJECTION): %s has no versions to pass over", kind.Name())
	}
	if err != nil {
		pool.Close()
	}
	return repair, pool, err
}

func skipFailure(err error) error {
	var (
		refused *readmodel.SkipRefused
		kept    *readmodel.UnskipRefused
	)
	if errors.As(err, &refused) {
		return exit.Refuse(refused.Error() + "; nothing was changed")
	}
	if errors.As(err, &kept) {
		return exit.Refuse(kept.Error() + "; nothing was changed")
	}
	return err
}

// printPlan prints what is known before a skip.
func (c *accountSkipCmd) printPlan(std *output.Streams, plan *readmodel.SkipPlan) error {
	if c.JSON() {
		return output.PrintJSON(std.Out, skipPlanDocument{
			skipDocument:  skipDocument{AccountID: c.ID, Version: c.Version, EventID: output.OrNull(plan.Event.EventID), HealedEvents: plan.Healed},
			eventDocument: describeEvent(&plan.Event), Before: describeState(&plan.Before), After: describeState(&plan.After),
		})
	}
	_, err := fmt.Fprintf(std.Out, "now: %s\nversion %d: %s\n%d waiting events would be applied\nthen: %s\n"+
		"would pass over version %d of account %s; nothing was changed, add --yes to do it\n",
		stateText(&plan.Before), c.Version, eventText(&plan.Event), plan.Healed, stateText(&plan.After),
		c.Version, output.Printable(c.ID))
	return err
}

// stateText is an account before or after a skip.
func stateText(s *readmodel.AccountState) string {
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

// eventText is what is known of a skipped event.
func eventText(of *readmodel.SkippedEvent) string {
	if *of == (readmodel.SkippedEvent{}) {
		return "nothing is known of its event"
	}
	if of.Place.Topic == "" {
		return "its event is in the DLQ topic only, if there is one: events of this account came beyond the park limit"
	}
	text := "its event cannot be applied: " + string(of.Class)
	if of.EventID != "" {
		text += ", event id " + output.Printable(of.EventID)
	}
	if of.Place.Topic != "" {
		text += fmt.Sprintf(", record %s/%d/%d", of.Place.Topic, of.Place.Partition, of.Place.Offset)
	}
	return text
}
