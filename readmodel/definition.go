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

// Definition describes a projection: its name, and how it is run, repaired and rebuilt. Most code
// uses a projection only through this interface. Package rebuild also distinguishes the types of
// projections. See docs/adding-a-projection.md.
type Definition interface {
	// Name is used by --projection, metrics and dead letters. It is stored in the database, so it
	// must never change.
	Name() string
	// FlushEvents is the largest number of events of a partition in one transaction. 0 means as
	// many as memory allows.
	FlushEvents() int
	// Ready returns an error if the database lacks a table or a privilege that the projection needs.
	Ready(ctx context.Context, pool *pgxpool.Pool) error
	// Open prepares the projection for a process. The returned function opens it for one partition.
	Open(cfg RunConfig) func(Partition) session.Projection
	// Tasks returns the work that is repeated while consumers run.
	Tasks(cfg RunConfig) []Task
	// Accounts reports whether the projection stores the state of each account, and parked events,
	// which wait for missing versions. The Observer then regularly receives how many are parked.
	Accounts() bool
	// Replayer returns the Replayer of the projection's dead letters.
	Replayer(cfg RepairConfig) Replayer
	// Memory returns the memory that prevents an event from being processed twice. It is nil if the
	// projection's own table prevents this without a time limit.
	Memory() Memory
	// Rebuilds returns the tables that a rebuild compares and corrects. If there are no such
	// tables, a rebuild is refused.
	Rebuilds() []RebuildTable
	// Custom reports whether this is a custom projection.
	Custom() bool
}

// Memory remembers for a limited time which events a projection has processed.
type Memory interface {
	// PrunedUntil returns the time before which events may have been forgotten. It is zero if
	// nothing was forgotten yet.
	PrunedUntil(ctx context.Context, db Querier) (time.Time, error)
	// Remembered returns those of the given ids whose events are remembered. These events stay
	// remembered until the result of PrunedUntil has advanced by more than MemoryMargin.
	Remembered(ctx context.Context, db Querier, ids []string) ([]string, error)
}

// RebuildTable is a table that a rebuild compares row by row, by its primary key. The rebuild
// replaces rows that differ.
type RebuildTable struct {
	Name string
	// Adds is true if a row is a sum over events. Such a row can only be rebuilt from all events.
	Adds bool
	// Uncompared names columns that are replaced together with the row, but do not count as a
	// difference.
	Uncompared []string
}

// MemoryMargin is how far the result of PrunedUntil has to advance before an event that Remembered
// has returned may be forgotten.
const MemoryMargin = time.Hour

// RunConfig is the configuration that a process gives to its projection. A projection uses only
// the fields it needs.
type RunConfig struct {
	Pool           *pgxpool.Pool
	Formats        event.Resolver
	FirstVersion   int64
	ParkLimit      int64 // the most parked events of an account
	ParkBytes      int64 // the most bytes of an account's parked events; 0 means no limit
	Breaker        projection.BreakerRule
	CacheBytes     func() int // how much memory a partition may use between flushes; it changes with the number of partitions
	Busy           func() int // number of partitions with only few records that should be durable soon; may be nil
	IndexBytes     int        // memory limit of a version index; 0 means no index
	InboxRetention time.Duration
	// Changed is called after the commit of a flush, with the accounts that were written or have
	// new parked events. Only account_balance calls it. It may be nil. It must be fast and safe for
	// concurrent use.
	Changed  func(accountIDs iter.Seq[string])
	Observer Observer
	// Decisions holds what operators have decided about single events. It may be nil.
	Decisions *Decisions
	// Stopping is cancelled when the process must stop. A running query for the index of all
	// versions then ends, so that the process does not wait for it. An index needs Stopping and Log.
	Stopping context.Context
	Log      *slog.Logger
}

// Observer receives metrics that only projections know. Its methods must be safe for concurrent
// use.
type Observer interface {
	Parked(ParkedSummary)
	InboxRows(n int64)
	InboxPruned(n int64)
	DedupHit()
	DedupMiss()
}

// Task is work that is repeated while consumers run. Work that is not finished continues in the
// next run.
type Task struct {
	Name   string // for the log, such as "count parked events"
	Every  time.Duration
	Within time.Duration // time limit of one run; 0 means Every
	Run    func(context.Context) error
}

// Subject is the event of a dead letter. If it cannot be decoded now, the fields have the values
// that were known when it failed.
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
	// Plan sets each record's Decision to the decision that Apply would make now.
	Plan(ctx context.Context, records []*RepairRecord) error
	// Apply applies the records in transactions of bounded size. After each transaction it calls
	// observe, and sets Decided and Decision of the transaction's records. An error does not undo
	// the committed transactions. To continue, apply the same records again.
	Apply(ctx context.Context, records []*RepairRecord, observe func(Step)) error
	// PlanDiscard returns what Discard would do now.
	PlanDiscard(ctx context.Context, list []Discard) ([]Discarded, error)
	// Discard discards dead letters and records this in the audit trail. An error does not undo the
	// committed transactions. The returned results are those of the committed transactions.
	Discard(ctx context.Context, list []Discard) ([]Discarded, error)
}

// Discard is a dead letter that an operator discards. Its account is empty if the event is not known,
// or if no account can have this id.
type Discard struct {
	Subject
	Action Action // the row for the audit trail, with the class and the original record's position
	// Instead is another event of the version. It is parked if the discarded event was parked. It may be
	// nil.
	Instead *projection.Parked
	// NotParked is true if the event was not parked when the plan was made, so Instead is not known. If
	// the event was parked meanwhile, nothing is discarded.
	NotParked bool
}

// Place returns the position of the original record.
func (d *Discard) Place() projection.RecordRef {
	return projection.RecordRef{Topic: d.Action.Topic, Partition: d.Action.Partition, Offset: d.Action.Offset}
}

// Discarded is the result of a Discard.
type Discarded struct {
	// Removed is true if the event was parked and was removed.
	Removed bool
	// Passed is true if the read model already has the event and the dead letter is not a conflict.
	// Then nothing was discarded.
	Passed bool
}

// DefaultFlush is the usual number of events in a flush. It is large enough to make a commit
// worthwhile, and small enough to repeat the flush after a failure.
const DefaultFlush = 10_000
