// Package dlq has the commands about dead letters, and the command gaps fetch.
package dlq

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/replay"
	"projector/internal/topic"
	"projector/projection/event"
	"projector/readmodel"
)

// Cmd are the commands about dead letters.
type Cmd struct {
	List    listCmd    `cmd:"" help:"List dead letters and their current status against the read model."`
	Summary summaryCmd `cmd:"" help:"Count dead letters by class and status, with an example of each."`
	Show    showCmd    `cmd:"" help:"Show one dead letter: headers, event, reason, and its account's state."`
	Export  exportCmd  `cmd:"" help:"Write dead letters to a file, to correct and replay them from there."`
	Replay  replayCmd  `cmd:"" help:"Apply dead letters to the database, or publish them again with --to-topic."`
	Discard discardCmd `cmd:"" help:"Mark dead letters as needing no action."`
}

// topicFlags are the flags of every dlq command. Several projections and groups may share a DLQ
// topic. A command uses only the dead letters of the chosen projection and, if a group is given, of
// this group.
type topicFlags struct {
	flags.KafkaFlags
	flags.DatabaseFlags
	flags.GroupFlags
	events.EventFlags
	output.LogFlags

	kind    readmodel.Definition // set by prepare, like formats
	formats event.Resolver
}

// again returns the flags with which another dlq command reads the same dead letters.
func (f *topicFlags) again() string { return f.Again(f.Topic) + f.LettersAgain() }

type filterFlags struct {
	Class        []string `placeholder:"CLASS" group:"Filter" help:"Class, or several, separated by commas."`
	Account      string   `placeholder:"ID" group:"Filter" help:"Account."`
	Status       []string `placeholder:"STATUS" group:"Filter" help:"open, ready, waiting, resolved, discarded, or several."`
	Since        string   `placeholder:"TIME" group:"Filter" help:"Failed at or after: RFC 3339, or an age such as 24h."`
	Until        string   `placeholder:"TIME" group:"Filter" help:"Failed at or before: RFC 3339, or an age such as 1h."`
	Partition    []int32  `placeholder:"N" group:"Filter" help:"Partition of the source topic."`
	Offset       []int64  `placeholder:"N" group:"Filter" help:"Offset in the source topic."`
	DLQPartition []int32  `name:"dlq-partition" placeholder:"N" group:"Filter" help:"Partition of the DLQ topic."`
	DLQOffset    []int64  `name:"dlq-offset" placeholder:"N" group:"Filter" help:"Offset in the DLQ topic."`
}

func (f *filterFlags) selection(now time.Time, of *flags.GroupFlags) (replay.Selection, error) {
	if err := of.Check(); err != nil {
		return replay.Selection{}, err
	}
	s := replay.Selection{Filter: dlq.Filter{
		Projection: of.Projection, Group: of.Group,
		Account:    f.Account,
		Partitions: f.Partition, Offsets: f.Offset,
		DLQPartitions: f.DLQPartition, DLQOffsets: f.DLQOffset,
	}}
	for _, name := range f.Class {
		class := event.Class(strings.TrimSpace(name))
		if !slices.Contains(event.Classes(), class) {
			return s, exit.Usagef("--class: %q is unknown; use %s", name, strings.Join(flags.Texts(event.Classes()), ", "))
		}
		s.Filter.Classes = append(s.Filter.Classes, class)
	}
	for _, name := range f.Status {
		status := dlq.Status(strings.TrimSpace(name))
		if !slices.Contains(dlq.Statuses(), status) {
			return s, exit.Usagef("--status: %q is unknown; use %s", name, strings.Join(flags.Texts(dlq.Statuses()), ", "))
		}
		s.Statuses = append(s.Statuses, status)
	}
	var err error
	s.Filter.Since, s.Filter.Until, err = flags.Window(&f.Since, &f.Until, now)
	return s, err
}

func (f *filterFlags) filters() bool {
	return len(f.Class)+len(f.Status)+len(f.Partition)+len(f.Offset)+len(f.DLQPartition)+len(f.DLQOffset) > 0 ||
		f.Account != "" || f.Since != "" || f.Until != ""
}

// unlessChosen selects the given statuses if the flags select no status.
func unlessChosen(s *replay.Selection, statuses ...dlq.Status) {
	if s.Statuses == nil {
		s.Statuses = statuses
	}
}

// tools are the flags of a command and its connections.
type tools struct {
	*topicFlags
	pool   *pgxpool.Pool
	client *kgo.Client
	reader *topic.Reader // of the DLQ topic

	decisions *readmodel.Decisions
}

// prepare checks the flags, and sets the projection and the format of the events.
func (f *topicFlags) prepare() (err error) {
	if f.kind, err = f.Kind(); err == nil {
		f.formats, err = f.Formats(f.CustomTypes)
	}
	return err
}

// open connects to the database and the brokers, or fails after flags.OneShotWithin.
func (f *topicFlags) open(ctx context.Context, std *output.Streams) (*tools, error) {
	if err := f.prepare(); err != nil {
		return nil, err
	}
	log, err := f.Logger(std.Err)
	if err != nil {
		return nil, err
	}
	pool, client, err := flags.OpenBoth(ctx, &f.DatabaseFlags, &f.KafkaFlags, log)
	if err != nil {
		return nil, err
	}
	return f.tools(pool, client), nil
}

func (f *topicFlags) tools(pool *pgxpool.Pool, client *kgo.Client) *tools {
	return &tools{f, pool, client, topic.NewReader(client, f.DeadLetterTopic()), readmodel.NewDecisions(pool, f.kind)}
}

// store returns the store that applies dead letters to the chosen projection and records this in
// the audit trail.
func (t *tools) store(rate int) replay.Store {
	return replay.Database{Replayer: t.replayer(rate), Pool: t.pool, Decisions: t.decisions}
}

func (t *tools) replayer(rate int) readmodel.Replayer {
	return t.kind.Replayer(readmodel.RepairConfig{
		Pool: t.pool, Formats: t.formats, FirstVersion: t.FirstVersion, Rate: rate, Ends: t.ends, Decisions: t.decisions,
	})
}

// endsWithin is the time limit for reading the ends of a topic, which a replay does between two
// transactions.
const endsWithin = 2 * time.Second

// ends returns the ends of a topic's partitions that can be read within endsWithin.
func (t *tools) ends(ctx context.Context, name string) map[int32]int64 {
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	extents, _, err := topic.NewReader(t.client, name).Extents(ctx)
	if err != nil {
		return nil
	}
	ends := map[int32]int64{}
	for _, e := range extents.Partitions {
		if e.Err == nil {
			ends[e.Partition] = e.End
		}
	}
	return ends
}

func (t *tools) close() {
	t.client.Close()
	t.pool.Close()
}

// Choices has the possible values of flags, by the flag's name.
var Choices = map[string][]string{"class": flags.Texts(event.Classes()), "status": flags.Texts(dlq.Statuses())}
