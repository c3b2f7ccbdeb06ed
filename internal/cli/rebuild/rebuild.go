// Package rebuild has the command rebuild.
package rebuild

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/connect"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/memory"
	"projector/internal/cli/output"
	"projector/internal/cli/projections"
	"projector/internal/rebuild"
	"projector/internal/session"
	"projector/projection/event"
	"projector/readmodel"
)

// Cmd is the command rebuild.
type Cmd struct {
	Yes       bool  `help:"Do it. Without it, only compare."`
	Check     bool  `help:"Only look whether a rebuild can end well, and read no record; end with 1 when it cannot."`
	Remove    bool  `help:"With --yes, also remove the accounts the topic has no event of. Without it they stay and are listed."`
	MaxDiff   int64 `name:"max-differences" env:"PROJECTOR_MAX_DIFFERENCES" default:"100" placeholder:"N" help:"With --yes, change nothing and end with 1 when more accounts would change (default 100)."`
	Partial   bool  `help:"Go on although the topic has lost its first records: rebuild only accounts whose every event is there, and remove none."`
	Limit     int   `default:"1000" placeholder:"N" help:"List at most so many differences; all are counted (default 1000)."`
	ParkLimit int64 `env:"PARK_LIMIT" default:"10000" placeholder:"N" group:"Projection" help:"Events kept in the database behind a hole, an account (default 10000)."`
	connect.ActorFlags
	connect.KafkaFlags
	connect.DatabaseFlags
	projections.GroupFlags
	memory.LimitFlags
	events.EventFlags
	output.LogFlags
	output.Flags
}

