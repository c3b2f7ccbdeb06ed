package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"projector/dlq"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/internal/replay"
	"projector/readmodel"
)

type discardCmd struct {
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	Yes    bool   `help:"Do it. Without it, only list what would be discarded."`
	connect.ActorFlags
	topicFlags
	filterFlags
	output.Flags
}

// discardDocument is a dead letter that was, or would be, discarded.
type discardDocument struct {
	letterDocument
	Result *string `json:"result,omitempty"`
}

// Run discards dead letters: unless the status is chosen, those that still ask
// for something to be done.
func (c *discardCmd) Run(ctx context.Context, std *output.Streams) error {
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
	s, changed := opened.scan(std, chosen, c.Yes), false
	list := newLetterList(std.Out, c.JSON())
	var chosenNow []*replay.DeadLetter
	err = s.Each(ctx, func(d *replay.DeadLetter) (err error) {
		if chosenNow = append(chosenNow, d); len(chosenNow) == replay.ChunkRecords {
			err = c.discard(ctx, opened, list, chosenNow)
			chosenNow, changed = chosenNow[:0], true
		}
		return err
	})
	s.shown.Done()
	err = refused(err, changed)
	if err == nil {
		err = c.discard(ctx, opened, list, chosenNow)
	}
	if err != nil {
		if list.n > 0 { // what was done has to be said
			_ = list.end("")
		}
		return err
	}
	if err := list.end(s.nothing("nothing to discard\n")); err != nil {
		return err
	}
	return errors.Join(c.summarize(std, list.n), s.finish(std))
}

// discard records that dead letters are discarded, if that is wanted, and then says so.
func (c *discardCmd) discard(ctx context.Context, opened *tools, list *letterList, letters []*replay.DeadLetter) error {
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
	for _, d := range letters {
		if err := c.print(list, d); err != nil {
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

func (c *discardCmd) print(list *letterList, d *replay.DeadLetter) error {
	if !c.Yes {
		return list.print(d)
	}
	d.Status = dlq.Discarded
	if !c.JSON() {
		return list.print(d)
	}
	list.n++
	return list.lines.Write(discardDocument{document(d), output.OrNull(readmodel.ResultDiscarded)})
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
