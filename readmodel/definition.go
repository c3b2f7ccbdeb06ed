package readmodel

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
)

// Definition is a projection as a program knows it: how it is called, run, and repaired.
// All that is told apart by projections goes through it. See
// docs/adding-a-projection.md.
type Definition interface {
	// Name is what --projection, metrics and dead letters call it. It is stored in
	// the database, so it never changes.
	Name() string
	// FlushEvents is how many events of a partition one transaction takes in at
	// most; 0: as many as memory allows.
	FlushEvents() int
	// Ready fails when the database lacks what the projection needs.
	Ready(ctx context.Context, pool *pgxpool.Pool) error
	// Open prepares the projection for a process and returns what makes that of one
	// partition.
	Open(cfg RunConfig) func(Partition) session.Projection
	// Tasks are what runs beside the consuming.
	Tasks(cfg RunConfig) []Task
	// Reports is what of the Observer the projection reports again and again.
	Reports() Reports
	// Replayer deals with the projection's dead letters.
	Replayer(cfg RepairConfig) Replayer
	// Memory is what keeps an event from being taken in twice; nil: the projection's own
	// table does, for ever.
	Memory() Memory
	// Rebuilds are the tables that a rebuild compares and puts right; none: it is refused.
	Rebuilds() []RebuildTable
}

// Memory knows which events a projection has taken in, and forgets them with time.
type Memory interface {
	// PrunedUntil is before when what was remembered may be forgotten; the zero time when
	// nothing was forgotten yet.
	PrunedUntil(ctx context.Context, db Querier) (time.Time, error)
	// Remembered returns which of the events, by their ids, are remembered, and stay so until
	// PrunedUntil has advanced by more than MemoryMargin.
	Remembered(ctx context.Context, db Querier, ids []string) ([]string, error)
}

// RebuildTable is a table that a rebuild compares row by row, by its primary key. Rows that
// differ are replaced.
type RebuildTable struct {
	Name string
	// Adds: its rows add up events, so that they cannot be rebuilt from a part of them.
	Adds bool
	// Uncompared names columns that are written with a row and not compared: a row that differs
	// in nothing else is right.
	Uncompared []string
}

// MemoryMargin is for how much longer an event has to be remembered than to the moment.
const MemoryMargin = time.Hour

// RunConfig is what a process gives to the projection it runs. A projection takes
// what it needs.
type RunConfig struct {
	Pool           *pgxpool.Pool
	Formats        event.Resolver
	FirstVersion   int64
	ParkLimit      int64
	ParkBytes      int64
	Breaker        projection.BreakerRule
	CacheBytes     func() int // what a partition may remember between flushes, as of now
	IndexBytes     int        // what a version index may take, out of half of the CacheBytes of all partitions; 0: none is read
	InboxRetention time.Duration
	// Changed is as in BalanceConfig, of account_balance.
	Changed  func(accountIDs iter.Seq[string])
	Observer Observer
	// Decisions are what people have decided about single events; nil: nothing.
	Decisions *Decisions
	// Ends is done when the process is told to stop: what only saves work ends with it.
	Ends context.Context
	Log  *slog.Logger
}

// Observer counts what only projections know of. Its methods must be safe for
// concurrent use.
type Observer interface {
	Parked(ParkedSummary)
	InboxRows(n int64)
	InboxPruned(n int64)
	DedupHit(n int)
	DedupMiss(n int)
	DedupError(n int)
}

// Reports is what there is to know of a projection beside its partitions.
type Reports struct {
	Parked bool // what waits behind holes
	Inbox  bool // the rows of the inbox
}

// Task is a piece of work that is done again and again beside the consuming. What
// it does not get done this time it does the next.
type Task struct {
	Name   string // what is done, for the log: "count parked events"
	Every  time.Duration
	Within time.Duration // how long it may take; 0: as long as Every
	Run    func(context.Context) error
}

// Subject is the event a dead letter is about: as it can be read now, else as it
// could be read when it failed.
type Subject struct {
	AccountID string
	Version   int64
	EventID   string
	FailedAt  time.Time
	Decoded   *event.Decoded
}