// Run rebuilds the balances beside the live ones, compares them and, if it is wanted,
// puts them in their place.
func (c *Cmd) Run(ctx context.Context, std *output.Streams) (err error) {
	if err := c.validate(); err != nil {
		return err
	}
	formats, err := c.Formats()
	if err != nil {
		return err
	}
	log, err := c.Logger(std.Err)
	if err != nil {
		return err
	}
	pool, client, err := connect.Both(ctx, &c.DatabaseFlags, &c.KafkaFlags, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	defer client.Close()
	r := &rebuilding{cmd: c, std: std, formats: formats, pool: pool, source: newTopicSource(client, c.Topic)}
	if c.Check {
		return r.look(ctx)
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	plan := memory.Share(c.MemoryLimit)
	plan.Apply()
	if r.shadow, err = openShadow(ctx, pool); err != nil {
		return err
	}
	defer func() {
		// Also when ctx has ended: nothing must stay behind.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connect.OneShotWithin)
		defer cancel()
		err = errors.Join(err, r.shadow.Close(ctx))
	}()
	return r.run(ctx)
}

func openShadow(ctx context.Context, pool *pgxpool.Pool) (*readmodel.Shadow, error) {
	shadow, err := readmodel.OpenShadow(ctx, pool)
	if errors.Is(err, readmodel.ErrRebuilding) {
		return nil, exit.Refuse(err.Error())
	}
	return shadow, err
}

func (c *Cmd) validate() error {
	if err := cmp.Or(c.GroupFlags.Check(), c.CheckLimit()); err != nil {
		return err
	}
	switch {
	case c.Projection != readmodel.BalanceName:
		return exit.Usagef("--projection (PROJECTION): only %s can be rebuilt beside its consumers; to build %s again, see the "+
			"runbook, \"Building a projection again\"", readmodel.BalanceName, c.Projection)
	case c.Limit < 0:
		return exit.Usagef("--limit (PROJECTOR_LIMIT): must not be negative")
	case c.ParkLimit < 0:
		return exit.Usagef("--park-limit (PARK_LIMIT): must not be negative")
	case c.MaxDiff < 0:
		return exit.Usagef("--max-differences (PROJECTOR_MAX_DIFFERENCES): must not be negative")
	case c.Check && (c.Yes || c.Partial || c.Remove):
		return exit.Usagef("--check (PROJECTOR_CHECK): only looks whether all balances can be rebuilt, so it goes without --yes, --partial and --remove")
	case c.Remove && c.Partial:
		return exit.Usagef("--remove (PROJECTOR_REMOVE): with --partial nothing is removed, for a topic that has lost records does not know which accounts there are")
	}
	return nil
}

// rebuilding is one rebuild.
type rebuilding struct {
	cmd     *Cmd
	std     *output.Streams
	formats event.Resolver
	pool    *pgxpool.Pool
	source  *topicSource
	topic   topicExtent // as it was at the start
	policy  string      // its cleanup.policy; "": not known
	needs   int64       // bytes in the database, about
	shadow  *readmodel.Shadow
	build   *rebuild.Build
	shown   *output.Progress
}

const (
	// nearEnough is how many records the build may be behind before it is compared.
	nearEnough = 10_000
	// roundsAtMost bounds how often it tries to come that near.
	roundsAtMost = 20
)

func (r *rebuilding) run(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.shown = output.NewProgress(r.std.Err, "read")
	defer r.shown.Done()
	if err := r.approach(ctx); err != nil {
		return err
	}
	report, err := r.shadow.Compare(ctx, readmodel.CompareOptions{
		Topic: r.cmd.Topic, Corrected: r.build.Corrected, Partial: r.cmd.Partial,
		ParkLimit: r.cmd.ParkLimit, List: r.cmd.Limit,
	}, r.catchUp)
	if err == nil {
		err = r.lookAhead(ctx, &report)
	}
	if err != nil {
		return err
	}
	var changed *readmodel.Swapped
	refused := r.tooMany(&report)
	if r.cmd.Yes && refused == nil {
		if changed, err = r.swap(ctx, &report); err != nil {
			return err
		}
	}
	r.shown.Done()
	return cmp.Or(r.cmd.print(r.std, r.build.Records(), &report, changed), refused)
}

// begin prepares the build of every partition.
func (r *rebuilding) begin(ctx context.Context) error {
	skips, err := readmodel.LoadSkips(ctx, r.pool)
	if err != nil {
		return err
	}
	replays, err := readmodel.LoadReplays(ctx, r.pool)
	if err != nil {
		return err
	}
	balances := readmodel.BalanceConfig{
		Pool: r.shadow.Pool, Formats: r.formats, FirstVersion: r.cmd.FirstVersion, ParkLimit: rebuild.ParkLimit,
		CacheBytes: func() int { return rebuild.CacheBytes },
	}
	repair := readmodel.RepairConfig{Formats: r.formats, FirstVersion: r.cmd.FirstVersion}
	cfg := rebuild.Config{
		Source: r.source, Formats: r.formats, Topic: r.cmd.Topic, TopicID: r.topic.id, Starts: r.topic.starts,
		Open: func(partition int32) session.Projection {
			return readmodel.NewBalance(balances, readmodel.Partition{Group: "rebuild", Topic: r.cmd.Topic, Number: partition})
		},
		PassOver: func(ctx context.Context, s *rebuild.Skip, seen bool) (bool, error) {
			return r.shadow.PassOver(ctx, repair, &readmodel.AuditedEvent{AccountID: s.AccountID, Version: s.Version, Place: s.Place}, seen)
		},
	}
	cfg.Overdue = func(ctx context.Context, partitions []int32) ([]int32, error) {
		return readmodel.LoadOverdue(ctx, r.shadow.Pool, r.cmd.Topic, partitions, 0)
	}
	for _, s := range skips {
		cfg.Skips = append(cfg.Skips, rebuild.Skip{AccountID: s.AccountID, Version: s.Version, Place: s.Place})
	}
	for _, a := range replays {
		cfg.Replays = append(cfg.Replays, rebuild.Replay{AccountID: a.AccountID, Class: event.Class(a.Class), Place: a.Place})
	}
	r.build = rebuild.New(cfg)
	return nil
}

// approach reads until the build is near to where the live balances are.
func (r *rebuilding) approach(ctx context.Context) error {
	for range roundsAtMost {
		positions, err := readmodel.LoadTopicPositions(ctx, r.pool, r.cmd.Topic)
		if err != nil {
			return err
		}
		ends, err := r.ends(positions)
		if err != nil {
			return err
		}
		behind := r.build.Ahead(ends)
		if err := r.advance(ctx, ends); err != nil {
			return err
		}
		if behind <= nearEnough {
			return nil
		}
	}
	return nil // the consumers are as fast as this: the rest is read while they wait
}

// advance brings the build to offsets, and makes sure that nothing was missing on the way.
func (r *rebuilding) advance(ctx context.Context, ends map[int32]int64) error {
	total := int64(0)
	for number, end := range ends {
		total += end - r.topic.starts[number]
	}
	err := r.build.Advance(ctx, ends, func(passed int64) { r.shown.Update(passed, max(passed, total)) })
	if err != nil {
		return err
	}
	return r.stillWhole(ctx)
}

// ends are the offsets to rebuild up to, by partition; it refuses what cannot be right.
func (r *rebuilding) ends(positions []readmodel.TopicPosition) (map[int32]int64, error) {
	ends := map[int32]int64{}
	for _, p := range positions {
		if text := r.topic.misplaced(p); text != "" {
			return nil, exit.Refuse(text)
		}
		ends[p.Partition] = p.Next
	}
	return ends, nil
}
