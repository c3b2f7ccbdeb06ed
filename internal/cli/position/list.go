// Package position has the commands about positions in the topic: position and lag.
package position

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"projector/internal/cli/connect"
	"projector/internal/cli/output"
	"projector/internal/cli/projections"
)

// Cmd are the commands about positions.
type Cmd struct {
	List positionListCmd `cmd:"" default:"withargs" help:"Show where every partition stands, why it does not go on, and how soon retention overtakes it."`
	Set  positionSetCmd  `cmd:"" help:"Set where a partition goes on."`
}

type positionListCmd struct {
	connect.KafkaFlags
	connect.DatabaseFlags
	projections.GroupFlags
	output.LogFlags
	output.Flags
}

// positionDocument is where a partition stands, in JSON.
type positionDocument struct {
	Topic         string   `json:"topic"`
	Partition     int32    `json:"partition"`
	Position      *int64   `json:"position"`
	LogStart      *int64   `json:"log_start"`
	End           *int64   `json:"end"`
	LagRecords    *int64   `json:"lag_records"`
	MarginRecords *int64   `json:"margin_records"`
	MarginSeconds *float64 `json:"margin_seconds"`
	State         string   `json:"state"`
	Reason        *string  `json:"reason"`
	Owner         *string  `json:"owner"`
}

// Run shows where the partitions stand.
func (c *positionListCmd) Run(ctx context.Context, std *output.Streams) error {
	if err := c.Check(); err != nil {
		return err
	}
	log, err := c.Logger(std.Err)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
	defer cancel()
	pool, client, err := connect.Both(ctx, &c.DatabaseFlags, &c.KafkaFlags, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	defer client.Close()
	view := newPositionView(pool, client, c.GroupName(), c.Topic)
	partitions, err := view.read(ctx)
	if err != nil {
		return err
	}
	for _, remark := range view.remarks {
		_, _ = fmt.Fprintln(std.Err, remark)
	}
	if err := c.print(std, partitions); err != nil {
		return err
	}
	lost := view.lag.unread(lags(partitions))
	return lost.Explain(std.Err)
}

func (c *positionListCmd) print(std *output.Streams, partitions []partitionPosition) error {
	if c.JSON() {
		lines := output.NewJSONLines(std.Out)
		for i := range partitions {
			if err := lines.Write(partitions[i].document(c.Topic)); err != nil {
				return err
			}
		}
		return lines.Flush()
	}
	number := func(name string) output.Column { return output.Column{Name: name, Width: 10, Right: true} }
	t := output.NewTable(std.Out, "OWNER", output.Column{Name: "PARTITION", Width: 9, Right: true}, number("POSITION"), number("LOG START"),
		number("END"), number("MARGIN"), output.Column{Name: "LASTS", Width: 7, Right: true}, output.Column{Name: "STATE", Width: 7},
		output.Column{Name: "OWNER", Width: 20})
	t.Header()
	for i := range partitions {
		p := &partitions[i]
		d := p.document(c.Topic)
		t.Row(strconv.Itoa(int(p.partition)), output.VersionText(d.Position), output.OffsetText(d.LogStart), output.OffsetText(d.End),
			output.VersionText(d.MarginRecords), p.lasts(), d.State, output.OrDash(p.owner))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range partitions {
		if p := &partitions[i]; p.reason != "" {
			if _, err := fmt.Fprintf(std.Out, "partition %d: %s\n", p.partition, p.reason); err != nil {
				return err
			}
		}
	}
	return nil
}

// lasts is the margin as time.
func (p *partitionPosition) lasts() string {
	if p.margin == nil {
		return "-"
	}
	return output.AgeText(*p.margin)
}

func (p *partitionPosition) document(topic string) positionDocument {
	d := positionDocument{
		Topic: topic, Partition: p.partition, Position: p.position, End: p.end, LagRecords: p.records,
		State: p.state, Reason: output.OrNull(p.reason), Owner: output.OrNull(p.owner),
	}
	if p.end != nil {
		d.LogStart = &p.start
		if p.position != nil {
			d.MarginRecords = new(*p.position - p.start)
		}
	}
	if p.margin != nil {
		d.MarginSeconds = new(math.Round(p.margin.Seconds()*1000) / 1000)
	}
	return d
}

// lags is the lag that is part of each position.
func lags(partitions []partitionPosition) []partitionLag {
	parts := make([]partitionLag, len(partitions))
	for i := range partitions {
		parts[i] = partitions[i].partitionLag
	}
	return parts
}

// marginOf is how long the first unread record, of an age, is safe from retention.
func marginOf(retention *time.Duration, p *partitionLag) *time.Duration {
	if retention == nil || p.age == nil || !p.waits {
		return nil
	}
	return new(max(0, *retention-*p.age))
}
