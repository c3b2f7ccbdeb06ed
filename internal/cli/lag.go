package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"projector/errclass"
)

type lagCmd struct {
	Watch    bool          `help:"Look again and again until Ctrl-C."`
	Interval time.Duration `default:"2s" placeholder:"DURATION" help:"Time between two looks of --watch (default 2s)."`
	kafkaFlags
	databaseFlags
	groupFlags
	logFlags
	outputFlags
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
func (c *lagCmd) Run(ctx context.Context, std *streams) error {
	if err := c.validate(); err != nil {
		return err
	}
	log, err := c.logger(std.err)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	pool, client, err := connect(within, &c.databaseFlags, &c.kafkaFlags, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	defer client.Close()
	view := newLagView(pool, client, c.group(), c.Topic)
	err = c.look(within, std, view)
	var some incompleteError
	if !c.Watch || err != nil && !errors.As(err, &some) {
		return err
	}
	return c.watch(ctx, std, view, err)
}

func (c *lagCmd) validate() error {
	if c.Interval <= 0 {
		return usagef("--interval (PROJECTOR_INTERVAL): must be more than 0")
	}
	return c.groupFlags.validate()
}

// watch looks again and again. A look that fails is told and the next one tried:
// the outage is what somebody is watching. err is that of the look before.
func (c *lagCmd) watch(ctx context.Context, std *streams, view *lagView, err error) error {
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for {
		if err != nil {
			_, _ = fmt.Fprintf(std.err, "projector: %s\n", errclass.Safe(err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil // the usual way to end it
		}
		within, cancel := context.WithTimeout(ctx, oneShotWithin)
		err = c.look(within, std, view)
		cancel()
		var wrote outputError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &wrote):
			return err
		}
	}
}

// outputError says that a result could not be written: nobody reads it any more.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

// look reads the lag and prints it. It answers an incompleteError when not all of it is
// known.
func (c *lagCmd) look(ctx context.Context, std *streams, view *lagView) error {
	partitions, err := view.read(ctx)
	if err != nil {
		return err
	}
	if err := c.print(std, view, partitions); err != nil {
		return outputError{err}
	}
	lost := view.unread(partitions)
	return lost.explain(std.err)
}

func (c *lagCmd) print(std *streams, view *lagView, partitions []partitionLag) error {
	if !c.json() && c.Watch && movesCursor(std.out) {
		_, _ = fmt.Fprint(std.out, "\x1b[H\x1b[2J") // from the top of an empty screen
	}
	for _, remark := range view.remarks(partitions) {
		_, _ = fmt.Fprintln(std.err, remark)
	}
	if c.json() {
		lines := newJSONLines(std.out)
		for i := range partitions {
			if err := lines.write(partitions[i].document(c.Topic)); err != nil {
				return err
			}
		}
		return lines.flush()
	}
	return c.printTable(std, partitions)
}

func (c *lagCmd) printTable(std *streams, partitions []partitionLag) error {
	number := func(name string) column { return column{name: name, width: 12, right: true} }
	t := newTable(std.out, "", column{name: "PARTITION", width: 9, right: true}, number("POSITION"), number("END"),
		number("RECORDS"), column{name: "BEHIND", width: 8, right: true})
	t.header()
	records, age := new(int64), new(time.Duration)
	for i := range partitions {
		p := &partitions[i]
		t.row(strconv.Itoa(int(p.partition)), versionText(p.position), offsetText(p.end), offsetText(p.records), lagText(p.age))
		records = together(records, p.records, func(a, b int64) int64 { return a + b })
		age = together(age, p.age, func(a, b time.Duration) time.Duration { return max(a, b) })
	}
	t.row("total", "", "", offsetText(records), lagText(age))
	return t.flush()
}

// together is not known when one of both is not.
func together[T any](a, b *T, do func(a, b T) T) *T {
	if a == nil || b == nil {
		return nil
	}
	return new(do(*a, *b))
}

// notKnown is what a table has in the place of what Kafka could not be asked for.
const notKnown = "?"

func offsetText(offset *int64) string {
	if offset == nil {
		return notKnown
	}
	return strconv.FormatInt(*offset, 10)
}

func lagText(age *time.Duration) string {
	if age == nil {
		return notKnown
	}
	return ageText(*age)
}