// Replayer deals with the dead letters of a projection, beside running consumers.
type Replayer interface {
	// ReplayStatuses tells how each of the subjects stands to the read model now.
	ReplayStatuses(ctx context.Context, subjects []Subject) ([]projection.ReplayStatus, error)
	// Plan tells by each record's Decision what Apply would do with it now.
	Plan(ctx context.Context, records []*RepairRecord) error
	// Apply applies the records in transactions of bounded size, tells observe of
	// each, and sets the Decision of those that are Decided. What was committed before
	// an error stays; to go on, apply the same records again.
	Apply(ctx context.Context, records []*RepairRecord, observe func(Step)) error
}

// AppendDefinition is a projection whose events each stand for themselves. Label, ReadyQuery
// and Tables are what one has to say; the rest may be left out.
type AppendDefinition struct {
	Label string // see Definition.Name
	// ReadyQuery returns what the database lacks, one item per row.
	ReadyQuery string
	// Check fails when the database lacks what the projection needs beside that; nil: nothing.
	Check func(context.Context, *pgxpool.Pool) error
	// Tables makes the table of one partition. No partition, for repairs, is the zero
	// one but for its projection.
	Tables func(Partition) Table
	// Flush is how many events one transaction takes in at most; 0: DefaultFlush.
	Flush int
	// Recent makes a partition's recent-event cache; nil: there is none.
	Recent func(RunConfig) Recent
	// Beside are the tasks that run beside the consuming; nil: none.
	Beside func(RunConfig) []Task
	// Told is what those tasks report; see Definition.Reports.
	Told Reports
	// Doubts answers, for an event that failed at some time and cannot be found in the
	// table, why it may have been taken in all the same; empty when that cannot be.
	// nil: what is not in the table was not taken in.
	Doubts func(ctx context.Context, db Querier) (func(failedAt time.Time) string, error)
	// Remembers is Definition.Memory.
	Remembers Memory
	// RebuildTables is Definition.Rebuilds.
	RebuildTables []RebuildTable
	// Own: it is one of somebody's own, and the audit trail names it.
	Own bool
	// Rebuildable fails when a rebuild, whose tables the pool sees first, would write others;
	// nil: it does not.
	Rebuildable func(context.Context, *pgxpool.Pool) error
}

var _ Definition = AppendDefinition{}

// DefaultFlush is enough for a transaction to be worth its commit, and little enough
// to be decided again without regret.
const DefaultFlush = 10_000

// Name implements Definition.
func (k AppendDefinition) Name() string { return k.Label }

// named is what the audit trail calls it; empty: it does not.
func (k AppendDefinition) named() string {
	if k.Own {
		return k.Label
	}
	return ""
}

// FlushEvents implements Definition.
func (k AppendDefinition) FlushEvents() int {
	if k.Flush > 0 {
		return k.Flush
	}
	return DefaultFlush
}

// Ready implements Definition.
func (k AppendDefinition) Ready(ctx context.Context, pool *pgxpool.Pool) error {
	if err := checkReady(ctx, pool, k.ReadyQuery); err != nil || k.Check == nil {
		return err
	}
	return k.Check(ctx, pool)
}

// Open implements Definition.
func (k AppendDefinition) Open(cfg RunConfig) func(Partition) session.Projection {
	return func(p Partition) session.Projection {
		p.Projection = k.Label
		events := AppendConfig{Pool: cfg.Pool, Partition: p, Table: k.Tables(p), Observer: cfg.Observer, Breaker: cfg.Breaker, Decisions: cfg.Decisions}
		if k.Recent != nil {
			events.Recent = k.Recent(cfg)
		}
		return NewAppendProjection(events)
	}
}

// Tasks implements Definition.
func (k AppendDefinition) Tasks(cfg RunConfig) []Task {
	if k.Beside == nil {
		return nil
	}
	return k.Beside(cfg)
}

// Reports implements Definition.
func (k AppendDefinition) Reports() Reports { return k.Told }

// Replayer implements Definition.
func (k AppendDefinition) Replayer(cfg RepairConfig) Replayer {
	return &appendReplayer{kind: k, cfg: cfg, table: k.Tables(Partition{Projection: k.Label})}
}

// Memory implements Definition.
func (k AppendDefinition) Memory() Memory { return k.Remembers }

// Rebuilds implements Definition.
func (k AppendDefinition) Rebuilds() []RebuildTable { return k.RebuildTables }
