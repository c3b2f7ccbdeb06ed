package rebuild

import (
	"context"

	"projector/internal/cli/change"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
)

// rebuildCheckDocument says in JSON whether a rebuild can succeed.
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

// checked is the plan of --check, which never changes anything.
type checked struct {
	*rebuilding
	document rebuildCheckDocument
}

// check makes the plan of --check, which only says whether a rebuild can succeed.
func (r *rebuilding) check(ctx context.Context) (change.Plan, error) {
	if r.on.Whole {
		return nil, errChecks
	}
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	reasons, err := r.obstacles(ctx)
	if err != nil {
		return nil, err
	}
	d := rebuildCheckDocument{
		Topic: r.cmd.Topic, Complete: len(reasons) == 0, Reasons: append([]string{}, reasons...), Partitions: []rebuildCheckedPartition{},
	}
	for _, log := range r.topic.Partitions {
		d.Partitions = append(d.Partitions, rebuildCheckedPartition{log.Partition, log.Start, log.End, output.OrNull(r.policy)})
	}
	return &checked{r, d}, nil
}

func (*checked) Hash(context.Context, *change.Hash) error { return errChecks }

func (*checked) Do(context.Context) error { return errChecks }

func (p *checked) Print(context.Context, bool) error {
	if err := p.printCheck(&p.document); err != nil {
		return err
	}
	switch reasons := p.document.Reasons; len(reasons) {
	case 0:
		return nil
	case 1:
		return exit.Refusef("a rebuild cannot end well: %s", reasons[0])
	default:
		return exit.Refusef("a rebuild cannot end well, for %d reasons; the first: %s", len(reasons), reasons[0])
	}
}

func (r *rebuilding) printCheck(d *rebuildCheckDocument) error {
	if r.cmd.JSON() {
		return output.PrintJSON(r.on.Std.Out, d)
	}
	t := output.NewTable(r.on.Std.Out, "POLICY", output.Right("PARTITION", 9), output.Right("LOG START", 12),
		output.Right("END", 12), output.Left("POLICY", 14))
	for _, p := range d.Partitions {
		t.Row(p.Partition, p.LogStart, p.End, p.CleanupPolicy)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, reason := range d.Reasons {
		r.on.Std.Printf("%s\n", reason)
	}
	if !d.Complete {
		return nil
	}
	if r.lacksBeginning() {
		r.on.Std.Printf("the topic has lost its beginning; every account starts with its opening\n")
	}
	r.on.Std.Printf("all %s can be rebuilt from topic %s; the database needs room for about %d MiB more meanwhile, "+
		"which is not checked\n", rebuiltName(r.cmd.kind), d.Topic, r.needs>>20+1)
	return nil
}
