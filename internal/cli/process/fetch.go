package process

import (
	"context"
	"iter"
	"time"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/outbox"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/repair"
)

type outboxFlags struct {
	flags.OutboxFlags
	OutboxAfter time.Duration `env:"OUTBOX_AFTER" default:"1m" placeholder:"DURATION" group:"Outbox" help:"How long a missing version is waited for before the outbox is asked for it (default 1m)."`
}

func (f *outboxFlags) validate(projection string) error {
	switch {
	case f.OutboxURL != "" && projection != readmodel.BalanceName:
		return exit.Usagef("--outbox-url (OUTBOX_URL): missing events are fetched for --projection=%s only, not for %s; leave it out",
			readmodel.BalanceName, projection)
	case f.OutboxAfter < 0:
		return exit.Usagef("--outbox-after (OUTBOX_AFTER): must not be negative")
	}
	_, err := f.Outbox()
	return err
}

// fetching makes the Fetcher if there is an outbox.
func (p *Process) fetching() error {
	client, err := p.cmd.Outbox()
	if client == nil || err != nil {
		return err
	}
	decisions := readmodel.NewDecisions(p.pool, p.kind)
	p.fetcher = outbox.NewFetcher(outbox.Config{
		Outbox: client, Formats: p.formats,
		Store: repair.New(readmodel.RepairConfig{Pool: p.pool, Formats: p.formats, FirstVersion: p.cmd.FirstVersion, Ends: p.ends, Decisions: decisions}),
		Missing: func(ctx context.Context, f accountdb.MissingFilter) iter.Seq2[accountdb.Missing, error] {
			f.Decisions = decisions
			return accountdb.MissingVersions(ctx, p.pool, f)
		},
		After: p.cmd.OutboxAfter, Topic: p.cmd.Topic, Group: p.cmd.GroupName(), Partitions: p.working, Actor: p.owner,
		Retry: p.retry, Observer: p.metrics, Log: p.log,
	})
	return nil
}

// working returns the claimed partitions of this instance that have no problem. It leaves out those
// that are stopped, paused or retrying.
func (p *Process) working() (partitions []int32) {
	for _, s := range p.PartitionStatus() {
		if s.Claimed && s.State.Working() {
			partitions = append(partitions, s.Partition)
		}
	}
	return partitions
}

// ends returns the last known ends of the partitions of this instance.
func (p *Process) ends(context.Context, string) map[int32]int64 {
	ends := map[int32]int64{}
	for _, s := range p.PartitionStatus() {
		if s.LagKnown {
			ends[s.Partition] = s.End
		}
	}
	return ends
}
