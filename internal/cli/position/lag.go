package position

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"projector/errclass"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/internal/cli/projections"
	"projector/internal/cli/unread"
)

// LagCmd is the command lag.
type LagCmd struct {
	Watch     bool          `help:"Repeat until Ctrl-C."`
	UntilZero bool          `help:"Repeat until nothing is left."`
	Interval  time.Duration `default:"2s" placeholder:"DURATION" help:"Interval of --watch (default 2s)."`
	connect.KafkaFlags
	connect.DatabaseFlags
	projections.GroupFlags
	output.LogFlags
	output.Flags
}

// lagDocument is the lag of one partition in JSON.
type lagDocument struct {
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Position   *int64   `json:"position"`
	End        *int64   `json:"end"`
	LagRecords *int64   `json:"lag_records"`
	LagSeconds *float64 `json:"lag_seconds"`
}

// Run shows the lag once, or until it is stopped.
func (c *LagCmd) Run(ctx context.Context, std *output.Streams) error {
	if err := c.validate(); err != nil {
		return err
	}
	log, err := c.Logger(std.Err)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
	defer cancel()
	pool, client, err := connect.Both(within, &c.DatabaseFlags, &c.KafkaFlags, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	defer client.Close()
	view := newLagView(pool, client, c.GroupName(), c.Topic)
	left, err := c.look(within, std, view)
	var some unread.Error
	if !c.Watch && !c.UntilZero || c.UntilZero && err == nil && !left || err != nil && !errors.As(err, &some) {
		return err
	}
	return c.watch(ctx, std, view, err)
}

func (c *LagCmd) validate() error {
	if c.Interval <= 0 {
		return exit.Usagef("--interval (PROJECTOR_INTERVAL): must be more than 0")
	}
	return c.Check()
}

// watch looks again and again. A look that fails is told and the next one tried:
// the outage is what somebody is watching. err is that of the look before.
func (c *LagCmd) watch(ctx context.Context, std *output.Streams, view *lagView, err error) error {
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for {
		if err != nil {
			_, _ = fmt.Fprintf(std.Err, "projector: %s\n", errclass.Safe(err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil // the usual way to end it
		}
		within, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
		var left bool
		left, err = c.look(within, std, view)
		cancel()
		var wrote outputError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &wrote):
			return err
		case c.UntilZero && err == nil && !left:
			return nil
		}
	}
}

// outputError says that a result could not be written: nobody reads it any more.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

// look reads the lag and prints it, and reports whether records are left to project. It
// answers an unread.Error when not all of it is known.
func (c *LagCmd) look(ctx context.Context, std *output.Streams, view *lagView) (left bool, err error) {
	partitions, err := view.read(ctx)
	if err != nil {
		return true, err
	}
	if err := c.print(std, view, partitions); err != nil {
		return true, outputError{err}
	}
	lost := view.unread(partitions)
	return slices.ContainsFunc(partitions, partitionLag.left), lost.Explain(std.Err)
}

func (c *LagCmd) print(std *output.Streams, view *lagView, partitions []partitionLag) error {
	if !c.JSON() && c.Watch && output.MovesCursor(std.Out) {
		output.Control(std.Out, "\x1b[H\x1b[2J") // from the top of an empty screen
	}
	for _, remark := range view.remarks(partitions) {
		_, _ = fmt.Fprintln(std.Err, remark)
	}
	number := func(name string) output.Column { return output.Right(name, 12) }
	rows := c.Rows(std.Out, "", output.Right("PARTITION", 9), number("POSITION"), number("END"),
		number("RECORDS"), output.Right("BEHIND", 8))
	records, age := new(int64), new(time.Duration)
	for i := range partitions {
		p := &partitions[i]
		if err := rows.Add(lagRow{p, c.Topic}); err != nil {
			return err
		}
		records = together(records, p.records, func(a, b int64) int64 { return a + b })
		age = together(age, p.age, func(a, b time.Duration) time.Duration { return max(a, b) })
	}
	rows.Total("total", "", "", output.OffsetText(records), lagText(age))
	return rows.End("")
}

// lagRow is the lag of one partition.
type lagRow struct {
	*partitionLag
	topic string
}

// Document implements output.Row.
func (r lagRow) Document() any { return r.document(r.topic) }

// Cells implements output.Row.
func (r lagRow) Cells() []string {
	return []string{
		strconv.Itoa(int(r.partition)), output.VersionText(r.position), output.OffsetText(r.end), output.OffsetText(r.records), lagText(r.age),
	}
}

// together is not known when one of both is not.
func together[T any](a, b *T, do func(a, b T) T) *T {
	if a == nil || b == nil {
		return nil
	}
	return new(do(*a, *b))
}

func lagText(age *time.Duration) string {
	if age == nil {
		return output.NotKnown
	}
	return output.AgeText(*age)
}
