package dlq

import (
	"context"
	"errors"
	"time"

	"projector/internal/cli/output"
	"projector/internal/replay"
)

type listCmd struct {
	readFlags
}

type deadLetterDocument struct {
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

func document(d *replay.DeadLetter) deadLetterDocument {
	e := &d.Entry
	return deadLetterDocument{
		DLQPartition: e.DLQPartition, DLQOffset: e.DLQOffset, Class: string(e.Class), Status: string(d.Status),
		AccountID: output.OrNull(e.AccountID), EventID: output.OrNull(e.EventID),
		ExpectedVersion: e.Expected, ReceivedVersion: e.Received,
		Topic: e.Topic, Partition: e.Partition, Offset: e.Offset,
		FailedAt: output.TimeText(e.FailedAt), Replays: d.Replays, Message: e.Message,
	}
}

func (c *listCmd) Run(ctx context.Context, std *output.Streams) error {
	s, done, err := c.reading(ctx, std)
	if err != nil {
		return err
	}
	defer done()
	rows, now := letterRows(std, &c.Flags), time.Now()
	err = s.Each(ctx, func(d *replay.DeadLetter) error { rows.Add(document(d), letterCells(d, now)...); return rows.Err() })
	s.shown.Done()
	if err != nil {
		return err
	}
	return errors.Join(rows.End(s.emptyResult(c.nothing())), s.finish(ctx, std))
}

func letterRows(std *output.Streams, how *output.Flags) *output.Rows {
	return how.Rows(std.Out, "ACCOUNT", output.Left("DLQ", 9), output.Left("STATUS", 9),
		output.Left("CLASS", 20), output.Left("ACCOUNT", 14),
		output.Right("VERSION", 7).Optional(), output.Left("AGE", 7))
}

func letterCells(d *replay.DeadLetter, now time.Time) []any {
	e := &d.Entry
	return []any{placeOf(e), d.Status, e.Class, e.AccountID, e.Received, output.AgeText(now.Sub(e.FailedAt))}
}
