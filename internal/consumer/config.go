package consumer

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/retry"
	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
)

// DeadLetters publishes dead letters to Kafka. One call of Deliver is one attempt. The Delivery
// knows which dead letters are already acknowledged.
type DeadLetters interface {
	Deliver(context.Context, *dlq.Delivery) error
	// EnsureTopic creates the DLQ topic when it is missing.
	EnsureTopic(context.Context) error
}

// Database has the operations of the read model that are not part of session.Projection.
type Database interface {
	// Positions reads the stored positions of the group's topic.
	Positions(context.Context) ([]projection.StoredPosition, error)
	// Stop stops a partition for every owner, until a person sets its position. The parameter end
	// is the offset up to which the log still has the consumed records. It is projection.NoOffset
	// if the offset is not known. Stop, Halt and PositionCommitted return projection.ErrFenced if
	// another owner has claimed the partition meanwhile. Each claim raises the fence.
	Stop(ctx context.Context, partition int32, fence, end int64, reason string) error
	// Halt stores the reason why a partition has stopped, for the commands that show it.
	Halt(ctx context.Context, partition int32, fence int64, reason string) error
	// PositionCommitted notes that the position that a person has set is now Kafka's committed
	// offset.
	PositionCommitted(ctx context.Context, partition int32, fence int64) error
	// Overdue returns the partitions that have parked events which could be applied now.
	Overdue(ctx context.Context, partitions []int32) ([]int32, error)
	// Ready fails if the database cannot be reached or does not accept writes.
	Ready(context.Context) error
	// Reset closes the connections, because their server may no longer be the primary.
	Reset()
}

// Access checks the permissions that this program needs on the brokers.
type Access interface {
	// Check asks the brokers which permissions this client has. The error lists the missing
	// permissions.
	Check(context.Context) error
	// Consuming returns an error that names the missing permission, if the given error is a
	// permission error. It returns any other error unchanged.
	Consuming(error) error
}

// Observer receives the counts and gauges of the consumer. Its methods must be cheap and safe for
// concurrent use.
type Observer interface {
	Assigned(partition int32)
	Revoked(partition int32)
	// Flushed receives the result of a successful flush and the duration of the flush.
	Flushed(partition int32, f *projection.Flushed, took time.Duration)
	Retry(dependency, reason string)
	Retrying(partition int32, on bool)
	Status(partition int32, breakerOpen, paused bool)
	Lag(partition int32, records int64, seconds float64)
}

// Health receives the conditions that make the instance unready.
type Health interface {
	Fail(condition, reason string)
	FailAfter(condition, reason string, grace time.Duration)
	// Warn reports a problem that does not make the instance unready. OK ends it.
	Warn(condition, reason string)
	OK(condition string)
	Started()
	Stopping()
	Beat()
}

// Config has the settings and dependencies of a Consumer.
type Config struct {
	Client      []kgo.Opt // options of every client: seed brokers, security, logger
	Member      []kgo.Opt // hooks that only the group member's client has
	Topic       string
	Group       string
	Owner       string // unique to this process
	Formats     event.Resolver
	Open        func(partition int32) session.Projection
	DeadLetters DeadLetters
	Database    Database
	Access      Access
	Observer    Observer
	Trace       func(partition int32) Trace // may be nil; then no record is traced
	Health      Health
	Log         *slog.Logger
	Retry       retry.Policy // Attempt limits one attempt, or its time without an answer
	Limits      Limits
	// SessionTimeout is how long a member may be silent before the group removes it. 0 means 30 s.
	SessionTimeout time.Duration
	DrainWithin    time.Duration // time to flush the pending records at a stop
}

// Limits has the limits of memory and latency.
type Limits struct {
	BatchBytes  int           // largest decompressed batch of records; it is in memory as a whole
	FetchBytes  int           // size of one fetch before decompression; two may run at a time
	QueueBytes  int           // fetched, not yet decoded records of all partitions; twice this is possible
	FlushEvents int           // flush a partition after this many events
	FlushBytes  int           // flush a partition when its share of these bytes is pending
	FlushAge    time.Duration // flush a lagging partition this long after its first pending event
}

// DefaultLimits returns limits for an instance with 512 MiB.
func DefaultLimits() Limits {
	return Limits{
		BatchBytes:  64 << 20,
		FetchBytes:  8 << 20,
		QueueBytes:  25 << 20,
		FlushEvents: 2_000_000,
		FlushBytes:  42 << 20,
		FlushAge:    8 * time.Second,
	}
}

// Trace traces single records of a partition up to their transaction. The worker's goroutine calls
// all methods except Pick. The methods must not wait, and they return no error. Tracing must not
// change how a record is processed.
type Trace interface {
	// Pick appends to the slice picked those records that are traced. The decoder calls it.
	Pick(picked, records []*kgo.Record) []*kgo.Record
	// Folding is called before a chunk is folded, with the picked records of the chunk.
	Folding(picked []*kgo.Record)
	// Flushing is called at the start of each flush. If the flush succeeds, everything before the
	// offset next is durable.
	Flushing(next int64)
	// Context returns ctx with the span of the worker's current step for traced records.
	Context(ctx context.Context) context.Context
	// Flushed is called after a flush has made everything before the offset next durable.
	Flushed(next int64, c *projection.Flushed)
	// Dropped is called when all records that are not durable are dropped and will be read again.
	Dropped(reason error)
}

// untraced traces nothing.
type untraced struct{}

func (untraced) Pick(picked, _ []*kgo.Record) []*kgo.Record { return picked }

func (untraced) Folding([]*kgo.Record) {}

func (untraced) Flushing(int64) {}

func (untraced) Context(ctx context.Context) context.Context { return ctx }

func (untraced) Flushed(int64, *projection.Flushed) {}

func (untraced) Dropped(error) {}
