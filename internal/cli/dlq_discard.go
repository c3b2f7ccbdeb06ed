package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"projector/dlq"
	"projector/projection/event"
	"projector/readmodel"
)

type dlqDiscardCmd struct {
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	Yes    bool   `help:"Do it. Without it, only list what would be discarded."`
	actorFlags
	dlqFlags
	filterFlags
	outputFlags
}

// discardDocument is a dead letter that was, or would be, discarded.
type discardDocument struct {
	letterDocument
	Result *string `json:"result,omitempty"`
}

// Run discards dead letters: unless the status is chosen, those that still ask
// for something to be done.
func (c *dlqDiscardCmd) Run(ctx context.Context, std *streams) error {
	if c.Reason == "" {
		return usagef("--reason: must not be empty")
	}
	chosen, err := c.selection(time.Now(), &c.groupFlags)
	if err != nil {
		return err
	}
	chosen.unlessChosen(dlq.Open, dlq.Ready, dlq.Waiting)
	tools, err := c.open(ctx, std)
	if err != nil {
		return err
	}
	defer tools.close()
	s := &scan{dlqTools: tools, selection: chosen, whole: c.Yes, progress: newProgress(std.err, "read")}
	list := newLetterList(std.out, c.json())
	var chosenNow []*deadLetter
	err = s.each(ctx, func(d *deadLetter) (err error) {
		if chosenNow = append(chosenNow, d); len(chosenNow) == scanRecords {
			err = c.discard(ctx, tools, list, chosenNow)
			chosenNow, s.changed = chosenNow[:0], true
		}
		return err
	})
	s.progress.done()
	if err == nil {
		err = c.discard(ctx, tools, list, chosenNow)
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
func (c *dlqDiscardCmd) discard(ctx context.Context, tools *dlqTools, list *letterList, letters []*deadLetter) error {
	if c.Yes {
		actions := make([]readmodel.Action, len(letters))
		for i, d := range letters {
			actions[i] = c.action(d)
		}
		ctx, cancel := context.WithTimeout(ctx, oneShotWithin)
		defer cancel()
		if err := readmodel.RecordActions(ctx, tools.pool, actions); err != nil {
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

func (c *dlqDiscardCmd) action(d *deadLetter) readmodel.Action {
	a := d.action(readmodel.ActionDiscard, c.name())
	a.Reason, a.Result = storable(c.Reason), readmodel.ResultDiscarded
	return a
}

func (c *dlqDiscardCmd) print(list *letterList, d *deadLetter) error {
	if !c.Yes {
		return list.print(d)
	}
	d.status = dlq.Discarded
	if !c.json() {
		return list.print(d)
	}
	list.n++
	return list.lines.write(discardDocument{d.document(), orNull(readmodel.ResultDiscarded)})
}

func (c *dlqDiscardCmd) summarize(std *streams, n int) error {
	out := std.out
	if c.json() {
		out = std.err
	}
	var err error
	if c.Yes {
		_, err = fmt.Fprintf(out, "discarded %d dead letters\n", n)
	} else if n > 0 {
		_, err = fmt.Fprintf(out, "%d dead letters would be discarded; nothing was changed, add --yes to do it\n", n)
	}
	return err
}

// action is what is recorded of something done about the dead letter.
func (d *deadLetter) action(kind readmodel.ActionKind, actor string) readmodel.Action {
	e := &d.entry
	return readmodel.Action{
		Kind: kind, AccountID: storable(e.AccountID), Version: e.Received,
		Topic: storable(e.Topic), Partition: e.Partition, Offset: e.Offset,
		DLQTopic: d.dlqTopic, DLQPartition: e.DLQPartition, DLQOffset: e.DLQOffset,
		Class: event.Class(storable(string(e.Class))), Actor: actor,
	}
}
