package dlq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"projector/internal/cli/output"
	"projector/internal/replay"
)

type listCmd struct {
	topicFlags
	filterFlags
	output.Flags
}

// letterDocument is a dead letter in JSON.
type letterDocument struct {
	DLQPartition    int32   `json:"dlq_partition"`
	DLQOffset       int64   `json:"dlq_offset"`
	Class           string  `json:"class"`
	Status          string  `json:"status"`
	AccountID       *string `json:"account_id"`
	EventID         *string `json:"event_id"`
	ExpectedVersion *int64  `json:"expected_version"`
	ReceivedVersion *int64  `json:"received_version"`
	Topic           string  `json:"topic"`
	Partition       int32   `json:"partition"`
	Offset          int64   `json:"offset"`
	FailedAt        string  `json:"failed_at"`
	Replays         int     `json:"replays"`
	Message         string  `json:"message"`
}

func document(d *replay.DeadLetter) letterDocument {
	e := &d.Entry
	return letterDocument{
		DLQPartition: e.DLQPartition, DLQOffset: e.DLQOffset, Class: string(e.Class), Status: string(d.Status),
		AccountID: output.OrNull(e.AccountID), EventID: output.OrNull(e.EventID),
		ExpectedVersion: e.Expected, ReceivedVersion: e.Received,
		Topic: e.Topic, Partition: e.Partition, Offset: e.Offset,
		FailedAt: output.TimeText(e.FailedAt), Replays: d.Replays, Message: e.Message,
	}
}

// Run lists dead letters.
func (c *listCmd) Run(ctx context.Context, std *output.Streams) error {
	chosen, err := c.selection(time.Now(), &c.GroupFlags)
	if err != nil {
		return err
	}
	opened, err := c.open(ctx, std)
	if err != nil {
		return err
	}
	defer opened.close()
	s := opened.scan(std, chosen, false)
	list := newLetterList(std.Out, c.JSON())
	err = s.Each(ctx, list.print)
	s.shown.Done()
	if err != nil {
		return err
	}
	return errors.Join(list.end(s.nothing("no dead letters\n")), s.finish(std))
}

// letterList prints dead letters as they come.
type letterList struct {
	out    io.Writer
	asJSON bool
	lines  *output.JSONLines
	table  *output.Table
	now    time.Time
	n      int
}

func newLetterList(w io.Writer, asJSON bool) *letterList {
	return &letterList{
		out: w, asJSON: asJSON, lines: output.NewJSONLines(w), now: time.Now(),
		table: output.NewTable(w, "ACCOUNT", output.Column{Name: "DLQ", Width: 9}, output.Column{Name: "STATUS", Width: 9},
			output.Column{Name: "CLASS", Width: 20}, output.Column{Name: "ACCOUNT", Width: 14},
			output.Column{Name: "VERSION", Width: 7, Right: true}, output.Column{Name: "AGE", Width: 7}),
	}
}

func (l *letterList) print(d *replay.DeadLetter) error {
	l.n++
	if l.asJSON {
		return l.lines.Write(document(d))
	}
	if l.n == 1 {
		l.table.Header()
	}
	e := &d.Entry
	l.table.Row(placeOf(e), string(d.Status), string(e.Class), output.OrDash(e.AccountID),
		output.VersionText(e.Received), output.AgeText(l.now.Sub(e.FailedAt)))
	return nil
}

// end finishes the list; nothing is what is said when there was none.
func (l *letterList) end(nothing string) error {
	if l.asJSON {
		return l.lines.Flush()
	}
	if l.n == 0 {
		_, err := fmt.Fprint(l.out, nothing)
		return err
	}
	return l.table.Flush()
}
