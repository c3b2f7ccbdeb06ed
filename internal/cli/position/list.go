// Package position has the commands about positions in the topic: position and lag.
package position

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"projector/internal/cli/connect"
	"projector/internal/cli/margin"
	"projector/internal/cli/output"
	"projector/internal/cli/projections"
	"projector/internal/telemetry"
)

// Cmd are the commands about positions.
type Cmd struct {
	List   positionListCmd `cmd:"" default:"withargs" help:"Show where every partition stands, why it does not continue, and how soon retention overtakes it."`
	Set    setCmd          `cmd:"" help:"Set where a partition continues."`
	Remove removeCmd       `cmd:"" help:"Remove the positions of a consumer group that is no longer used."`
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
	number := func(name string) output.Column { return output.Right(name, 10) }
	rows := c.Rows(std.Out, "", output.Right("PARTITION", 9), number("POSITION"), number("LOG START").Optional(),
		number("END"), number("MARGIN"), output.Right("LASTS", 7), output.Left("STATE", 12))
	for i := range partitions {
		if err := rows.Add(positionRow{&partitions[i], c.Topic}); err != nil {
			return err
		}
	}
	if err := rows.End(""); err != nil || c.JSON() {
		return err
	}
	var reasons []telemetry.PartitionReason
	for i := range partitions {
		if p := &partitions[i]; p.reason != "" {
			reasons = append(reasons, telemetry.PartitionReason{Partition: p.partition, Reason: p.reason})
		}
	}
	for _, shared := range telemetry.ShareReasons(reasons) {
		if _, err := fmt.Fprintf(std.Out, "%s: %s\n", shared.Heading(), output.Printable(shared.Reason)); err != nil {
			return err
		}
	}
	return printOwners(std.Out, partitions)
}

// printOwners has a line for each owner, with its partitions: of any width, they would leave
// a table no room.
func printOwners(w io.Writer, partitions []partitionPosition) error {
	var owners []string
	owned := map[string][]string{}
	for i := range partitions {
		p := &partitions[i]
		if p.owner == "" {
			continue
		}
		if owned[p.owner] == nil {
			owners = append(owners, p.owner)
		}
		owned[p.owner] = append(owned[p.owner], strconv.Itoa(int(p.partition)))
	}
	for _, owner := range owners {
		if _, err := fmt.Fprintf(w, "owned by %s: %s\n", output.Printable(owner), strings.Join(owned[owner], ", ")); err != nil {
			return err
		}
	}
	return nil
}

// positionRow is where one partition stands.
type positionRow struct {
	*partitionPosition
	topic string
}

// Document implements output.Row.
func (r positionRow) Document() any { return r.document(r.topic) }

// Cells implements output.Row.
func (r positionRow) Cells() []string {
	d := r.document(r.topic)
	return []string{
		strconv.Itoa(int(r.partition)), output.VersionText(d.Position), output.OffsetText(d.LogStart), output.OffsetText(d.End),
		output.VersionText(d.MarginRecords), r.lasts(), d.State,
	}
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
		State: string(p.state), Reason: output.OrNull(p.reason), Owner: output.OrNull(p.owner),
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
	if !p.waits {
		return nil
	}
	return margin.Left(retention, p.age)
}
