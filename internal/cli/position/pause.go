package position

import (
	"context"
	"fmt"

	"projector/dlq"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/foureyes"
	"projector/internal/cli/output"
	"projector/projection"
	"projector/readmodel"
)

// PauseCmd is the command pause.
type PauseCmd struct {
	changeFlags
}

// ResumeCmd is the command resume.
type ResumeCmd struct {
	Through *int64 `placeholder:"N" help:"Records below this offset do not count for the breaker; 0: all do. Without this flag, the setting is unchanged."`
	changeFlags
}

// Run pauses partitions.
func (c *PauseCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	pause := fmt.Sprintf("paused by %s: %s", c.ActorName(), readmodel.Storable(c.Reason))
	return changeStandings(ctx, std, gate, &c.changeFlags, projection.StandingChange{Pause: pause}, "paused")
}

// Run resumes partitions.
func (c *ResumeCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	if c.Through != nil && *c.Through < 0 {
		return exit.Usagef("--through: must not be less than 0")
	}
	done := "resumed"
	if c.Through != nil {
		done = fmt.Sprintf("resumed, records below %d do not count for the breaker", *c.Through)
	}
	return changeStandings(ctx, std, gate, &c.changeFlags, projection.StandingChange{Through: c.Through}, done)
}

// changeStandings changes what the partitions do or, without --yes, says what they would do.
func changeStandings(
	ctx context.Context, std *output.Streams, gate *foureyes.Gate, f *changeFlags, change projection.StandingChange, done string,
) error {
	if err := f.validate(); err != nil {
		return err
	}
	log, err := f.Logger(std.Err)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
	defer cancel()
	pool, client, err := connect.Both(ctx, &f.DatabaseFlags, &f.KafkaFlags, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	defer client.Close()
	extents, topicID, err := f.chosen(ctx, dlq.NewReader(client, f.Topic))
	if err != nil {
		return err
	}
	logs := make([]readmodel.PartitionLog, len(extents))
	for i, e := range extents {
		logs[i] = readmodel.PartitionLog{Partition: e.Partition, TopicID: topicID, Start: e.Start}
	}
	standings, err := readmodel.PlanStandings(ctx, pool, f.of(), logs, change)
	if err != nil {
		return err
	}
	if f.Yes {
		if err := gate.Pass(ctx, pool, string(actionOf(change)), plannedStandings(f, logs, standings)); err != nil {
			return err
		}
		standings, err = readmodel.ChangeStandings(ctx, pool, f.of(), logs, change, f.ActorName(), readmodel.Storable(f.Reason))
		if err != nil {
			return err
		}
	} else {
		done = "would be " + done
	}
	return f.print(std, len(standings), func(i int) (document any, text string) {
		d := standingDocument{f.Topic, logs[i].Partition, standings[i]}
		return d, fmt.Sprintf("partition %d: %s%s", d.Partition, done, needs(d.State))
	})
}

// standingDocument is what a partition does, or would do, in JSON.
type standingDocument struct {
	Topic     string              `json:"topic"`
	Partition int32               `json:"partition"`
	State     projection.Standing `json:"state"`
}

// actionOf is what a change is called in the audit trail.
func actionOf(change projection.StandingChange) readmodel.ActionKind {
	if change.Pause != "" {
		return readmodel.ActionPause
	}
	return readmodel.ActionResume
}

// plannedStandings has to be the same when it is approved.
func plannedStandings(f *changeFlags, logs []readmodel.PartitionLog, standings []projection.Standing) func(*foureyes.Plan) error {
	return func(p *foureyes.Plan) error {
		for i, state := range standings {
			if err := p.Add(standingDocument{f.Topic, logs[i].Partition, state}); err != nil {
				return err
			}
		}
		return nil
	}
}

// needs is what else a partition needs to go on.
func needs(state projection.Standing) string {
	switch state {
	case projection.StandingStopped:
		return ", but stopped until its position is set: see projector position"
	case projection.StandingBreaker:
		return ", and its breaker is open: see projector position"
	case projection.StandingRunning, projection.StandingPaused:
	}
	return ""
}
