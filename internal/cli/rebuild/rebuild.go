// Package rebuild has the command rebuild.
package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"projector/internal/cli/change"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/rebuild"
)

// Cmd is the command rebuild.
type Cmd = change.Command[options, *options]

type options struct {
	CheckOnly bool  `name:"check" help:"Only check whether a rebuild can succeed, without reading records; exit status 1 when it cannot."`
	Remove    bool  `help:"With --yes, also remove the accounts, or rows, that have no event in the topic. Without it they stay and are listed."`
	MaxDiff   int64 `name:"max-differences" env:"PROJECTOR_MAX_DIFFERENCES" default:"100" placeholder:"N" help:"With --yes, change nothing and exit with 1 when more accounts would change, or rows where the table's key has no account_id (default 100)."`
	Partial   bool  `help:"Continue although the topic has lost its first records: rebuild only accounts, or rows of account_statement, whose events are all there, and remove none."`
	Limit     int   `default:"1000" placeholder:"N" help:"List at most this many differences; all are counted (default 1000)."`
	ExitCode  bool  `help:"Exit with 1 when something differs, apart from what is left alone; with --yes, when something still does."`
	change.OptionalReasonFlags
	flags.KafkaFlags
	flags.DatabaseFlags
	flags.GroupFlags
	flags.ParkFlags
	flags.LimitFlags
	events.EventFlags
	output.LogFlags
	output.Flags

	kind    readmodel.Definition
	formats event.Resolver
}

func (*options) Action() readmodel.ActionKind { return readmodel.ActionRebuild }

// Plan implements change.Change. It rebuilds the projection into separate tables and compares them with
// the live tables.
func (c *options) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	r := &rebuilding{cmd: c, on: on, source: newTopicSource(on.Client, c.Topic)}
	if c.CheckOnly {
		return r.check(ctx)
	}
	if err := r.compareFile(ctx); err != nil {
		return nil, err
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	plan := flags.ShareMemory(c.Resident())
	plan.Apply()
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	on.Later(func() error {
		// The tables are dropped even if ctx has ended.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flags.OneShotWithin)
		defer cancel()
		return r.leftover(r.shadow.Close(ctx))
	})
	err := r.plan(ctx)
	return r, err
}

func (c *options) Check() error {
	kind, err := c.Kind()
	if err := cmp.Or(err, c.CheckLimit(), c.CheckPark()); err != nil {
		return err
	}
	if c.formats, err = c.Formats(c.CustomTypes); err != nil {
		return err
	}
	c.kind = kind
	switch {
	case len(kind.Rebuilds()) == 0:
		return exit.Usagef("--projection (PROJECTION): %s cannot be rebuilt, for it does not say which tables it has", kind.Name())
	case c.Partial && sums(kind):
		return exit.Usagef("--partial (PROJECTOR_PARTIAL): %s adds up all events, or may, so it cannot be rebuilt from a part of them", kind.Name())
	case c.Limit < 0:
		return exit.Usagef("--limit (PROJECTOR_LIMIT): must not be negative")
	case c.MaxDiff < 0:
		return exit.Usagef("--max-differences (PROJECTOR_MAX_DIFFERENCES): must not be negative")
	case c.CheckOnly && (c.Partial || c.Remove):
		return errChecks
	case c.Remove && c.Partial:
		return exit.Usagef("--remove (PROJECTOR_REMOVE): with --partial nothing is removed, for a topic that has lost records does not know what there is")
	}
	return nil
}

var errChecks = exit.Usagef("--check (PROJECTOR_CHECK): only checks whether all can be rebuilt, so it goes without --yes, --partial and --remove")

// sums reports whether a table of a projection may contain sums of events. This is assumed for a
// custom projection, because the program does not find out whether its SQL adds up events.
func sums(kind readmodel.Definition) bool {
	return kind.Custom() || slices.ContainsFunc(kind.Rebuilds(), func(t readmodel.RebuildTable) bool { return t.Adds })
}

// rebuilding is one rebuild, and the plan of what it would change.
type rebuilding struct {
	cmd     *options
	on      *change.On
	source  *topicSource
	topic   topic.Extents // at the start of the rebuild
	policy  string        // its cleanup.policy; "": not known
	needs   int64         // approximate bytes in the database
	shadow  *rebuild.Shadow
	build   *rebuild.Build
	shown   *output.Progress
	changed *file.Projection // replaces another version of the projection file; nil: no replacement

	report   rebuild.Report
	balances []rebuild.Balances // of the listed differences; nil: not shown
	refused  error              // why the change is refused
	remapped bool               // the rows were made with another mapping, which is replaced
	swapped  *rebuild.Swapped   // nil: nothing was changed
	done     bool               // the change was made
}

const (
	// nearEnough is how many records the rebuilt tables may be behind the live tables when the two
	// are compared.
	nearEnough = 10_000
	// roundsAtMost limits the rounds of reading until the build is near enough.
	roundsAtMost = 20
)

// leftover adds to the error of tables that could not be dropped what it means for the rebuild.
func (r *rebuilding) leftover(err error) error {
	switch {
	case err == nil:
		return nil
	case r.done:
		return fmt.Errorf("%w; what was printed was done, and the next rebuild drops them", err)
	default:
		return fmt.Errorf("%w; the next rebuild drops them", err)
	}
}

