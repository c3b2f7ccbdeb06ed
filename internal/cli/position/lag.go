package position

import (
	"context"
	"errors"
	"slices"
	"time"

	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
)

// LagCmd is the command lag.
type LagCmd struct {
	Watch     bool          `help:"Repeat until Ctrl-C."`
	UntilZero bool          `help:"Repeat until nothing is left."`
	Interval  time.Duration `default:"2s" placeholder:"DURATION" help:"Interval of --watch (default 2s)."`
	viewFlags
}

type lagDocument struct {
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Position   *int64   `json:"position"`
	End        *int64   `json:"end"`
	LagRecords *int64   `json:"lag_records"`
	LagSeconds *float64 `json:"lag_seconds"`
	State      string   `json:"state"`
	Reason     *string  `json:"reason"`
}

// Run shows the lag one time, or repeatedly until the command is stopped.
func (c *LagCmd) Run(ctx context.Context, std *output.Streams) error {
	if c.Interval <= 0 {
		return exit.Usagef("--interval (PROJECTOR_INTERVAL): must be more than 0")
	}
	until := time.Now().Add(flags.OneShotWithin) // for opening and the first result together
	opening, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	view, err := c.open(opening, std)
	if err != nil {
		return err
	}
	defer view.close()
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for first := true; ; first = false {
		left, err := c.show(ctx, std, view, until)
		switch {
		case !first && ctx.Err() != nil:
			return c.stopped(ctx)
		case !c.Watch && !c.UntilZero, errors.As(err, new(outputError)), first && err != nil && !errors.As(err, new(partialError)):
			return err
		case err != nil: // it continues, because a person may be watching an outage
			std.Notef("projector: %s\n", errclass.Safe(err))
		case c.UntilZero && !left:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return c.stopped(ctx)
		}
		until = time.Now().Add(flags.OneShotWithin)
	}
}

// stopped returns the result of a command that a person has stopped. With --until-zero something may
// be left, and what follows && in a script must not run.
func (c *LagCmd) stopped(ctx context.Context) error {
	if c.UntilZero {
		return ctx.Err()
	}
	return nil
}

// outputError says that a result could not be written, usually because the program that reads the
// output has ended.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

// show reads the lag and prints it. It fails if it has not read the lag at the time until. It returns
// whether there are records that are not processed yet. It returns a partialError if a part of the
// lag is not known.
func (c *LagCmd) show(ctx context.Context, std *output.Streams, view *view, until time.Time) (left bool, err error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	status, err := view.read(ctx)
	if err != nil {
		return true, err
	}
	view.findOwners(ctx, status)
	if err := c.print(std, status); err != nil {
		return true, outputError{err}
	}
	for i := range status.partitions {
		left = left || status.partitions[i].left()
	}
	return left, status.incomplete(std)
}

func (c *LagCmd) print(std *output.Streams, status *status) error {
	if !c.JSON() && c.Watch && output.MovesCursor(std.Out) {
		output.Control(std.Out, "\x1b[H\x1b[2J") // clears the screen
	}
	for _, remark := range slices.Concat(status.remarks, status.reasons()) {
		std.Notef("%s\n", remark)
	}
	if free := status.free(); !c.JSON() && free != "" {
		std.Notef("%s\n", free) // a partition is running also while no instance owns it
	}
	number := func(name string) output.Column { return output.Right(name, 12) }
	rows := c.Rows(std.Out, "", output.Right("PARTITION", 9), number("POSITION"), number("END"),
		number("RECORDS"), output.Right("BEHIND", 8), output.Left("STATE", 12))
	records, age := new(int64), new(time.Duration)
	for i := range status.partitions {
		p := &status.partitions[i]
		d := lagDocument{
			Topic: c.Topic, Partition: p.number, Position: p.position, End: p.end, LagRecords: p.records, LagSeconds: output.Seconds(p.age),
			State: string(p.state), Reason: output.OrNull(p.reason),
		}
		rows.Add(d, p.number, p.position, output.OffsetText(p.end), output.OffsetText(p.records), lagText(p.age), p.state)
		records = together(records, p.records, func(a, b int64) int64 { return a + b })
		age = together(age, p.age, func(a, b time.Duration) time.Duration { return max(a, b) })
	}
	rows.Total("total", " ", " ", output.OffsetText(records), lagText(age), " ")
	return rows.End("")
}

// together combines two values. The result is nil if one of the values is nil.
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
