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
	"projector/readmodel/appended"
)

// Source streams the committed records of a stretch of a partition, from is part of
// it and to is not. An error ends the iteration.
type Source interface {
	Records(ctx context.Context, partition int32, from, to int64) iter.Seq2[projection.Record, error]
}

// Config is what a Build reads and writes.
type Config struct {
	Source       Source
	Formats      event.Resolver
	FirstVersion int64
	Topic        string
	TopicID      string
	Starts       map[int32]int64 // the first offset of each partition
	Open         func(partition int32) session.Projection
	// Overdue names those of the partitions that hold parked events whose turn has come.
	Overdue func(ctx context.Context, topic string, partitions []int32) ([]int32, error)

	// What people have decided; see Shadow.Build.
	ordered                  bool // of two events that claim one version of an account at most one is applied
	skips, replays, discards []decided
	skipAgain                func(ctx context.Context, e *decided, seen bool) (bool, error)
}

const (
	// atOnce is how many partitions are read at a time.
	atOnce = 4
	// chunkRecords is how many records are folded at a time.
	chunkRecords = 512
	// flushEvents and flushBytes bound one transaction, and with it the memory.
	flushEvents = 200_000
	flushBytes  = 16 << 20
)

// cacheBytes is what a partition may remember of accounts.
const cacheBytes = 16 << 20

// Build reads a topic into the tables of a projection, up to given offsets.
type Build struct {
	cfg        Config
	partitions map[int32]*partition
	replays    map[projection.RecordRef][]*decided
	discards   map[projection.RecordRef][]*decided
	skips      map[string][]decided                  // by account, ascending
	chosen     map[appended.Key]projection.RecordRef // by account and version: the event that people have applied
	passed     atomic.Int64
	records    atomic.Int64
}

// New prepares a build of all partitions in cfg.Starts.
func New(cfg Config) *Build {
	b := &Build{
		cfg: cfg, partitions: map[int32]*partition{}, skips: map[string][]decided{}, discards: map[projection.RecordRef][]*decided{},
		replays: map[projection.RecordRef][]*decided{}, chosen: map[appended.Key]projection.RecordRef{},
	}
	for number, start := range cfg.Starts {
		p := &partition{build: b, number: number, next: start, furthest: start, waiting: map[string]struct{}{}, skipped: map[string]int64{}}
		p.session = session.New(cfg.Open(number), p, session.Limits{
			Events: flushEvents, Within: attemptWithin, Silence: attemptWithin,
		})
		b.partitions[number] = p
	}
	for i := range cfg.skips {
		e := cfg.skips[i]
		b.skips[e.accountID] = append(b.skips[e.accountID], e)
	}
	for i := range cfg.discards {
		e := &cfg.discards[i]
		b.discards[e.place] = append(b.discards[e.place], e)
	}
	for i := range cfg.replays {
		e := &cfg.replays[i]
		e.given = !e.altered && e.place.Topic == cfg.Topic
		if cfg.ordered && e.given {
			b.chosen[appended.Key{Text: e.accountID, Number: e.version}] = e.place
		}
		b.addReplay(e)
	}
	return b
}

// addReplay adds an event that was applied by dlq replay: once, also when it was applied several
// times.
func (b *Build) addReplay(e *decided) {
	same := func(one *decided) bool { return one.accountID == e.accountID && one.version == e.version }
	of := b.replays[e.place]
	if i := slices.IndexFunc(of, same); i >= 0 {
		e.given = e.given && of[i].given
		of[i] = e
		return
	}
	b.replays[e.place] = append(of, e)
}

// Advance brings each partition exactly to its offset in ends. observe, which may be
// nil, gets how many offsets have been read since the beginning; it is called by
// several goroutines.
func (b *Build) Advance(ctx context.Context, ends map[int32]int64, observe func(passed int64)) error {
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for number, end := range ends {
		group.Go(func() error { return b.partitions[number].advance(reading, end, observe) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return b.healOverdue(ctx, ends)
}

// healOverdue applies what was parked because its predecessor, in another partition, was
// read later.
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

// Records is how many records were read, those read again included.
func (b *Build) Records() int64 { return b.records.Load() }

// Ahead is how many offsets lie between where the build is and ends.
func (b *Build) Ahead(ends map[int32]int64) (n int64) {
	for number, end := range ends {
		n += max(0, end-b.partitions[number].next)
	}
	return n
}

// Next is up to where a partition is rebuilt.
func (b *Build) Next(partition int32) int64 {
	if p := b.partitions[partition]; p != nil {
		return p.next
	}
	return 0 // made since
}

// corrections are the replayed events that the topic does not give.
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