func (r *rebuilding) plan(ctx context.Context) (err error) {
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.shown = output.NewProgress(r.on.Std.Err, "read")
	defer r.shown.Done()
	if err := r.approach(ctx); err != nil {
		return err
	}
	if r.report, err = r.compare(ctx); err != nil {
		return err
	}
	if r.refused, err = r.tooMany(ctx); err != nil || r.refused != nil {
		return err
	}
	old, err := r.replacedMapping(ctx)
	if err != nil {
		return err
	}
	r.remapped = old != nil
	r.refused = r.shadow.Refused(r.swapOptions(), old)
	return nil
}

func (r *rebuilding) Refused() error { return r.refused }

// Hash implements change.Plan. Rows that consumers write during the rebuild are not part of the
// hash. A mapping that is replaced counts as one record. After a pruning, the number of markers is not
// part of the hash either: running instances prune the inbox every minute, and it lacks more markers
// then.
func (r *rebuilding) Hash(ctx context.Context, h *change.Hash) error {
	digest, err := r.shadow.Digest(ctx, r.cmd.Remove)
	if err != nil {
		return err
	}
	h.Note(digest)
	records := r.wouldChange()
	if r.remapped {
		h.Note("mapping")
		records++
	}
	if !r.report.Pruned {
		records += r.report.Markers
		h.Note(r.report.Markers)
	}
	h.Count(records)
	return nil
}

func (r *rebuilding) Do(ctx context.Context) (err error) {
	defer r.shown.Done()
	r.swapped, err = r.swap(ctx)
	return err
}

func (r *rebuilding) Print(_ context.Context, done bool) error {
	r.done = done
	if done && r.swapped == nil {
		r.swapped = new(rebuild.Swapped)
	}
	r.balances = r.shadow.Balances(&r.report, r.cmd.Remove)
	return cmp.Or(r.print(), r.differs())
}

func (r *rebuilding) compare(ctx context.Context) (rebuild.Report, error) {
	opts := rebuild.CompareOptions{Topic: r.cmd.Topic, Partial: r.cmd.Partial, List: r.cmd.Limit, Balances: r.on.Amounts}
	report, err := r.shadow.Compare(ctx, opts, r.catchUp)
	if err != nil || !r.shadow.Doubtful() {
		return report, err
	}
	if some, err := r.readLater(ctx); err != nil || !some {
		return report, err
	}
	return r.shadow.Compare(ctx, opts, r.catchUp)
}

// approach reads the topic until the build is near the positions of the live rows, or until it has
// read roundsAtMost times.
func (r *rebuilding) approach(ctx context.Context) error {
	for range roundsAtMost {
		positions, err := rebuild.LoadTopicPositions(ctx, r.on.Pool, r.cmd.kind.Name(), r.cmd.Topic)
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
	return nil // the consumers are as fast as the rebuild, so the rest is read while the consumers wait
}

// advance reads up to the given offsets, and checks that no record was missing.
func (r *rebuilding) advance(ctx context.Context, ends map[int32]int64) error {
	total := int64(0)
	for number, end := range ends {
		log, _ := r.topic.Of(number)
		total += end - log.Start
	}
	err := r.build.Advance(ctx, ends, func(passed int64) { r.shown.Update(passed, max(passed, total)) })
	if err != nil {
		return err
	}
	return r.stillWhole(ctx)
}

// ends returns, for each partition, the offset up to which it is rebuilt. It returns an error if
// the topic cannot be read up to a position.
func (r *rebuilding) ends(positions []rebuild.TopicPosition) (map[int32]int64, error) {
	ends := map[int32]int64{}
	for _, p := range positions {
		if _, known := r.topic.Of(p.Partition); !known {
			return nil, exit.Passing("partition %d was added to topic %s after the rebuild began: nothing was changed; run it again", p.Partition, r.cmd.Topic)
		}
		if text := misplaced(&r.topic, p); text != "" {
			return nil, exit.Refuse(text)
		}
		ends[p.Partition] = p.Next
	}
	return ends, nil
}

func (r *rebuilding) open(ctx context.Context) (err error) {
	r.shadow, err = rebuild.OpenShadow(ctx, r.on.Pool, r.cmd.kind, r.cmd.ParkLimit, int64(r.cmd.ParkBytes))
	if errors.Is(err, rebuild.ErrRebuilding) {
		return exit.Passing("%s; wait until it has ended", err)
	}
	return err
}

func (r *rebuilding) begin(ctx context.Context) (err error) {
	starts := map[int32]int64{}
	for _, log := range r.topic.Partitions {
		starts[log.Partition] = log.Start
	}
	r.build, err = r.shadow.Build(ctx, rebuild.Config{
		Source: r.source, Formats: r.cmd.formats, FirstVersion: r.cmd.FirstVersion, Topic: r.cmd.Topic, TopicID: r.topic.TopicID, Starts: starts,
	})
	return err
}

// readLater reads the events after the positions. It reports whether one of these events belongs to
// a row that seemed to have no events. This happens if an old release has set positions back
// without storing how far records were processed.
func (r *rebuilding) readLater(ctx context.Context) (some bool, err error) {
	now, err := r.source.extents(ctx)
	if err != nil {
		return false, err
	}
	for _, log := range now.Partitions {
		for record, err := range r.source.Records(ctx, log.Partition, r.build.Next(log.Partition), log.End) {
			if err != nil {
				return some, err
			}
			format, err := r.cmd.formats.Resolve(ctx, record.Message)
			if err != nil {
				return some, err
			}
			for _, e := range projection.AppendDecoded(nil, record, format) {
				if ev := &e.Decoded.Event; ev.AccountID != "" {
					found := r.shadow.Later(readmodel.Storable(ev.AccountID), ev.Version, readmodel.Storable(ev.ID))
					some = some || found
				}
			}
		}
	}
	return some, nil
}
