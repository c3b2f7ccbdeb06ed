package position

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/cli/change"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

type setCmd = change.Command[set, *set]

type set struct {
	changeFlags

	Offset *int64 `placeholder:"N" group:"Target" help:"Continue at this offset."`
	Time   string `placeholder:"TIME" group:"Target" help:"Continue at the first record of this time or later: RFC 3339, or an age such as 24h."`
	Start  bool   `group:"Target" help:"Continue at the first available offset."`
	End    bool   `group:"Target" help:"Continue at the end."`

	Expect     *int64 `placeholder:"N" help:"Refuse when the current position differs from this one."`
	SkipUnread bool   `help:"Skip records that have not been read."`
	NewTopic   bool   `help:"Set it in the current topic, although the position belongs to an earlier topic of this name."`
	events.EventFlags

	since   time.Time // the time given by --time
	formats event.Resolver
}

type setDocument struct {
	Topic         string  `json:"topic"`
	Partition     int32   `json:"partition"`
	From          *int64  `json:"from"`
	To            int64   `json:"to"`
	UnreadSkipped int64   `json:"unread_skipped"`
	Result        *string `json:"result"`
}

// resultSet says that a position was set.
const resultSet = "set"

func (*set) Action() readmodel.ActionKind { return readmodel.ActionPositionSet }

func (c *set) Check() (err error) {
	targets := 0
	for _, given := range []bool{c.Offset != nil, c.Time != "", c.Start, c.End} {
		if given {
			targets++
		}
	}
	if err := c.changeFlags.Check(); err != nil {
		return err
	}
	switch {
	case targets != 1:
		return wrongTargets(targets)
	case c.Offset != nil && *c.Offset < 0:
		return exit.Usagef("--offset: must not be less than 0")
	case c.Expect != nil && *c.Expect < 0:
		return exit.Usagef("--expect: must not be less than 0")
	case c.All && c.Expect != nil:
		return exit.Usagef("--expect: needs --partition=N, every partition has a position of its own")
	}
	if c.since, err = flags.FixMoment("--time", &c.Time, time.Now()); err == nil {
		c.formats, err = c.Formats(c.CustomTypes)
	}
	return err
}

func wrongTargets(n int) error {
	return exit.Usagef("give exactly one of --offset, --time, --start and --end, not %d", n)
}

func (c *set) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	s := &setPlan{cmd: c, on: on, adm: kadm.NewClient(on.Client), reader: topic.NewReader(on.Client, c.Topic), of: c.partitionKey()}
	return s, refused(s.read(ctx))
}

func refused(err error) error {
	if refused, is := errors.AsType[*projection.RefusedPositionError](err); is {
		return exit.Refuse(refused.Reason + "; nothing was changed")
	}
	return err
}

func skippedText(unread int64) string {
	if unread == 0 {
		return ""
	}
	return fmt.Sprintf(", skipping %d offsets that have not been read", unread)
}

type setPlan struct {
	cmd    *set
	on     *change.On
	adm    *kadm.Client
	reader *topic.Reader
	of     readmodel.Partition

	sets  []readmodel.PositionSet
	plans []projection.Repositioned
	holds func(context.Context, readmodel.Querier) error // checked again in the transaction; nil: no check
}

func (s *setPlan) read(ctx context.Context) (err error) {
	asking, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	if err := s.cmd.checkGroup(asking, s.on.Pool); err != nil {
		return err
	}
	if s.sets, err = s.wanted(asking); err != nil {
		return err
	}
	if s.plans, err = readmodel.PlanPositions(asking, s.on.Pool, s.of, s.sets); err != nil {
		return err
	}
	for i := range s.sets { // the position may go back until it is set, by another operator or a failover
		s.sets[i].Want.Shown = &s.plans[i].UnreadSkipped
	}
	s.holds, err = s.checkMemory(ctx) // without a time limit, because it may read many records
	return err
}

func (s *setPlan) Do(ctx context.Context) (err error) {
	s.plans, err = readmodel.SetPositions(ctx, s.on.Pool, s.of, s.sets, s.holds, s.on.Actor, s.on.Reason)
	return refused(err)
}

func (s *setPlan) document(i int) setDocument {
	plan := s.plans[i]
	return setDocument{Topic: s.of.Topic, Partition: s.sets[i].Partition, From: plan.From, To: plan.To, UnreadSkipped: plan.UnreadSkipped}
}

func (s *setPlan) Print(_ context.Context, done bool) error {
	return s.cmd.print(s.on, done, len(s.plans), func(i int) (document any, text string) {
		d, verb := s.document(i), "would be set"
		if done {
			verb, d.Result = resultSet, output.OrNull(resultSet)
		}
		shown := struct {
			setDocument
			groupDocument
		}{d, s.cmd.group()}
		return shown, fmt.Sprintf("partition %d: %s from %s to %d%s", d.Partition, verb, output.OrDash(d.From), d.To, skippedText(d.UnreadSkipped))
	})
}

