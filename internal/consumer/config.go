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

// DeadLetters publishes dead letters. One call is one attempt. The Delivery remembers which of
// them are acknowledged.
type DeadLetters interface {
	Deliver(context.Context, *dlq.Delivery) error
	// EnsureTopic creates the DLQ topic when it is missing.
	EnsureTopic(context.Context) error
}

// Database is the part of the read model that is shared by all partitions.
type Database interface {
	// Positions reads the stored positions of the group's topic.
	Positions(context.Context) ([]projection.StoredPosition, error)
	// Stop stops a partition for every owner, until a person sets its position. end is the offset
	// up to which the log still has the consumed records, or projection.NoOffset if that is not
	// known. Stop, Halt and PositionCommitted return projection.ErrFenced if fence is old, because
	// the partition was claimed again.
	Stop(ctx context.Context, partition int32, fence, end int64, reason string) error
	// Halt stores for people why a partition has stopped.
	Halt(ctx context.Context, partition int32, fence int64, reason string) error
	// PositionCommitted notes that Kafka's committed offset is where a person has set the position.
	PositionCommitted(ctx context.Context, partition int32, fence int64) error
	// Overdue returns the partitions that have parked events which could be applied and are not.
	Overdue(ctx context.Context, partitions []int32) ([]int32, error)
	// Ready fails when the database cannot be reached or cannot be written.
	Ready(context.Context) error
	// Reset drops the connections, because their server may no longer be the primary.
	Reset()
}

// Access checks the permissions that this program needs on the brokers.
type Access interface {
	// Check asks the brokers. Its error names the missing permissions.
	Check(context.Context) error
	// Consuming returns an error that names the missing permission, if err is about one. It
	// returns any other error unchanged.
	Consuming(error) error
}

// Observer counts. Its methods must be cheap and safe for concurrent use.
type Observer interface {
	Assigned(topic string, partition int32)
	Revoked(topic string, partition int32)
	// Flushed counts what a flush has made durable, and how long that took.
	Flushed(topic string, partition int32, f *projection.Flushed, took time.Duration)
	Retry(dependency, reason string)
	Retrying(topic string, partition int32, on bool)
	Status(topic string, partition int32, breakerOpen, paused bool)
	Lag(topic string, partition int32, records int64, seconds float64)
}

// Health receives the conditions that make the instance unready.
type Health interface {
	Fail(condition, reason string)
	FailAfter(condition, reason string, grace time.Duration)
	OK(condition string)
	Started()
	Stopping()
	Beat()
}

// Config is all a Consumer needs.
type Config struct {
	Client      []kgo.Opt // options of every client: seeds, security, logger
	Member      []kgo.Opt // options of the group's member only: hooks that observe it
	Topic       string
	Group       string
	Owner       string // unique to this process
	Formats     event.Resolver
	Open        func(partition int32) session.Projection
	DeadLetters DeadLetters
	Database    Database
	Access      Access // nil: permissions are not checked
	Observer    Observer
	Trace       func(partition int32) Trace // nil: no record is traced
	Health      Health
	Log         *slog.Logger
	Retry       retry.Policy // its Attempt is one attempt's deadline
	Limits      Limits
	// SessionTimeout is how long a member may be silent before the group removes it; 0: 30 s.
	SessionTimeout time.Duration
	DrainWithin    time.Duration // how long a stop may take to flush what is pending
}

// Limits bound memory and latency.
type Limits struct {
	BatchBytes  int           // largest batch of records, decompressed; the whole batch is in memory
	FetchBytes  int           // size of one fetch, before decompression; two may run at a time
	QueueBytes  int           // records that are fetched and not yet folded, of all partitions; at worst twice as much
	FlushEvents int           // a flush at the latest after this many events of a partition
	FlushBytes  int           // … or when a partition has its share of these bytes pending, not counting account rows
	FlushAge    time.Duration // … or this long after the first event, when far behind
}

// DefaultLimits are meant for one instance of 512 MiB.
func DefaultLimits() Limits {
	return Limits{
		BatchBytes:  64 << 20,
		FetchBytes:  8 << 20,
		QueueBytes:  25 << 20,
		FlushEvents: 2_000_000,
		FlushBytes:  42 << 20,
		FlushAge:    4 * time.Second,
	}
}

// Trace traces single records of a partition up to their transaction. The worker's goroutine
// calls all methods except Pick. They must not wait and cannot fail: tracing must not change
// how a record is processed.
type Trace interface {
	// Pick appends the records that are traced to picked. The decoder calls it.
	Pick(picked, records []*kgo.Record) []*kgo.Record
	// Folding is called before a chunk is folded, with the picked records of the chunk.
	Folding(picked []*kgo.Record)
	// Flushing is called once per flush. The flush makes everything before next durable.
	Flushing(next int64)
	// Context returns ctx with the span of the worker's current step for traced records.
	Context(ctx context.Context) context.Context
	// Flushed is called after a flush: everything before next is durable.
	Flushed(next int64, c *projection.Flushed)
	// Dropped is called when all records that are not durable are dropped, to be read again.
	Dropped(reason error)
}

func (c *Consumer) trace(partition int32) Trace {
	if c.cfg.Trace == nil {
		return untraced{}
	}
	return c.cfg.Trace(partition)
}

// untraced traces nothing.
type untraced struct{}

func (untraced) Pick(picked, _ []*kgo.Record) []*kgo.Record { return picked }

func (untraced) Folding([]*kgo.Record) {}

func (untraced) Flushing(int64) {}

func (untraced) Context(ctx context.Context) context.Context { return ctx }

func (untraced) Flushed(int64, *projection.Flushed) {}

func (untraced) Dropped(error) {}
