package rebuild

import (
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// Source streams the committed records of a stretch of a partition, from is part of
// it and to is not. An error ends the iteration.
type Source interface {
	Records(ctx context.Context, partition int32, from, to int64) iter.Seq2[projection.Record, error]
}

// Skip is a version that was passed over on purpose.
type Skip struct {
	AccountID string
	Version   int64
	// Place is where its event stood when it was known; without a topic it was not.
	Place projection.RecordRef
}

// Known reports whether the event that was passed over was known.
func (s *Skip) Known() bool { return s.Place.Topic != "" }

// Replay is a dead letter that was applied to the database directly.
type Replay struct {
	AccountID string
	Version   int64
	Class     event.Class // of the dead letter
	Altered   bool        // what was applied is not what the dead letter has
	Place     projection.RecordRef

	// Found out by reading the topic: the event's id, and whether the topic gives it in a form
	// that can be applied.
	EventID string
	Given   bool
}

// corrects reports whether the topic may not give what was applied: an event that was only early is
// applied again in its turn.
func (r *Replay) corrects() bool { return r.Altered || r.Class != event.VersionGap }

// Config is all a Build needs.
type Config struct {
	Source  Source
	Formats event.Resolver
	Open    func(partition int32) session.Projection
	// PassOver passes over the version if it is the account's next one and, unless
	// seen, if its event waits there; it returns whether the skip is done with.
	PassOver func(ctx context.Context, s *Skip, seen bool) (bool, error)
	// Overdue names those of the partitions that hold parked events whose turn has come.
	Overdue func(ctx context.Context, partitions []int32) ([]int32, error)
	Topic   string
	TopicID string
	Starts  map[int32]int64 // the first offset of each partition
	// Ordered: of two events that claim one version of an account at most one is applied.
	Ordered bool
	Skips   []Skip
	Replays []Replay
	// Discards are the places of events that are left out.
	Discards []projection.RecordRef
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

// CacheBytes is what a partition may remember of accounts.
const CacheBytes = 16 << 20

// Build is a projection that is being rebuilt.
type Build struct {
	cfg        Config
	partitions map[int32]*partition
	replays    []*Replay
	skips      map[string][]Skip                      // by account, ascending
	chosen     map[readmodel.Key]projection.RecordRef // by account and version: the event that people have applied
	passed     atomic.Int64
	records    atomic.Int64
}

// New prepares a build of all partitions in cfg.Starts.
func New(cfg Config) *Build {
	b := &Build{
		cfg: cfg, partitions: map[int32]*partition{}, skips: map[string][]Skip{}, chosen: map[readmodel.Key]projection.RecordRef{},
	}
	for _, s := range cfg.Skips {
		b.skips[s.AccountID] = append(b.skips[s.AccountID], s)
	}
	for number, start := range cfg.Starts {
		p := &partition{
			build: b, number: number, next: start, furthest: start,
			waiting: map[string]struct{}{}, replays: map[int64]*Replay{}, discards: map[int64]bool{},
		}
		p.session = session.New(cfg.Open(number), p, session.Limits{
			Events: flushEvents, Within: attemptWithin, Silence: attemptWithin,
		})
		b.partitions[number] = p
	}
	for _, place := range cfg.Discards {
		if p := b.partitions[place.Partition]; p != nil && place.Topic == cfg.Topic {
			p.discards[place.Offset] = true
		}
	}
	places := map[projection.RecordRef]*Replay{}
	for _, r := range cfg.Replays {
		if cfg.Ordered && !r.Altered && r.Place.Topic == cfg.Topic {
			b.chosen[readmodel.Key{Text: r.AccountID, Number: r.Version}] = r.Place
		}
		if !r.corrects() {
			continue
		}
		one := places[r.Place]
		if one == nil {
			one = &r
			places[r.Place], b.replays = one, append(b.replays, one)
		}
		if p := b.partitions[r.Place.Partition]; p != nil && r.Place.Topic == cfg.Topic {
			p.replays[r.Place.Offset] = one
		}
	}
	return b
}

// Advance brings each partition exactly to its offset in ends. observe, which may be
// nil, is told how many offsets have been passed since the beginning; it is called by
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
	overdue, err := b.cfg.Overdue(ctx, slices.Sorted(maps.Keys(ends)))
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

// Replays are those of the Config that the topic may not give, a place once, with what was found
// out about them.
func (b *Build) Replays() []*Replay { return b.replays }

// ParkLimit parks every event behind a hole: those beyond the live limit are cut off
// when they are compared.
const ParkLimit = math.MaxInt64
