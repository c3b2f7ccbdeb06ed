package main

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
	End        int64    `json:"end"`
	LagRecords int64    `json:"lag_records"`
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
	if err := c.look(within, std, view); err != nil || !c.Watch {
		return err
	}
	return c.watch(ctx, std, view)
}

func (c *lagCmd) validate() error {
	if c.Interval <= 0 {
		return usagef("--interval (PROJECTOR_INTERVAL): must be more than 0")
	}
	return c.groupFlags.validate()
}

// watch looks again and again. A look that fails is told and the next one tried:
// the outage is what somebody is watching.
func (c *lagCmd) watch(ctx context.Context, std *streams, view *lagView) error {
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil // the usual way to end it
		}
		within, cancel := context.WithTimeout(ctx, oneShotWithin)
		err := c.look(within, std, view)
		cancel()
		var wrote outputError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &wrote):
			return err
		case err != nil:
			_, _ = fmt.Fprintf(std.err, "projector: %s\n", errclass.Safe(err))
		}
	}
}

// outputError says that a result could not be written: nobody reads it any more.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

// look reads the lag and prints it.
func (c *lagCmd) look(ctx context.Context, std *streams, view *lagView) error {
	partitions, err := view.read(ctx)
	if err != nil {
		return err
	}
	if err := c.print(std, view, partitions); err != nil {
		return outputError{err}
	}
	return nil
}

func (c *lagCmd) print(std *streams, view *lagView, partitions []partitionLag) error {
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
	if c.Watch && movesCursor(std.out) {
		_, _ = fmt.Fprint(std.out, "\x1b[H\x1b[2J") // from the top of an empty screen
	}
	return c.printTable(std, partitions)
}

func (c *lagCmd) printTable(std *streams, partitions []partitionLag) error {
	number := func(name string) column { return column{name: name, width: 12, right: true} }
	t := newTable(std.out, "", column{name: "PARTITION", width: 9, right: true}, number("POSITION"), number("END"),
		number("RECORDS"), column{name: "BEHIND", width: 8, right: true})
	t.header()
	var (
		records int64
		age     = new(time.Duration)
	)
	for i := range partitions {
		p := &partitions[i]
		t.row(strconv.Itoa(int(p.partition)), versionText(p.position), strconv.FormatInt(p.end, 10),
			strconv.FormatInt(p.records, 10), lagText(p.age))
		records += p.records
		if p.age == nil || age == nil {
			age = nil
		} else {
			age = new(max(*age, *p.age))
		}
	}
	t.row("total", "", "", strconv.FormatInt(records, 10), lagText(age))
	return t.flush()
}

// lagText is an age; a dash when it is not known.
func lagText(age *time.Duration) string {
	if age == nil {
		return "-"
	}
	return ageText(*age)
}
