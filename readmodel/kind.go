package readmodel

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
)

// Kind is a projection as a program knows it: how it is called, run, and repaired.
// All that is told apart by projections goes through it. See
// docs/adding-a-projection.md.
type Kind interface {
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
	Open(cfg RunConfig) func(Partition) Projection
	// Tasks are what runs beside the consuming.
	Tasks(cfg RunConfig) []Task
	// Reports is what of the Observer the projection reports again and again.
	Reports() Reports
	// Letters deals with the projection's dead letters.
	Letters(cfg RepairConfig) Letters
	// Memory is what keeps an event from being taken in twice; nil: the projection's own
	// table does, for ever.
	Memory() Memory
}

// Memory knows which events a projection has taken in, and forgets them with time.
type Memory interface {
	// Forgets reports whether anything was forgotten yet.
	Forgets(ctx context.Context, db Querier) (bool, error)
	// Remembered answers which of the events, by their ids, are remembered now and for an
	// hour to come.
	Remembered(ctx context.Context, db Querier, ids []string) ([]string, error)
}

// Projection is what the records of one partition are turned into. One goroutine at
// a time uses it. internal/consumer, which drives it, says what each method does.
type Projection interface {
	Claim(context.Context, projection.Claim) (projection.Position, error)
	Judge(ctx context.Context, records []projection.Judgeable, limit int) (int, error)
	Heal(ctx context.Context, limit int) (bool, error)
	Pending() projection.Pending
	Changes() *projection.Changes
	Verify(context.Context, *projection.Changes) error
	Write(ctx context.Context, next projection.NextOffset, c *projection.Changes) error
	Reject(reason string) bool
}

// RunConfig is what a process gives to the projection it runs. A projection takes
// what it needs.
type RunConfig struct {
	Pool           *pgxpool.Pool
	Formats        event.Resolver
	FirstVersion   int64
	ParkLimit      int64
	CacheBytes     func() int // what a partition may remember between flushes, as of now
	FloorBytes     int        // what floors may take, out of half of the CacheBytes of all partitions; 0: none are read
	InboxRetention time.Duration
	Observer       Observer
	// Ends is done when the process is told to stop: what only saves work ends with it.
	Ends context.Context
	Log  *slog.Logger
}

// Observer counts what only projections know of. Its methods must be safe for
// concurrent use.
type Observer interface {
	Parked(accounts, events int64, oldestGap time.Duration)
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

// Letters deals with the dead letters of a projection, beside running consumers.
type Letters interface {
	// Standings tells how each of the subjects stands to the read model now.
	Standings(ctx context.Context, subjects []Subject) ([]projection.Standing, error)
	// Plan tells by each record's Verdict what Apply would do with it now.
	Plan(ctx context.Context, records []*RepairRecord) error
	// Apply applies the records in transactions of bounded size, tells observe of
	// each, and sets the Verdict of those that are Judged. What was committed before
	// an error stays; to go on, apply the same records again.
	Apply(ctx context.Context, records []*RepairRecord, observe func(Step)) error
}
