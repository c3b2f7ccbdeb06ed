package database

import (
	"context"
	"fmt"
	"time"

	"projector/internal/cli/change"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
	"projector/readmodel/inbox"
)

// InboxCmd are the commands about the markers of processed messages.
type InboxCmd struct {
	Prune pruneCmd `cmd:"" help:"Delete markers that are older than the retention. A running projector does this by itself."`
}

// pruneCmd runs from cron, where nobody types --yes.
type pruneCmd = change.Unattended[prune, *prune]

type prune struct {
	Retention time.Duration `env:"INBOX_RETENTION" default:"168h" placeholder:"DURATION" help:"Delete markers older than this (default 168h)."`
	change.OptionalReasonFlags
	flags.DatabaseFlags
	output.Flags
}

func (*prune) Action() readmodel.ActionKind { return readmodel.ActionPrune }

func (c *prune) Check() error { return flags.CheckRetention("--retention", c.Retention) }

func (c *prune) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	all, err := inbox.Old(ctx, on.Pool, c.Retention)
	p := &prunePlan{prune: c, on: on}
	for _, of := range all {
		switch {
		case len(of.Held) > 0:
			p.held = append(p.held, of)
		case of.Markers > 0:
			p.old = append(p.old, of)
		}
	}
	return p, err
}

// prunePlan deletes old inbox markers. It leaves out projections that are reading records again.
type prunePlan struct {
	*prune
	on      *change.On
	old     []inbox.OldMarkers // markers of projections that are pruned
	held    []inbox.OldMarkers // markers that are not pruned, because their records are being read again
	deleted int64
}

func (*prunePlan) DoneInParts() {}

// Hash implements change.Plan. The number of old markers is shown, but it is not part of the hash,
// because it changes with time.
func (p *prunePlan) Hash(_ context.Context, h *change.Hash) error {
	for _, of := range p.old {
		h.Add(of.Handler, p.Retention)
	}
	return nil
}

// Do implements change.Plan. It writes a row to the audit trail before it deletes the markers of a
// projection.
func (p *prunePlan) Do(ctx context.Context) error {
	shown := output.NewProgress(p.on.Std.Err, "deleted")
	defer shown.Done()
	for _, of := range p.old {
		action := readmodel.Action{
			Kind: readmodel.ActionPrune, Projection: of.Handler, Actor: p.on.Actor, Reason: p.on.Reason,
			Result: "markers older than " + p.Retention.String(),
		}
		if err := readmodel.RecordActions(ctx, p.on.Pool, []readmodel.Action{action}); err != nil {
			return err
		}
		err := inbox.Of(of.Handler).Prune(ctx, p.on.Pool, p.Retention, func(n int64) {
			p.deleted += n
			shown.Update(p.deleted, 0)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type pruneDocument struct {
	Deleted int64 `json:"deleted"`
}

type prunePlanDocument struct {
	Projection string `json:"projection"`
	OlderThan  string `json:"older_than"`
	Markers    int64  `json:"markers"` // at most inbox.CountUpTo
}

func (p *prunePlan) Print(_ context.Context, done bool) error {
	for _, of := range p.held {
		for _, hold := range of.Held {
			p.on.Std.Notef("%s keeps its markers until its records are read again: %s\n", output.Printable(of.Handler), hold)
		}
	}
	if !done {
		return p.printPlan()
	}
	return p.Flags.Print(p.on.Std.Out, pruneDocument{p.deleted}, fmt.Sprintf("deleted %d markers\n", p.deleted))
}

func (p *prunePlan) printPlan() error {
	for _, of := range p.old {
		atLeast := ""
		if of.Markers == inbox.CountUpTo {
			atLeast = "at least "
		}
		text := fmt.Sprintf("%s: %s%d markers are older than %s and would be deleted\n", output.Printable(of.Handler), atLeast, of.Markers, p.Retention)
		if err := p.Flags.Print(p.on.Std.Out, prunePlanDocument{of.Handler, p.Retention.String(), of.Markers}, text); err != nil {
			return err
		}
	}
	return nil
}