func (s *setPlan) Hash(_ context.Context, h *change.Hash) error {
	h.Note(s.cmd.group())
	for i := range s.plans {
		h.Add(s.document(i))
	}
	return nil
}

// wanted returns the requested change of each partition, sorted.
func (s *setPlan) wanted(ctx context.Context) ([]readmodel.PositionSet, error) {
	stored, err := readmodel.LoadPositions(ctx, s.on.Pool, s.of.Group, s.of.Topic)
	if err != nil {
		return nil, err
	}
	extents, topicID, err := s.cmd.chosen(ctx, s.reader)
	if err != nil {
		return nil, err
	}
	positions := projection.ByPartition(stored)
	var sets []readmodel.PositionSet
	for _, e := range extents {
		log := projection.Log{
			TopicID: topicID, Start: e.Start, End: e.End, Epoch: e.Epoch,
			EpochEnd: projection.NoOffset, ProcessedEnd: projection.NoOffset,
		}
		if p := positions[e.Partition]; p != nil {
			log.Since = &p.Next
		}
		want := projection.Reposition{Expect: s.cmd.Expect, SkipUnread: s.cmd.SkipUnread, NewTopic: s.cmd.NewTopic}
		sets = append(sets, readmodel.PositionSet{Partition: e.Partition, Want: want, Log: log})
	}
	if err := s.target(ctx, sets); err != nil {
		return nil, err
	}
	s.askEpochs(ctx, sets, stored)
	return sets, nil
}

// target sets Want.To, the offset at which the partition will continue, in each of the sets.
func (s *setPlan) target(ctx context.Context, sets []readmodel.PositionSet) error {
	var at kadm.ListedOffsets
	if s.cmd.Time != "" {
		var err error
		// A negative time has another meaning in a request: -1 is the end of the log.
		if at, err = s.adm.ListOffsetsAfterMilli(ctx, max(s.cmd.since.UnixMilli(), 0), s.of.Topic); err == nil {
			err = at.Error()
		}
		if err != nil {
			return fmt.Errorf("look for the first records of a time: %w", err)
		}
	}
	for i := range sets {
		set := &sets[i]
		switch {
		case s.cmd.Start:
			set.Want.To = set.Log.Start
		case s.cmd.End:
			set.Want.To = set.Log.End
		case s.cmd.Offset != nil:
			set.Want.To = *s.cmd.Offset
		case s.cmd.Time != "":
			found, _ := at.Lookup(s.of.Topic, set.Partition)
			if found.Timestamp < 0 && s.cmd.since.After(time.Now()) {
				return exit.Refusef("--time: %s is in the future, and partition %d has no record of that time or later; use a time that has passed, or --end. Nothing was changed",
					s.cmd.Time, set.Partition)
			}
			set.Want.To = min(max(found.Offset, set.Log.Start), set.Log.End)
		default:
			return wrongTargets(0)
		}
	}
	return nil
}

// askEpochs reads the ends of the leader epochs of the stored positions. These ends show where a
// log was truncated. An end that the brokers do not report in time stays unknown.
func (s *setPlan) askEpochs(ctx context.Context, sets []readmodel.PositionSet, stored []projection.StoredPosition) {
	own, processed := kadm.OffsetForLeaderEpochRequest{}, kadm.OffsetForLeaderEpochRequest{}
	for _, p := range stored {
		if p.LeaderEpoch != projection.NoEpoch {
			own.Add(s.of.Topic, p.Partition, p.LeaderEpoch)
		}
		if p.ProcessedEpoch != projection.NoEpoch {
			processed.Add(s.of.Topic, p.Partition, p.ProcessedEpoch)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, epochsWithin)
	defer cancel()
	ownEnds, _ := s.adm.OffsetForLeaderEpoch(ctx, own)
	processedEnds, _ := s.adm.OffsetForLeaderEpoch(ctx, processed)
	for i := range sets {
		set := &sets[i]
		set.Log.EpochEnd = epochEnd(ownEnds[s.of.Topic], set.Partition)
		set.Log.ProcessedEnd = epochEnd(processedEnds[s.of.Topic], set.Partition)
	}
}

// epochsWithin is the deadline for reading the ends of leader epochs. A broker that does not answer
// must not use up the time that the command needs for the rest.
const epochsWithin = 5 * time.Second

func epochEnd(ends map[int32]kadm.OffsetForLeaderEpoch, partition int32) int64 {
	end, answered := ends[partition]
	if !answered || end.Err != nil || end.EndOffset < 0 {
		return projection.NoOffset
	}
	return end.EndOffset
}
