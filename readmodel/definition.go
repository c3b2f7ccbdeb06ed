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

// BalanceName is the name of the account_balance projection.
const BalanceName = "account_balance"

// Definition is a projection as a program knows it: how it is called, run, and repaired.
// All differences between projections go through it. See
// docs/adding-a-projection.md.
type Definition interface {
	// Name is what --projection, metrics and dead letters call it. It is stored in
	// the database, so it never changes.
	Name() string
	// FlushEvents is how many events of a partition one transaction has at
	// most; 0: as many as memory allows.
	FlushEvents() int
	// Ready fails when the database lacks what the projection needs.
	Ready(ctx context.Context, pool *pgxpool.Pool) error
	// Open prepares the projection for a process and returns what makes that of one
	// partition.
	Open(cfg RunConfig) func(Partition) session.Projection
	// Tasks run next to the consumers.
	Tasks(cfg RunConfig) []Task
	// Reports is what of the Observer the projection reports again and again.
	Reports() Reports
	// Replayer deals with the projection's dead letters.
	Replayer(cfg RepairConfig) Replayer
	// Memory keeps an event from being processed twice; nil: the projection's own
	// table does, for ever.
	Memory() Memory
	// Rebuilds are the tables that a rebuild compares and puts right; none: it is refused.
	Rebuilds() []RebuildTable
	// Custom reports whether it is a custom projection, which the audit trail names.
	Custom() bool
}

// Memory knows which events a projection has processed, and forgets them with time.
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
	Busy           func() int // how many partitions have records that are not durable yet, as of now; nil: not known
	IndexBytes     int        // what a version index may take, out of half of the CacheBytes of all partitions; 0: none is read
	InboxRetention time.Duration
	// Changed is as in BalanceConfig, of account_balance.
	Changed  func(accountIDs iter.Seq[string])
	Observer Observer
	// Decisions are what people have decided about single events; nil: nothing.
	Decisions *Decisions
	// Ends is done when the process is asked to stop: what only saves work ends with it.
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

// Reports is what a projection reports apart from its partitions.
type Reports struct {
	Parked bool // what waits for missing versions
	Inbox  bool // the rows of the inbox
}

// Task is work that is repeated while consumers run. What it does not finish it does the next
// time.
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

// Replayer replays the dead letters of a projection while consumers run.
type Replayer interface {
	// ReplayStatuses returns the state of each subject in the read model now.
	ReplayStatuses(ctx context.Context, subjects []Subject) ([]projection.ReplayStatus, error)
	// Plan sets each record's Decision to what Apply would do with it now.
	Plan(ctx context.Context, records []*RepairRecord) error
	// Apply applies the records in transactions of bounded size, calls observe for
	// each, and sets the Decision of those that are Decided. What was committed before
	// an error stays; to go on, apply the same records again.
	Apply(ctx context.Context, records []*RepairRecord, observe func(Step)) error
}

// DefaultFlush is enough for a transaction to be worth its commit, and little enough
// to be decided again without regret.
const DefaultFlush = 10_000
