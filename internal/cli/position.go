package cli

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
)

// positionCmd are the commands about positions.
type positionCmd struct {
	List positionListCmd `cmd:"" default:"withargs" help:"Show where every partition stands, why it does not go on, and how soon retention overtakes it."`
	Set  positionSetCmd  `cmd:"" help:"Set where a partition goes on."`
}

type positionListCmd struct {
	kafkaFlags
	databaseFlags
	groupFlags
	logFlags
	outputFlags
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
func (c *positionListCmd) Run(ctx context.Context, std *streams) error {
	if err := c.validate(); err != nil {
		return err
	}
	log, err := c.logger(std.err)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	pool, client, err := connect(ctx, &c.databaseFlags, &c.kafkaFlags, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	defer client.Close()
	view := newPositionView(pool, client, c.group(), c.Topic)
	partitions, err := view.read(ctx)
	if err != nil {
		return err
	}
	for _, remark := range view.remarks {
		_, _ = fmt.Fprintln(std.err, remark)
	}
	if err := c.print(std, partitions); err != nil {
		return err
	}
	lost := view.lag.unread(lags(partitions))
	return lost.explain(std.err)
}

func (c *positionListCmd) print(std *streams, partitions []partitionPosition) error {
	if c.json() {
		lines := newJSONLines(std.out)
		for i := range partitions {
			if err := lines.write(partitions[i].document(c.Topic)); err != nil {
				return err
			}
		}
		return lines.flush()
	}
	number := func(name string) column { return column{name: name, width: 10, right: true} }
	t := newTable(std.out, "OWNER", column{name: "PARTITION", width: 9, right: true}, number("POSITION"), number("LOG START"),
		number("END"), number("MARGIN"), column{name: "LASTS", width: 7, right: true}, column{name: "STATE", width: 7},
		column{name: "OWNER", width: 20})
	t.header()
	for i := range partitions {
		p := &partitions[i]
		d := p.document(c.Topic)
		t.row(strconv.Itoa(int(p.partition)), versionText(d.Position), offsetText(d.LogStart), offsetText(d.End),
			versionText(d.MarginRecords), p.lasts(), d.State, orDash(p.owner))
	}
	if err := t.flush(); err != nil {
		return err
	}
	for i := range partitions {
		if p := &partitions[i]; p.reason != "" {
			if _, err := fmt.Fprintf(std.out, "partition %d: %s\n", p.partition, p.reason); err != nil {
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
	return ageText(*p.margin)
}

func (p *partitionPosition) document(topic string) positionDocument {
	d := positionDocument{
		Topic: topic, Partition: p.partition, Position: p.position, End: p.end, LagRecords: p.records,
		State: p.state, Reason: orNull(p.reason), Owner: orNull(p.owner),
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
