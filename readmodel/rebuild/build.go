package rebuild

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/appended"
)

// Source streams the committed records of a partition. The records begin at the offset from and end
// before the offset to. An error ends the iteration.
type Source interface {
	Records(ctx context.Context, partition int32, from, to int64) iter.Seq2[projection.Record, error]
}

// Config is the configuration of a Build.
type Config struct {
	Source       Source
	Formats      event.Resolver
	FirstVersion int64
	Topic        string
	TopicID      string
	Starts       map[int32]int64 // the first offset of each partition
	Open         func(partition int32) session.Projection
	// Overdue returns the partitions that have parked events which can be applied now.
	Overdue func(ctx context.Context, topic string, partitions []int32) ([]int32, error)
}

const (
	// atOnce is the number of partitions that are read concurrently.
	atOnce = 4
	// chunkRecords is the number of records at which a chunk is folded. A chunk may be folded
	// earlier.
	chunkRecords = 512
	// flushEvents and flushBytes limit the size of a transaction, and so the memory it needs.
	flushEvents = 200_000
	flushBytes  = 16 << 20
)

// cacheBytes limits the memory for the accounts of one partition.
const cacheBytes = 16 << 20

// Build reads a topic into the shadow tables of a projection, up to given offsets.
type Build struct {
	cfg        Config
	partitions map[int32]*partition

	// These fields hold decisions of operators; see Shadow.Build.
	skipAgain   func(ctx context.Context, e projection.SkippedEvent, seen bool) (bool, error)
	decisions   *readmodel.Decisions
	replays     map[projection.RecordRef][]*decided
	skips       map[string][]projection.SkippedEvent  // by account, ascending
	chosen      map[appended.Key]projection.RecordRef // by account and version: the event that a replay applied
	altered     map[appended.Key]bool                 // by account and version: events that a replay applied in a corrected form
	alteredSeen atomic.Bool                           // one of these events was also rebuilt from a valid record

	passed  atomic.Int64
	records atomic.Int64
}

// New prepares a build of all partitions in cfg.Starts.
func New(cfg Config) *Build {
	b := &Build{
		cfg: cfg, partitions: map[int32]*partition{}, skips: map[string][]projection.SkippedEvent{},
		replays: map[projection.RecordRef][]*decided{}, chosen: map[appended.Key]projection.RecordRef{},
		altered: map[appended.Key]bool{},
	}
	for number, start := range cfg.Starts {
		p := &partition{build: b, number: number, next: start, furthest: start, waiting: map[string]struct{}{}, skipped: map[string]int64{}}
		p.session = session.New(cfg.Open(number), p, session.Limits{
			Events: flushEvents, Within: attemptWithin, Silence: attemptWithin,
		})
		b.partitions[number] = p
	}
	return b
}

// addReplay adds an event that the command dlq replay applied. An event that was replayed several
// times is added once. The parameter ordered is true if the projection applies at most one event
// for each version of an account.
func (b *Build) addReplay(e *decided, ordered bool) {
	e.given = !e.altered && e.place.Topic == b.cfg.Topic
	switch key := (appended.Key{Text: e.accountID, Number: e.version}); {
	case e.altered:
		b.altered[key] = true
	case ordered && e.given:
		b.chosen[key] = e.place
	}
	same := func(one *decided) bool { return one.accountID == e.accountID && one.version == e.version }
	of := b.replays[e.place]
	if i := slices.IndexFunc(of, same); i >= 0 {
		e.given = e.given && of[i].given
		of[i] = e
		return
	}
	b.replays[e.place] = append(of, e)
}

// Advance brings each partition exactly to its offset in ends. From several goroutines, it calls
// observe with the number of offsets that were read in all partitions since the build began. The
// function observe may be nil.
func (b *Build) Advance(ctx context.Context, ends map[int32]int64, observe func(passed int64)) error {
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, number := range slices.Sorted(maps.Keys(ends)) {
		group.Go(func() error { return b.partitions[number].advance(reading, ends[number], observe) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return b.healOverdue(ctx, ends)
}

// healOverdue applies parked events whose missing version was read later, in another partition.
func (b *Build) healOverdue(ctx context.Context, ends map[int32]int64) error {
	overdue, err := b.cfg.Overdue(ctx, b.cfg.Topic, slices.Sorted(maps.Keys(ends)))
	if err != nil {
		return err
	}
	for _, number := range overdue {
		p := b.partitions[number]
		p.claimed = false
		if err := p.advance(ctx, ends[number], nil); err != nil {
			return err
		}
	}
	return nil
}

// Records returns the number of records that were read.
func (b *Build) Records() int64 { return b.records.Load() }

// Ahead returns the number of offsets that are still to be read up to ends.
func (b *Build) Ahead(ends map[int32]int64) (n int64) {
	for number, end := range ends {
		n += max(0, end-b.partitions[number].next)
	}
	return n
}

// Next returns the offset up to which a partition is rebuilt.
func (b *Build) Next(partition int32) int64 {
	if p := b.partitions[partition]; p != nil {
		return p.next
	}
	return 0 // the partition was created after the rebuild began
}

// sawAltered reports whether an event was rebuilt from a record although the live tables have the
// event in a corrected form. The corrected form may be in another row.
func (b *Build) sawAltered() bool { return b != nil && b.alteredSeen.Load() }

// corrections returns the replayed events that differ from the topic's records.
func (b *Build) corrections() (all []*decided) {
	if b == nil {
		return nil
	}
	for _, events := range b.replays {
		for _, e := range events {
			if !e.given {
				all = append(all, e)
			}
		}
	}
	return all
}
