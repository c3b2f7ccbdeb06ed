package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

type dlqListCmd struct {
	dlqFlags
	filterFlags
	outputFlags
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

func (d *deadLetter) document() letterDocument {
	e := &d.entry
	return letterDocument{
		DLQPartition: e.DLQPartition, DLQOffset: e.DLQOffset, Class: string(e.Class), Status: string(d.status),
		AccountID: orNull(e.AccountID), EventID: orNull(e.EventID),
		ExpectedVersion: e.Expected, ReceivedVersion: e.Received,
		Topic: e.Topic, Partition: e.Partition, Offset: e.Offset,
		FailedAt: timeText(e.FailedAt), Replays: d.replays, Message: e.Message,
	}
}

// Run lists dead letters.
func (c *dlqListCmd) Run(ctx context.Context, std *streams) error {
	chosen, err := c.selection(time.Now(), &c.groupFlags)
	if err != nil {
		return err
	}
	tools, err := c.open(ctx, std)
	if err != nil {
		return err
	}
	defer tools.close()
	s := &scan{dlqTools: tools, selection: chosen, progress: newProgress(std.err, "read")}
	list := newLetterList(std.out, c.json())
	err = s.each(ctx, list.print)
	s.progress.done()
	if err != nil {
		return err
	}
	return errors.Join(list.end(s.nothing("no dead letters\n")), s.finish(std))
}

// nothing is what is said when there was nothing: not when it is not known.
func (s *scan) nothing(text string) string {
	if len(s.unread.lost) > 0 {
		return ""
	}
	return text
}

// letterList prints dead letters as they come.
type letterList struct {
	out    io.Writer
	asJSON bool
	lines  *jsonLines
	table  *table
	now    time.Time
	n      int
}

func newLetterList(w io.Writer, asJSON bool) *letterList {
	return &letterList{
		out: w, asJSON: asJSON, lines: newJSONLines(w), now: time.Now(),
		table: newTable(w, "ACCOUNT", column{name: "DLQ", width: 9}, column{name: "STATUS", width: 9},
			column{name: "CLASS", width: 20}, column{name: "ACCOUNT", width: 14},
			column{name: "VERSION", width: 7, right: true}, column{name: "AGE", width: 7}),
	}
}

func (l *letterList) print(d *deadLetter) error {
	l.n++
	if l.asJSON {
		return l.lines.write(d.document())
	}
	if l.n == 1 {
		l.table.header()
	}
	e := &d.entry
	l.table.row(placeText(e.DLQPartition, e.DLQOffset), string(d.status), string(e.Class), orDash(e.AccountID),
		versionText(e.Received), ageText(l.now.Sub(e.FailedAt)))
	return nil
}

// end finishes the list; nothing is what is said when there was none.
func (l *letterList) end(nothing string) error {
	if l.asJSON {
		return l.lines.flush()
	}
	if l.n == 0 {
		_, err := fmt.Fprint(l.out, nothing)
		return err
	}
	return l.table.flush()
}

func placeText(partition int32, offset int64) string { return fmt.Sprintf("%d/%d", partition, offset) }

func versionText(version *int64) string {
	if version == nil {
		return "-"
	}
	return strconv.FormatInt(*version, 10)
}
