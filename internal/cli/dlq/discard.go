package dlq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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

	agreed  map[string]bool // places of the dead letters that somebody has agreed to; nil: all
	removed int             // of the dead letters, those whose events were parked
	passed  int             // those that the read model has passed
}

// discardDocument is a dead letter that was, or would be, discarded.
type discardDocument struct {
	letterDocument
	Parked bool    `json:"parked"` // the event was, and is or would be removed
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
			return refused(c.plan(ctx, opened, opened.scan(std, chosen, true), p), false)
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
func (c *discardCmd) plan(ctx context.Context, opened *tools, s *scan, p *foureyes.Plan) error {
	defer s.shown.Done()
	c.agreed = map[string]bool{}
	var all []*replay.DeadLetter
	if err := s.Each(ctx, func(d *replay.DeadLetter) error { all = append(all, d); return nil }); err != nil {
		return err
	}
	for letters := range slices.Chunk(all, replay.ChunkRecords) {
		found, err := c.do(ctx, opened, letters, false)
		if err != nil {
			return err
		}
		for i, d := range letters {
			c.agreed[placeOf(&d.Entry)] = true
			if err := p.Add((discardRow{letterRow: letterRow{DeadLetter: d}, Discarded: found[i]}).Document()); err != nil {
				return err
			}
		}
	}
	return nil
}

// discard discards dead letters, if that is wanted, and then says so.
func (c *discardCmd) discard(ctx context.Context, opened *tools, rows *output.Rows, letters []*replay.DeadLetter) error {
	found, err := c.do(ctx, opened, letters, c.Yes)
	now := time.Now()
	for i := range found { // after an error too: what was done has to be said
		d := letters[i]
		switch {
		case found[i].Passed:
			c.passed++
		case found[i].Removed:
			c.removed++
		}
		if c.Yes && !found[i].Passed {
			d.Status = dlq.Discarded
		}
		if addErr := rows.Add(discardRow{letterRow{d, now}, found[i], c.Yes}); err == nil {
			err = addErr
		}
	}
	return err
}

// do discards dead letters or finds out what that would do. It returns what became of each, of
// the first ones after an error.
func (c *discardCmd) do(ctx context.Context, opened *tools, letters []*replay.DeadLetter, really bool) ([]readmodel.Discarded, error) {
	if len(letters) == 0 {
		return nil, nil
	}
	discarder, parks := opened.replayer(0).(readmodel.Discarder)
	if !parks {
		return c.record(ctx, opened, letters, really)
	}
	list := make([]readmodel.Discard, len(letters))
	for i, d := range letters {
		list[i] = d.Discard(c.action(d))
	}
	if !really {
		return discarder.PlanDiscard(ctx, list)
	}
	return discarder.Discard(ctx, list)
}

// record discards dead letters of a projection that parks no events. One whose event the read
// model has is not discarded.
func (c *discardCmd) record(ctx context.Context, opened *tools, letters []*replay.DeadLetter, really bool) ([]readmodel.Discarded, error) {
	found := make([]readmodel.Discarded, len(letters))
	var actions []readmodel.Action
	for i, d := range letters {
		if found[i].Passed = d.Status == dlq.Resolved; !found[i].Passed {
			actions = append(actions, c.action(d))
		}
	}
	if !really || len(actions) == 0 {
		return found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
	defer cancel()
	if err := readmodel.RecordActions(ctx, opened.pool, actions); err != nil {
		return nil, err
	}
	return found, nil
}

func (c *discardCmd) action(d *replay.DeadLetter) readmodel.Action {
	a := d.Action(readmodel.ActionDiscard, c.ActorName())
	a.Reason, a.Result = readmodel.Storable(c.Reason), readmodel.ResultDiscarded
	return a
}

// discardRow is a dead letter that is, or would be, discarded.
type discardRow struct {
	letterRow
	readmodel.Discarded
	done bool
}

// Document implements output.Row.
func (r discardRow) Document() any {
	d := discardDocument{letterDocument: document(r.DeadLetter), Parked: r.Removed}
	if r.done && !r.Passed {
		d.Result = output.OrNull(readmodel.ResultDiscarded)
	}
	return d
}

// summarize says what was done to how many, and what of it changes the read model.
func (c *discardCmd) summarize(std *output.Streams, n int) error {
	out := std.Out
	if c.JSON() {
		out = std.Err
	}
	var text string
	switch n -= c.passed; {
	case c.Yes:
		text = fmt.Sprintf("discarded %d dead letters\n", n)
		if c.removed > 0 {
			text += fmt.Sprintf("removed the parked events of %d of them: they are not applied when their turn comes\n", c.removed)
		}
	case n > 0:
		text = fmt.Sprintf("%d dead letters would be discarded; nothing was changed, add --yes to do it\n", n)
		if c.removed > 0 {
			text = fmt.Sprintf("the events of %d of them are parked and would be removed: they would not be applied when their turn comes\n", c.removed) + text
		}
	}
	if c.passed > 0 {
		text = fmt.Sprintf("%d are not discarded: the read model has passed their versions\n", c.passed) + text
	}
	_, err := io.WriteString(out, text)
	return err
}
