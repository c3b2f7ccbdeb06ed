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
	"projector/projection/event"
	"projector/readmodel"
)

type dlqDiscardCmd struct {
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	Yes    bool   `help:"Do it. Without it, only list what would be discarded."`
	connect.ActorFlags
	TopicFlags
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
func (c *dlqDiscardCmd) Run(ctx context.Context, std *output.Streams) error {
	if c.Reason == "" {
		return exit.Usagef("--reason: must not be empty")
	}
	chosen, err := c.selection(time.Now(), &c.GroupFlags)
	if err != nil {
		return err
	}
	chosen.unlessChosen(dlq.Open, dlq.Ready, dlq.Waiting)
	tools, err := c.Open(ctx, std)
	if err != nil {
		return err
	}
	defer tools.Close()
	s := &Scan{Tools: tools, selection: chosen, whole: c.Yes, progress: output.NewProgress(std.Err, "read")}
	list := newLetterList(std.Out, c.JSON())
	var chosenNow []*DeadLetter
	err = s.Each(ctx, func(d *DeadLetter) (err error) {
		if chosenNow = append(chosenNow, d); len(chosenNow) == ScanRecords {
			err = c.discard(ctx, tools, list, chosenNow)
			chosenNow, s.changed = chosenNow[:0], true
		}
		return err
	})
	s.progress.Done()
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
func (c *dlqDiscardCmd) discard(ctx context.Context, tools *Tools, list *letterList, letters []*DeadLetter) error {
	if c.Yes {
		actions := make([]readmodel.Action, len(letters))
		for i, d := range letters {
			actions[i] = c.action(d)
		}
		ctx, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
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

func (c *dlqDiscardCmd) action(d *DeadLetter) readmodel.Action {
	a := d.action(readmodel.ActionDiscard, c.ActorName())
	a.Reason, a.Result = connect.Storable(c.Reason), readmodel.ResultDiscarded
	return a
}

func (c *dlqDiscardCmd) print(list *letterList, d *DeadLetter) error {
	if !c.Yes {
		return list.print(d)
	}
	d.status = dlq.Discarded
	if !c.JSON() {
		return list.print(d)
	}
	list.n++
	return list.lines.Write(discardDocument{d.document(), output.OrNull(readmodel.ResultDiscarded)})
}

func (c *dlqDiscardCmd) summarize(std *output.Streams, n int) error {
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

// action is what is recorded of something done about the dead letter.
func (d *DeadLetter) action(kind readmodel.ActionKind, actor string) readmodel.Action {
	e := &d.Entry
	return readmodel.Action{
		Kind: kind, AccountID: connect.Storable(e.AccountID), Version: e.Received,
		Topic: connect.Storable(e.Topic), Partition: e.Partition, Offset: e.Offset,
		DLQTopic: d.dlqTopic, DLQPartition: e.DLQPartition, DLQOffset: e.DLQOffset,
		Class: event.Class(connect.Storable(string(e.Class))), Actor: actor,
	}
}
