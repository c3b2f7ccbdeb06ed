// Package account has the commands about single accounts, and the command that lists gaps.
package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
	"projector/readmodel/accountdb"
)

// Cmd are the commands about one account.
type Cmd struct {
	Show      accountShowCmd      `cmd:"" help:"Show an account: its state, its gap and the events that wait for it."`
	Statement accountStatementCmd `cmd:"" help:"Show the events that make up an account's balance, with a running balance and each event's place in Kafka."`
	Skip      skipCmd             `cmd:"" help:"Skip one version of an account on purpose: only the one it waits for."`
	Unskip    unskipCmd           `cmd:"" help:"Take back the last skip of an account, while nothing was applied after it."`
}

type accountShowCmd struct {
	ID string `arg:"" help:"The account."`
	flags.BalanceFlags
	flags.DatabaseFlags
	output.Flags
}

type accountDocument struct {
	AccountID         string                 `json:"account_id"`
	Currency          *string                `json:"currency"`
	Balance           *json.Number           `json:"balance"`
	Version           *int64                 `json:"version"`
	Status            *string                `json:"status"`
	Stale             bool                   `json:"stale"`
	WaitingForVersion *int64                 `json:"waiting_for_version"`
	LastEventID       *string                `json:"last_event_id"`
	LastEventAt       *string                `json:"last_event_at"`
	Parked            []accountdb.ParkedView `json:"parked"`
}

func (c *accountShowCmd) Run(ctx context.Context, std *output.Streams) error {
	if err := c.Check(); err != nil {
		return err
	}
	pool, err := flags.OpenReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	view, err := accountdb.ShowAccount(ctx, pool, c.Projection, readmodel.Storable(c.ID))
	if errors.Is(err, accountdb.ErrUnknownAccount) {
		return exit.Refusef("account %q is unknown: no event of it has been applied or parked", c.ID)
	}
	if err != nil {
		return err
	}
	if c.JSON() {
		return output.PrintJSON(std.Out, describeAccount(&view))
	}
	return output.PrintAccount(std, &view, readmodel.ReaderFlags(ctx))
}

func describeAccount(view *accountdb.AccountView) accountDocument {
	d := accountDocument{AccountID: view.ID, Parked: append([]accountdb.ParkedView{}, view.Parked...)} // a list, not null
	if b := view.Balance; b != nil {
		d.Currency, d.Version, d.Status = output.OrNull(b.Currency), &b.Version, output.OrNull(b.Status)
		d.Balance = output.NumberOrNull(&b.Balance)
		d.LastEventID = output.OrNull(b.LastEventID)
		if b.LastEventAt != nil {
			d.LastEventAt = new(output.TimeText(*b.LastEventAt))
		}
	}
	if view.Hold != nil {
		d.Stale, d.WaitingForVersion = true, &view.Hold.Expected
	}
	return d
}

// GapsListCmd is the command gaps list.
type GapsListCmd struct {
	flags.BalanceFlags
	flags.DatabaseFlags
	output.Flags
}

type gapDocument struct {
	AccountID       string  `json:"account_id"`
	ExpectedVersion int64   `json:"expected_version"`
	ReceivedVersion int64   `json:"received_version"`
	Class           string  `json:"class"`
	WaitingEvents   int64   `json:"waiting_events"`
	Since           string  `json:"since"`
	AgeSeconds      float64 `json:"age_seconds"`
}

// Run lists the gaps, the oldest first.
func (c *GapsListCmd) Run(ctx context.Context, std *output.Streams) error {
	if err := c.Check(); err != nil {
		return err
	}
	pool, err := flags.OpenReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	rows := c.Rows(std.Out, "ACCOUNT", output.Left("ACCOUNT", 20), output.Right("EXPECTED", 10),
		output.Right("RECEIVED", 10).Optional(), output.Left("CLASS", 20),
		output.Right("WAITING", 7), output.Left("AGE", 6))
	for gap, err := range accountdb.Gaps(ctx, pool, c.Projection) {
		if err := cmp.Or(err, rows.Err()); err != nil {
			return err
		}
		d := gapDocument{
			AccountID: gap.AccountID, ExpectedVersion: gap.Expected, ReceivedVersion: gap.Received, Class: string(gap.Class),
			WaitingEvents: gap.Waiting, Since: output.TimeText(gap.Since),
			AgeSeconds: *output.Seconds(&gap.Age),
		}
		rows.Add(d, gap.AccountID, gap.Expected, gap.Received, gap.Class, gap.Waiting, output.AgeText(gap.Age))
	}
	return rows.End("no account waits for an event")
}
