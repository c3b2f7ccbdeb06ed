package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// rebuildCheckDocument says in JSON whether a rebuild can end well.
type rebuildCheckDocument struct {
	Topic      string                    `json:"topic"`
	Complete   bool                      `json:"complete"`
	Reasons    []string                  `json:"reasons"`
	Partitions []rebuildCheckedPartition `json:"partitions"`
}

type rebuildCheckedPartition struct {
	Partition     int32   `json:"partition"`
	LogStart      int64   `json:"log_start"`
	End           int64   `json:"end"`
	CleanupPolicy *string `json:"cleanup_policy"`
}

// look only looks whether a rebuild can end well.
func (r *rebuilding) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	reasons, err := r.obstacles(ctx)
	if err != nil {
		return err
	}
	d := rebuildCheckDocument{
		Topic: r.cmd.Topic, Complete: len(reasons) == 0, Reasons: append([]string{}, reasons...), Partitions: []rebuildCheckedPartition{},
	}
	for _, number := range slices.Sorted(maps.Keys(r.topic.starts)) {
		d.Partitions = append(d.Partitions, rebuildCheckedPartition{
			Partition: number, LogStart: r.topic.starts[number], End: r.topic.ends[number], CleanupPolicy: orNull(r.policy),
		})
	}
	if err := r.printCheck(&d); err != nil {
		return err
	}
	switch len(reasons) {
	case 0:
		return nil
	case 1:
		return refusef("a rebuild cannot end well: %s", reasons[0])
	default:
		return refusef("a rebuild cannot end well, for %d reasons; the first: %s", len(reasons), reasons[0])
	}
}

func (r *rebuilding) printCheck(d *rebuildCheckDocument) error {
	if r.cmd.json() {
		return printJSON(r.std.out, d)
	}
	t := newTable(r.std.out, "POLICY", column{name: "PARTITION", width: 9, right: true}, column{name: "LOG START", width: 12, right: true},
		column{name: "END", width: 12, right: true}, column{name: "POLICY", width: 14})
	t.header()
	for _, p := range d.Partitions {
		policy := "-"
		if p.CleanupPolicy != nil {
			policy = *p.CleanupPolicy
		}
		t.row(strconv.Itoa(int(p.Partition)), strconv.FormatInt(p.LogStart, 10), strconv.FormatInt(p.End, 10), policy)
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, reason := range d.Reasons {
		if _, err := fmt.Fprintln(r.std.out, reason); err != nil {
			return err
		}
	}
	if !d.Complete {
		return nil
	}
	_, err := fmt.Fprintf(r.std.out, "all balances can be rebuilt from topic %s; the database needs room for about %d MiB more meanwhile, "+
		"which is not checked\n", d.Topic, r.needs>>20+1)
	return err
}
