package position

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"

	"projector/dlq"
	"projector/internal/cli/connect"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/foureyes"
	"projector/internal/cli/output"
	"projector/internal/cli/parse"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

type positionSetCmd struct {
	changeFlags

	Offset *int64 `placeholder:"N" group:"Target" help:"Continue at this offset."`
	Time   string `placeholder:"TIME" group:"Target" help:"Continue at the first record of this time or later: RFC 3339, or an age such as 24h."`
	Start  bool   `group:"Target" help:"Continue at the first available offset."`
	End    bool   `group:"Target" help:"Continue at the end."`

	Expect     *int64 `placeholder:"N" help:"Refuse when the current position differs from this one."`
	SkipUnread bool   `help:"Skip records that have not been read."`
	NewTopic   bool   `help:"Set it in the current topic, although the position belongs to an earlier topic of this name."`
	events.EventFlags
}

// setDocument is what became, or would become, of a position, in JSON.
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

// Run sets positions.
func (c *positionSetCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	if err := c.validate(); err != nil {
		return err
	}
	log, err := c.Logger(std.Err)
	if err != nil {
		return err
	}
	formats, err := c.Formats(c.Taken)
	if err != nil {
		return err
	}
	pool, client, err := connect.Both(ctx, &c.DatabaseFlags, &c.KafkaFlags, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	defer client.Close()
	s := &positionSetter{
		cmd: c, pool: pool, adm: kadm.NewClient(client), reader: dlq.NewReader(client, c.Topic), formats: formats,
		of: c.of(), gate: gate,
	}
	plans, sets, err := s.run(ctx, std)
	var refused *projection.RefusedPositionError
	if errors.As(err, &refused) {
		return exit.Refuse(refused.Reason + "; nothing was changed")
	}
	if err != nil {
		return err
	}
	return c.print(std, len(plans), func(i int) (document any, text string) {
		d := s.document(sets[i], plans[i])
		done := "would be set"
		if c.Yes {
			done, d.Result = resultSet, output.OrNull(resultSet)
		}
		return d, fmt.Sprintf("partition %d: %s from %s to %d%s", d.Partition, done, output.VersionText(d.From), d.To, skippedText(d.UnreadSkipped))
	})
}

func (c *positionSetCmd) validate() error {
	targets := 0
	for _, given := range []bool{c.Offset != nil, c.Time != "", c.Start, c.End} {
		if given {
			targets++
		}
	}
	if err := c.changeFlags.validate(); err != nil {
		return err
	}
	switch {
	case targets != 1:
		return exit.Usagef("give one of --offset, --time, --start and --end")
	case c.All && c.Expect != nil:
		return exit.Usagef("--expect: needs --partition=N, every partition has a position of its own")
	}
	return nil
}

func skippedText(unread int64) string {
	if unread == 0 {
		return ""
	}
	return fmt.Sprintf(", passing over %d offsets that have not been read", unread)
}

// positionSetter sets positions.
type positionSetter struct {
	cmd     *positionSetCmd
	pool    *pgxpool.Pool
	adm     *kadm.Client
	reader  *dlq.Reader
	formats event.Resolver
	of      readmodel.Partition
	gate    *foureyes.Gate
}

// document is what becomes of a position, or would become.
func (s *positionSetter) document(set readmodel.PositionSet, plan projection.Repositioned) setDocument {
	return setDocument{Topic: s.of.Topic, Partition: set.Partition, From: plan.From, To: plan.To, UnreadSkipped: plan.UnreadSkipped}
}

// planned has to be the same when it is approved.
func (s *positionSetter) planned(sets []readmodel.PositionSet, plans []projection.Repositioned) func(*foureyes.Plan) error {
	return func(p *foureyes.Plan) error {
		if err := s.cmd.note(p); err != nil {
			return err
		}
		for i, plan := range plans {
			if err := p.Add(s.document(sets[i], plan)); err != nil {
				return err
			}
		}
		return nil
	}
}

// run sets the positions or, without --yes, only plans it.
func (s *positionSetter) run(ctx context.Context, std *output.Streams) ([]projection.Repositioned, []readmodel.PositionSet, error) {
	asking, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
	defer cancel()
	if err := s.cmd.checkGroup(asking, s.pool); err != nil {
		return nil, nil, err
	}
	sets, err := s.sets(asking)
	if err != nil {
		return nil, nil, err
	}
	plans, err := readmodel.PlanPositions(asking, s.pool, s.of, sets)
	if err != nil {
		return nil, nil, err
	}
	holds, err := s.checkMemory(ctx, std, sets, plans) // takes as long as there is to read
	if err != nil {
		return nil, nil, err
	}
	if s.cmd.Yes {
		if err := s.gate.Pass(ctx, s.pool, string(readmodel.ActionPositionSet), s.planned(sets, plans)); err != nil {
			return nil, nil, err
		}
		plans, err = readmodel.SetPositions(ctx, s.pool, s.of, sets, holds, s.cmd.ActorName(), readmodel.Storable(s.cmd.Reason))
	}
	return plans, sets, err
}

// sets says what is wanted of each of the partitions, in order.
func (s *positionSetter) sets(ctx context.Context) ([]readmodel.PositionSet, error) {
	extents, topicID, err := s.cmd.chosen(ctx, s.reader)
	if err != nil {
		return nil, err
	}
	var sets []readmodel.PositionSet
	for _, e := range extents {
		log := projection.Log{
			TopicID: topicID, Start: e.Start, End: e.End,
			EpochEnd: projection.NoOffset, ProcessedEnd: projection.NoOffset,
		}
		want := projection.Reposition{Expect: s.cmd.Expect, SkipUnread: s.cmd.SkipUnread, NewTopic: s.cmd.NewTopic}
		sets = append(sets, readmodel.PositionSet{Partition: e.Partition, Want: want, Log: log})
	}
	if err := s.aim(ctx, sets); err != nil {
		return nil, err
	}
	return sets, s.askEpochs(ctx, sets)
}

// aim sets where the partitions are to go on.
func (s *positionSetter) aim(ctx context.Context, sets []readmodel.PositionSet) error {
	var at kadm.ListedOffsets
	if s.cmd.Time != "" {
		since, err := parse.Moment("--time", s.cmd.Time, time.Now())
		if err != nil {
			return err
		}
		if at, err = s.adm.ListOffsetsAfterMilli(ctx, since.UnixMilli(), s.of.Topic); err == nil {
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
		default:
			found, _ := at.Lookup(s.of.Topic, set.Partition)
			set.Want.To = min(max(found.Offset, set.Log.Start), set.Log.End)
		}
	}
	return nil
}

// askEpochs asks up to where the logs still are those of the stored positions. What the
// brokers do not say is not known.
func (s *positionSetter) askEpochs(ctx context.Context, sets []readmodel.PositionSet) error {
	stored, err := readmodel.LoadPositions(ctx, s.pool, s.of.Group, s.of.Topic)
	if err != nil {
		return err
	}
	own, processed := kadm.OffsetForLeaderEpochRequest{}, kadm.OffsetForLeaderEpochRequest{}
	for _, p := range stored {
		if p.LeaderEpoch != projection.NoEpoch {
			own.Add(s.of.Topic, p.Partition, p.LeaderEpoch)
		}
		if p.ProcessedEpoch != projection.NoEpoch {
			processed.Add(s.of.Topic, p.Partition, p.ProcessedEpoch)
		}
	}
	ownEnds, _ := s.adm.OffsetForLeaderEpoch(ctx, own)
	processedEnds, _ := s.adm.OffsetForLeaderEpoch(ctx, processed)
	for i := range sets {
		set := &sets[i]
		set.Log.EpochEnd = epochEnd(ownEnds[s.of.Topic], set.Partition)
		set.Log.ProcessedEnd = epochEnd(processedEnds[s.of.Topic], set.Partition)
	}
	return nil
}

func epochEnd(ends map[int32]kadm.OffsetForLeaderEpoch, partition int32) int64 {
	end, answered := ends[partition]
	if !answered || end.Err != nil || end.EndOffset < 0 {
		return projection.NoOffset
	}
	return end.EndOffset
}
