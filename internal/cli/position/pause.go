package position

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/dlq"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/internal/cli/projections"
	"projector/projection"
	"projector/readmodel"
)

// standingFlags are those of pause and resume.
type standingFlags struct {
	Partition *int32 `placeholder:"N" group:"Target" help:"One partition."`
	All       bool   `group:"Target" help:"All partitions."`
	Reason    string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	Yes       bool   `help:"Do it. Without it, only say what would be done."`
	connect.ActorFlags
	connect.KafkaFlags
	connect.DatabaseFlags
	projections.GroupFlags
	output.LogFlags
	output.Flags
}

// PauseCmd is the command pause.
type PauseCmd struct {
	standingFlags
}

// ResumeCmd is the command resume.
type ResumeCmd struct {
	Through *int64 `placeholder:"N" help:"Records below this offset do not count for the breaker; 0: all do. Without it, that stays as it was."`
	standingFlags
}

// Run pauses partitions.
func (c *PauseCmd) Run(ctx context.Context, std *output.Streams) error {
	pause := fmt.Sprintf("paused by %s: %s", c.ActorName(), readmodel.Storable(c.Reason))
	return c.change(ctx, std, projection.StandingChange{Pause: pause}, "paused")
}

// Run resumes partitions.
func (c *ResumeCmd) Run(ctx context.Context, std *output.Streams) error {
	if c.Through != nil && *c.Through < 0 {
		return exit.Usagef("--through: must not be less than 0")
	}
	return c.change(ctx, std, projection.StandingChange{Through: c.Through}, "resumed")
}

func (f *standingFlags) validate() error {
	switch {
	case f.Reason == "":
		return exit.Usagef("--reason: must not be empty")
	case f.All == (f.Partition != nil):
		return exit.Usagef("give one of --partition=N and --all")
	case f.Partition != nil && *f.Partition < 0:
		return exit.Usagef("--partition: must not be less than 0")
	}
	return f.Check()
}

// change changes what the partitions do or, without --yes, says what they would do.
func (f *standingFlags) change(ctx context.Context, std *output.Streams, change projection.StandingChange, done string) error {
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
	logs, err := f.logs(ctx, dlq.NewReader(client, f.Topic))
	if err != nil {
		return err
	}
	standings, err := f.do(ctx, pool, logs, change)
	if err != nil {
		return err
	}
	return f.print(std, logs, standings, done)
}

// logs are the partitions that are meant, in order.
func (f *standingFlags) logs(ctx context.Context, reader *dlq.Reader) ([]readmodel.PartitionLog, error) {
	extents, exists, err := reader.Extents(ctx)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, exit.Refusef("topic %q does not exist", f.Topic)
	}
	var logs []readmodel.PartitionLog
	for _, e := range extents.Partitions {
		if !f.All && e.Partition != *f.Partition {
			continue
		}
		if e.Err != nil {
			return nil, e.Err
		}
		logs = append(logs, readmodel.PartitionLog{Partition: e.Partition, TopicID: extents.TopicID, Start: e.Start})
	}
	if len(logs) == 0 {
		return nil, exit.Refusef("topic %q has no partition %d", f.Topic, *f.Partition)
	}
	return logs, nil
}

func (f *standingFlags) do(
	ctx context.Context, pool *pgxpool.Pool, logs []readmodel.PartitionLog, change projection.StandingChange,
) ([]projection.Standing, error) {
	of := readmodel.Partition{Projection: f.Projection, Group: f.GroupName(), Topic: f.Topic}
	if !f.Yes {
		return readmodel.PlanStandings(ctx, pool, of, logs, change)
	}
	return readmodel.ChangeStandings(ctx, pool, of, logs, change, f.ActorName(), readmodel.Storable(f.Reason))
}

// standingDocument is what a partition does, or would do, in JSON.
type standingDocument struct {
	Topic     string              `json:"topic"`
	Partition int32               `json:"partition"`
	State     projection.Standing `json:"state"`
}

func (f *standingFlags) print(std *output.Streams, logs []readmodel.PartitionLog, standings []projection.Standing, done string) error {
	lines := output.NewJSONLines(std.Out)
	if !f.Yes {
		done = "would be " + done
	}
	for i, state := range standings {
		var err error
		if f.JSON() {
			err = lines.Write(standingDocument{f.Topic, logs[i].Partition, state})
		} else {
			_, err = fmt.Fprintln(std.Out, "partition "+strconv.Itoa(int(logs[i].Partition))+": "+done+needs(state))
		}
		if err != nil {
			return err
		}
	}
	if !f.Yes && !f.JSON() {
		if _, err := fmt.Fprintln(std.Out, "nothing was changed, add --yes to do it"); err != nil {
			return err
		}
	}
	return lines.Flush()
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
