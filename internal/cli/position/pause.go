package position

import (
	"context"
	"fmt"
	"strconv"

	"projector/internal/cli/change"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/topic"
	"projector/projection"
	"projector/readmodel"
)

// PauseCmd is the command pause.
type PauseCmd = change.Command[pause, *pause]

// ResumeCmd is the command resume.
type ResumeCmd = change.Command[resume, *resume]

type pause struct {
	changeFlags
}

type resume struct {
	Through string `placeholder:"N|END" help:"Records below this offset do not count for the breaker; END: those that are in the partition now; 0: all do. Without this flag, the setting is unchanged."`
	changeFlags
}

// throughEnd is the value of --through that means the end of each partition.
const throughEnd = "END"

func (*pause) Action() readmodel.ActionKind { return readmodel.ActionPause }

func (c *pause) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	p := &statusPlan{flags: &c.changeFlags, on: on, verb: "paused"}
	p.change.Pause = fmt.Sprintf("paused by %s: %s", on.Actor, on.Reason)
	return p.read(ctx)
}

func (*resume) Action() readmodel.ActionKind { return readmodel.ActionResume }

func (c *resume) Check() error {
	if c.Through != "" && c.Through != throughEnd {
		if n, err := strconv.ParseInt(c.Through, 10, 64); err != nil || n < 0 {
			return exit.Usagef("--through: must be an offset that is not less than 0, or END")
		}
	}
	return c.changeFlags.Check()
}

func (c *resume) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	p := &statusPlan{flags: &c.changeFlags, on: on, verb: "resumed", resumes: true, through: c.Through}
	return p.read(ctx)
}

type statusPlan struct {
	flags   *changeFlags
	on      *change.On
	change  projection.StatusChange
	verb    string
	resumes bool
	through string // as typed

	ends    map[int32]int64
	planned []readmodel.PlannedStatus
}

func (p *statusPlan) read(ctx context.Context) (change.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	if err := p.flags.checkGroup(ctx, p.on.Pool); err != nil {
		return nil, err
	}
	extents, topicID, err := p.flags.chosen(ctx, topic.NewReader(p.on.Client, p.flags.Topic))
	if err != nil {
		return nil, err
	}
	p.ends = map[int32]int64{}
	var logs []readmodel.PartitionLog
	for _, e := range extents {
		p.ends[e.Partition] = e.End
		log := readmodel.PartitionLog{Partition: e.Partition, TopicID: topicID, Start: e.Start}
		if p.through == throughEnd {
			log.Through = &e.End
		} else if n, err := strconv.ParseInt(p.through, 10, 64); err == nil {
			log.Through = &n
		}
		logs = append(logs, log)
	}
	p.planned, err = readmodel.PlanStatuses(ctx, p.on.Pool, p.flags.partitionKey(), logs, p.change)
	return p, err
}

func (p *statusPlan) Do(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	return refused(readmodel.ChangeStatuses(ctx, p.on.Pool, p.flags.partitionKey(), p.planned, p.change, p.on.Actor, p.on.Reason))
}

func (p *statusPlan) Print(_ context.Context, done bool) error {
	return p.flags.print(p.on, done, len(p.planned), func(i int) (document any, text string) {
		one := &p.planned[i]
		return struct {
			statusDocument
			groupDocument
		}{statusDocument{p.flags.Topic, one.Partition, one.Is}, p.flags.group()}, p.text(one, done)
	})
}

func (p *statusPlan) text(one *readmodel.PlannedStatus, done bool) string {
	verb := p.verb
	if !done {
		verb = "would be " + verb
	}
	text := fmt.Sprintf("partition %d: %s", one.Partition, verb)
	if one.Through != nil {
		text += p.throughText(one)
	}
	text += needs(one.Is, p.flags.Again(p.flags.Topic))
	if p.resumes && one.Was == projection.StatusRunning {
		text += "; it was neither paused nor stopped by the breaker"
	}
	if !done && one.Why != "" {
		text += fmt.Sprintf("\n  it is %s: %s", one.Was, one.Why)
	}
	return text
}

func (p *statusPlan) throughText(one *readmodel.PlannedStatus) string {
	text := fmt.Sprintf(", records below %d do not count for the breaker", *one.Through)
	end := p.ends[one.Partition]
	switch {
	case *one.Through <= one.Next:
		text += fmt.Sprintf(", which leaves out none, because the position is %d", one.Next)
	case *one.Through > end:
		text += fmt.Sprintf(", with those still to come: the end is %d", end)
	}
	return text
}

type statusDocument struct {
	Topic     string            `json:"topic"`
	Partition int32             `json:"partition"`
	State     projection.Status `json:"state"`
}

// plannedStatus is the part of a plan that must be unchanged when it is approved. It contains what
// is done, and why the partition does not continue now. The end of the log is not included, because
// the end moves.
type plannedStatus struct {
	statusDocument
	Was     projection.Status `json:"was"`
	Why     string            `json:"why"`
	Through string            `json:"through"`
}

func (p *statusPlan) Hash(_ context.Context, h *change.Hash) error {
	h.Note(p.flags.group())
	for i := range p.planned {
		one := &p.planned[i]
		document := statusDocument{p.flags.Topic, one.Partition, one.Is}
		h.Add(plannedStatus{document, one.Was, one.Why, p.through})
	}
	return nil
}

// needs returns a text about what else must happen before a partition continues. The parameter
// again has the flags that the proposed command repeats.
func needs(state projection.Status, again string) string {
	switch state {
	case projection.StatusStopped:
		return ", but stopped until its position is set: see projector position" + again
	case projection.StatusBreaker:
		return ", and its breaker is open: see projector position" + again
	case projection.StatusRunning, projection.StatusPaused:
	}
	return ""
}
