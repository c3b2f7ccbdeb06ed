package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/projection/event"
	"projector/readmodel"
)

// dlqCmd are the commands about dead letters.
type dlqCmd struct {
	List    dlqListCmd    `cmd:"" help:"List dead letters and how they stand to the read model now."`
	Show    dlqShowCmd    `cmd:"" help:"Show one dead letter: headers, event, why, and its account's state."`
	Export  dlqExportCmd  `cmd:"" help:"Write dead letters to a file, to be corrected and replayed from there."`
	Replay  dlqReplayCmd  `cmd:"" help:"Apply dead letters to the database, or publish them again with --to-topic."`
	Discard dlqDiscardCmd `cmd:"" help:"Note that nothing is to be done about dead letters."`
}

// dlqFlags are what every dlq command needs to look. A DLQ topic may be shared by
// several projections and groups: only letters of the chosen projection count and,
// when a group is given, of that group.
type dlqFlags struct {
	kafkaFlags
	databaseFlags
	groupFlags
	eventFlags
	logFlags
}

// filterFlags choose dead letters.
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

// selection is what the filter flags choose.
type selection struct {
	filter   dlq.Filter
	statuses []dlq.Status // nil: all
}

func (f *filterFlags) selection(now time.Time, of *groupFlags) (selection, error) {
	s := selection{filter: dlq.Filter{
		Projection: of.Projection, Group: of.Group,
		Account:    f.Account,
		Partitions: f.Partition, Offsets: f.Offset,
		DLQPartitions: f.DLQPartition, DLQOffsets: f.DLQOffset,
	}}
	for _, name := range f.Class {
		class := event.Class(strings.TrimSpace(name))
		if !slices.Contains(event.Classes(), class) {
			return s, usagef("--class: %q is unknown; use %s", name, joined(event.Classes()))
		}
		s.filter.Classes = append(s.filter.Classes, class)
	}
	for _, name := range f.Status {
		status := dlq.Status(strings.TrimSpace(name))
		if !slices.Contains(dlq.Statuses(), status) {
			return s, usagef("--status: %q is unknown; use %s", name, joined(dlq.Statuses()))
		}
		s.statuses = append(s.statuses, status)
	}
	var err error
	if s.filter.Since, err = moment("--since", f.Since, now); err != nil {
		return s, err
	}
	s.filter.Until, err = moment("--until", f.Until, now)
	return s, err
}

// includes reports whether the status is chosen.
func (s *selection) includes(status dlq.Status) bool {
	return s.statuses == nil || slices.Contains(s.statuses, status)
}

// unlessChosen narrows the statuses, unless some were named.
func (s *selection) unlessChosen(statuses ...dlq.Status) {
	if s.statuses == nil {
		s.statuses = statuses
	}
}

func joined[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

// moment reads a time, or an age such as 24h or 7d. Empty is the zero time.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	age, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); err != nil && isDays {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		age = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || age < 0 {
		return time.Time{}, usagef("%s: %q is neither a time such as 2026-01-31T12:00:00Z nor an age such as 24h or 7d", flag, text)
	}
	return now.Add(-age), nil
}

// dlqTools are what the dlq commands work with.
type dlqTools struct {
	flags   *dlqFlags
	topic   string // of the dead letters
	formats event.Resolver
	kind    readmodel.Kind
	pool    *pgxpool.Pool
	client  *kgo.Client
	reader  *dlq.Reader
}

// open connects to both servers, or fails in time for a person who waits.
func (f *dlqFlags) open(ctx context.Context, std *streams) (*dlqTools, error) {
	log, err := f.logger(std.err)
	if err != nil {
		return nil, err
	}
	formats, err := f.formats()
	if err != nil {
		return nil, err
	}
	kind, err := f.kind()
	if err != nil {
		return nil, err
	}
	pool, client, err := connect(ctx, &f.databaseFlags, &f.kafkaFlags, log)
	if err != nil {
		return nil, err
	}
	return &dlqTools{
		flags: f, topic: f.dlqTopic(), formats: formats, kind: kind, pool: pool,
		client: client, reader: dlq.NewReader(client, f.dlqTopic()),
	}, nil
}

// connect connects to both servers, or fails in time for a person who waits.
func connect(ctx context.Context, db *databaseFlags, kafka *kafkaFlags, log *slog.Logger) (*pgxpool.Pool, *kgo.Client, error) {
	opts, err := kafka.client(log)
	if err != nil {
		return nil, nil, err
	}
	reachable, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	pool, err := openReadModel(reachable, db)
	if err != nil {
		return nil, nil, err
	}
	client, err := kgo.NewClient(opts...)
	if err == nil {
		if err = client.Ping(reachable); err == nil {
			return pool, client, nil
		}
		client.Close()
	}
	pool.Close()
	return nil, nil, fmt.Errorf("reach Kafka: %w", err)
}

// letters deals with the dead letters of the chosen projection.
func (t *dlqTools) letters(rate int) readmodel.Letters {
	return t.kind.Letters(readmodel.RepairConfig{
		Pool: t.pool, Formats: t.formats, FirstVersion: t.flags.FirstVersion, Rate: rate, Ends: t.ends,
	})
}

// endsWithin bounds the question for the ends of a topic, between two pieces of a repair.
const endsWithin = 2 * time.Second

// ends are the ends of a topic's partitions, as far as they can be had in time.
func (t *dlqTools) ends(ctx context.Context, topic string) map[int32]int64 {
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	extents, _, err := dlq.NewReader(t.client, topic).Extents(ctx)
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

func (t *dlqTools) close() {
	t.client.Close()
	t.pool.Close()
}
