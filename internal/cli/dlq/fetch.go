package dlq

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/change"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/outbox"
	"projector/internal/replay"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/balance"
	"projector/readmodel/repair"
)

// FetchCmd is the command gaps fetch.
type FetchCmd = change.Command[fetch, *fetch]

type fetch struct {
	Account string `group:"Filter" placeholder:"ID" help:"Only what this account waits for."`
	Limit   int    `default:"10000" placeholder:"N" help:"Ask for at most this many versions, of the oldest gaps first, and for 500 of each before more of one (default 10000)."`
	change.OptionalReasonFlags
	flags.BalanceFlags
	flags.OutboxFlags
	flags.DatabaseFlags
	events.EventFlags
	output.Flags

	client  *outbox.Client
	formats event.Resolver
}

func (*fetch) Action() readmodel.ActionKind { return readmodel.ActionFetch }

func (c *fetch) Check() (err error) {
	if err := c.CheckBalance(); err != nil {
		return err
	}
	if c.Limit < 1 {
		return exit.Usagef("--limit: must be at least 1")
	}
	if c.OutboxURL == "" {
		return exit.Usagef("--outbox-url (OUTBOX_URL): say where the producer's outbox is, and with --outbox-query how to ask it")
	}
	if c.client, err = c.Outbox(); err == nil {
		c.formats, err = c.Formats(c.CustomTypes)
	}
	return err
}

func (c *fetch) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	on.Later(func() error { c.client.Close(); return nil })
	if err := c.CheckMapping(ctx, on.Pool, readmodel.BalanceName); err != nil {
		return nil, err
	}
	decisions := readmodel.NewDecisions(on.Pool, balance.Definition{})
	missing, err := c.missing(ctx, on.Pool, decisions)
	if err != nil {
		return nil, err
	}
	p := &fetchPlan{c, on, &replay.Fetch{
		Store:  repair.New(readmodel.RepairConfig{Pool: on.Pool, Formats: c.formats, FirstVersion: c.FirstVersion, Decisions: decisions}),
		Outbox: c.client, Formats: c.formats, By: readmodel.Action{Actor: on.Actor, Reason: on.Reason}, Missing: missing,
	}}
	shown := output.NewProgress(on.Std.Err, "asked for")
	err = p.of.Plan(ctx, shown.Update)
	shown.Done()
	if p.of.Refused > 0 {
		on.Std.Notef("the outbox returned %d events that are not applied, the last of them (account %s, version %d) because %s; check --outbox-query\n",
			p.of.Refused, output.OrDash(output.Printable(p.of.Last.AccountID)), p.of.Last.Number, p.of.Why)
	}
	return p, err
}

// missing returns the versions that accounts wait for, at most --limit. The versions of an account
// are sorted. At first an account gets at most outbox.AskAtOnce of them, and more only if the limit
// is not reached then. Otherwise one event with a mistyped version could use up the limit.
func (c *fetch) missing(ctx context.Context, pool *pgxpool.Pool, decisions *readmodel.Decisions) (missing []*replay.Missing, err error) {
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	var (
		gaps  []accountdb.Missing
		lasts []int64 // the last version of each gap that is asked for
		left  = int64(c.Limit)
	)
	for m, err := range accountdb.MissingVersions(ctx, pool, accountdb.MissingFilter{AccountID: c.Account, Decisions: decisions}) {
		if err != nil {
			return nil, err
		}
		n := 1 + min(m.Last-m.First, outbox.AskAtOnce-1, left-1)
		gaps, lasts, left = append(gaps, m), append(lasts, m.First+n-1), left-n
		if left == 0 {
			break
		}
	}
	for i, m := range gaps {
		more := min(m.Last-lasts[i], left)
		m.Last, left = lasts[i]+more, left-more
		for v := range m.Versions() {
			missing = append(missing, &replay.Missing{Version: outbox.Version{AccountID: m.AccountID, Number: v}})
		}
	}
	return missing, nil
}

type fetchPlan struct {
	*fetch
	on *change.On
	of *replay.Fetch
}

func (*fetchPlan) DoneInParts() {}

// Hash implements change.Plan. The hash is made from the plan and the digest of each missing event
// that the outbox has returned.
func (p *fetchPlan) Hash(_ context.Context, h *change.Hash) error {
	for _, m := range p.of.Missing {
		if m.Record != nil {
			h.Add(describeMissing(m, false, false), m.Digest())
		}
	}
	return nil
}

func (p *fetchPlan) Do(ctx context.Context) error {
	shown := output.NewProgress(p.on.Std.Err, "applied")
	defer shown.Done()
	return p.of.Apply(ctx, shown.Update)
}

func (p *fetchPlan) Print(_ context.Context, done bool) error {
	if err := p.print(done); err != nil {
		return err
	}
	if failed := p.of.Failed(); done && failed > 0 {
		return exit.Refusef("%d of %d versions could not be applied", failed, len(p.of.Missing))
	}
	return nil
}

func (p *fetchPlan) print(done bool) error {
	rows := p.Rows(p.on.Std.Out, "ACCOUNT", output.Outcome(done, 10), output.Left("ACCOUNT", 14), output.Right("VERSION", 7), output.Text("WHY"))
	counts := replay.Counts{}
	for _, m := range p.of.Missing {
		counts[m.Outcome(done)]++
		rows.Add(describeMissing(m, done, p.on.Amounts), m.Outcome(done), m.AccountID, m.Number, m.Reason())
	}
	if err := rows.End("no account waits for an event that can be fetched"); err != nil || p.JSON() || len(p.of.Missing) == 0 {
		return err
	}
	if p.on.Amounts {
		if err := p.printAmounts(); err != nil {
			return err
		}
	}
	text := counts.String()
	if !done {
		text += "; " + p.on.NothingChanged()
	}
	p.on.Std.Printf("%s\n", text)
	return nil
}

func (p *fetchPlan) printAmounts() error {
	var rows []amountRow
	for _, m := range p.of.Missing {
		if m.Record != nil {
			rows = append(rows, amountRow{m.AccountID, &m.Number, fetchedAmounts(m)})
		}
	}
	return printAmounts(p.on.Std, rows)
}

type fetchDocument struct {
	AccountID string  `json:"account_id"`
	Version   int64   `json:"version"`
	Plan      string  `json:"plan"`
	Result    *string `json:"result"`
	*amountsDocument
}

// describeMissing describes a version with its plan and, after the plan was executed, its result.
func describeMissing(m *replay.Missing, done, amounts bool) fetchDocument {
	d := fetchDocument{AccountID: m.AccountID, Version: m.Number, Plan: m.Plan}
	if done {
		d.Result = output.OrNull(m.Outcome(true))
	}
	if amounts && m.Record != nil {
		d.amountsDocument = fetchedAmounts(m)
	}
	return d
}
