package position

import (
	"context"
	"fmt"
	"strconv"

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
	Through string `placeholder:"N|END" help:"Records below this offset do not count for the breaker; END: those that are in the partition now; 0: all do. Without this flag, the setting is unchanged."`
	changeFlags
}

// throughEnd stands for each partition's own end.
const throughEnd = "END"

// Run pauses partitions.
func (c *PauseCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	pause := fmt.Sprintf("paused by %s: %s", c.ActorName(), readmodel.Storable(c.Reason))
	s := &standingChanger{flags: &c.changeFlags, change: projection.StandingChange{Pause: pause}, action: readmodel.ActionPause, done: "paused"}
	return s.run(ctx, std, gate)
}

// Run resumes partitions.
func (c *ResumeCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	s := &standingChanger{flags: &c.changeFlags, action: readmodel.ActionResume, done: "resumed", throughText: c.Through}
	if c.Through != "" && c.Through != throughEnd {
		n, err := strconv.ParseInt(c.Through, 10, 64)
		if err != nil || n < 0 {
			return exit.Usagef("--through: must be an offset that is not less than 0, or END")
		}
		s.through = &n
	}
	return s.run(ctx, std, gate)
}

// standingChanger pauses or resumes partitions.
type standingChanger struct {
	flags       *changeFlags
	change      projection.StandingChange
	action      readmodel.ActionKind
	done        string // what is said of a partition when it is done
	throughText string // as it was typed
	through     *int64 // nil: unchanged, or END
}

// run changes what the partitions do or, without --yes, says what they would do.
func (s *standingChanger) run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	f := s.flags
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
	if err := f.checkGroup(ctx, pool); err != nil {
		return err
	}
	extents, topicID, err := f.chosen(ctx, dlq.NewReader(client, f.Topic))
	if err != nil {
		return err
	}
	logs := s.logs(extents, topicID)
	standings, err := readmodel.PlanStandings(ctx, pool, f.of(), logs, s.change)
	if err != nil {
		return err
	}
	if f.Yes {
		if err := gate.Pass(ctx, pool, string(s.action), s.planned(logs, standings)); err != nil {
			return err
		}
		standings, err = readmodel.ChangeStandings(ctx, pool, f.of(), logs, s.change, f.ActorName(), readmodel.Storable(f.Reason))
		if err != nil {
			return err
		}
	}
	return f.print(std, len(standings), func(i int) (document any, text string) {
		return standingDocument{f.Topic, logs[i].Partition, standings[i].Is}, s.text(&logs[i], standings[i])
	})
}

// logs are the partitions with what each is resumed through.
func (s *standingChanger) logs(extents []dlq.Extent, topicID string) []readmodel.PartitionLog {
	logs := make([]readmodel.PartitionLog, len(extents))
	for i, e := range extents {
		logs[i] = readmodel.PartitionLog{Partition: e.Partition, TopicID: topicID, Start: e.Start, Through: s.through}
		if s.throughText == throughEnd {
			logs[i].Through = &e.End
		}
	}
	return logs
}

// text is what is said of a partition.
func (s *standingChanger) text(log *readmodel.PartitionLog, standing readmodel.StandingChanged) string {
	done := s.done
	if !s.flags.Yes {
		done = "would be " + done
	}
	text := fmt.Sprintf("partition %d: %s", log.Partition, done)
	if log.Through != nil {
		text += fmt.Sprintf(", records below %d do not count for the breaker", *log.Through)
	}
	text += needs(standing.Is)
	if s.action == readmodel.ActionResume && standing.Was == projection.StandingRunning {
		text += "; it was running already"
	}
	if !s.flags.Yes && standing.Why != "" {
		text += fmt.Sprintf("\n  it is %s: %s", standing.Was, standing.Why)
	}
	return text
}

// standingDocument is what a partition does, or would do, in JSON.
type standingDocument struct {
	Topic     string              `json:"topic"`
	Partition int32               `json:"partition"`
	State     projection.Standing `json:"state"`
}

// plannedStanding is what has to be the same when a change is approved: what is done, and why
// the partition does not go on now. An end moves by itself.
type plannedStanding struct {
	standingDocument
	Was     projection.Standing `json:"was"`
	Why     string              `json:"why"`
	Through string              `json:"through"`
}

// planned has to be the same when it is approved.
func (s *standingChanger) planned(logs []readmodel.PartitionLog, standings []readmodel.StandingChanged) func(*foureyes.Plan) error {
	return func(p *foureyes.Plan) error {
		if err := s.flags.note(p); err != nil {
			return err
		}
		for i, standing := range standings {
			document := standingDocument{s.flags.Topic, logs[i].Partition, standing.Is}
			if err := p.Add(plannedStanding{document, standing.Was, standing.Why, s.throughText}); err != nil {
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
