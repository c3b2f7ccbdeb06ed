package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"projector/dlq"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/foureyes"
	"projector/internal/cli/output"
	"projector/internal/replay"
	"projector/readmodel"
)

type discardCmd struct {
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	Yes    bool   `help:"Do it. Without it, only list what would be discarded."`
	connect.ActorFlags
	filterFlags
	topicFlags
	output.Flags

	agreed map[string]bool // places of the dead letters that somebody has agreed to; nil: all
}

// discardDocument is a dead letter that was, or would be, discarded.
type discardDocument struct {
	letterDocument
	Result *string `json:"result,omitempty"`
}

// Run discards dead letters: unless the status is chosen, those that still ask
// for something to be done.
func (c *discardCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	if c.Reason == "" {
		return exit.Usagef("--reason: must not be empty")
	}
	chosen, err := c.selection(time.Now(), &c.GroupFlags)
	if err != nil {
		return err
	}
	unlessChosen(&chosen, dlq.Open, dlq.Ready, dlq.Waiting)
	opened, err := c.open(ctx, std)
	if err != nil {
		return err
	}
	defer opened.close()
	if c.Yes {
		err := gate.Pass(ctx, opened.pool, string(readmodel.ActionDiscard), func(p *foureyes.Plan) error {
			return refused(c.plan(ctx, opened.scan(std, chosen, true), p), false)
		})
		if err != nil {
			return err
		}
	}
	s, changed := opened.scan(std, chosen, c.Yes), false
	rows := letterRows(std, &c.Flags)
	var chosenNow []*replay.DeadLetter
	err = s.Each(ctx, func(d *replay.DeadLetter) (err error) {
		if c.agreed != nil && !c.agreed[placeOf(&d.Entry)] { // it came since
			return nil
		}
		if chosenNow = append(chosenNow, d); len(chosenNow) == replay.ChunkRecords {
			err = c.discard(ctx, opened, rows, chosenNow)
			chosenNow, changed = chosenNow[:0], true
		}
		return err
	})
	s.shown.Done()
	err = refused(err, changed)
	if err == nil {
		err = c.discard(ctx, opened, rows, chosenNow)
	}
	if err != nil {
		if rows.Len() > 0 { // what was done has to be said
			_ = rows.End("")
		}
		return err
	}
	if err := rows.End(s.nothing("nothing to discard")); err != nil {
		return err
	}
	return errors.Join(c.summarize(std, rows.Len()), s.finish(std))
}

// plan reads what would be discarded; nothing else will be.
func (c *discardCmd) plan(ctx context.Context, s *scan, p *foureyes.Plan) error {
	defer s.shown.Done()
	c.agreed = map[string]bool{}
	return s.Each(ctx, func(d *replay.DeadLetter) error {
		c.agreed[placeOf(&d.Entry)] = true
		return p.Add(document(d))
	})
}

// discard records that dead letters are discarded, if that is wanted, and then says so.
func (c *discardCmd) discard(ctx context.Context, opened *tools, rows *output.Rows, letters []*replay.DeadLetter) error {
	if c.Yes {
		actions := make([]readmodel.Action, len(letters))
		for i, d := range letters {
			actions[i] = c.action(d)
		}
		ctx, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
		defer cancel()
		if err := readmodel.RecordActions(ctx, opened.pool, actions); err != nil {
			return err
		}
	}
	now := time.Now()
	for _, d := range letters {
		if c.Yes {
			d.Status = dlq.Discarded
		}
		if err := rows.Add(discardRow{letterRow{d, now}, c.Yes}); err != nil {
			return err
		}
	}
	return nil
}

func (c *discardCmd) action(d *replay.DeadLetter) readmodel.Action {
	a := d.Action(readmodel.ActionDiscard, c.ActorName())
	a.Reason, a.Result = readmodel.Storable(c.Reason), readmodel.ResultDiscarded
	return a
}

// discardRow is a dead letter that is, or would be, discarded.
type discardRow struct {
	letterRow
	done bool
}

// Document implements output.Row.
func (r discardRow) Document() any {
	if !r.done {
		return r.letterRow.Document()
	}
	return discardDocument{document(r.DeadLetter), output.OrNull(readmodel.ResultDiscarded)}
}

func (c *discardCmd) summarize(std *output.Streams, n int) error {
	out := std.Out
	if c.JSON() {
		out = std.Err
	}
	var err error
	if c.Yes {
		_, err = fmt.Fprintf(out, "discarded %d dead letters\n", n)
	} else if n > 0 {
		_, err = fmt.Fprintf(out, "%d dead letters would be discarded; nothing was changed, add --yes to do it\n", n)
	}
	return err
}
