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

// DeadLetters publishes. One call is one attempt; what is acknowledged stays so.
type DeadLetters interface {
	Deliver(context.Context, *dlq.Delivery) error
	// EnsureTopic creates the DLQ topic when it is missing.
	EnsureTopic(context.Context) error
}

// Database is the part of the read model that is shared by all partitions.
type Database interface {
	// Positions reads the stored positions of the group's topic.
	Positions(context.Context) ([]projection.StoredPosition, error)
	// Stop stops a partition for every owner, until a person sets its position. Before the
	// offset end the log is the one that was consumed; projection.NoOffset: not known. Stop, Halt
	// and PositionCommitted return projection.ErrFenced if fence is not the partition's.
	Stop(ctx context.Context, partition int32, fence, end int64, reason string) error
	// Halt stores for people why a partition has stopped.
	Halt(ctx context.Context, partition int32, fence int64, reason string) error
	// PositionCommitted notes that Kafka's committed offset is where a person has set the position.
	PositionCommitted(ctx context.Context, partition int32, fence int64) error
	// Overdue names those of the partitions that hold parked events whose turn has
	// come, and that are not being applied.
	Overdue(ctx context.Context, partitions []int32) ([]int32, error)
	// Ready fails when the database cannot be reached or cannot be written.
	Ready(context.Context) error
	// Reset drops the connections, which may lead to a server that is no longer primary.
	Reset()
}

// Access knows which permissions of the brokers are needed.
type Access interface {
	// Check asks the brokers, and names what is missing.
	Check(context.Context) error
	// Consuming names the missing permission an error of consuming stands for.
	// Other errors are returned as they are.
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
	Standing(topic string, partition int32, breakerOpen, paused bool)
	Lag(topic string, partition int32, records int64, seconds float64)
}

// Health receives what keeps work from flowing.
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
	Client      []kgo.Opt // seeds, security, logger: of every client
	Member      []kgo.Opt // of the group's member only: what observes it
	Topic       string
	Group       string
	Owner       string // unique to this process
	Formats     event.Resolver
	Open        func(partition int32) session.Projection
	DeadLetters DeadLetters
	Database    Database
	Access      Access // nil: nobody asks
	Observer    Observer
	Trace       func(partition int32) Trace // nil: no record is followed
	Health      Health
	Log         *slog.Logger
	Retry       retry.Policy // its Attempt is one attempt's deadline
	Limits      Limits
	// SessionTimeout is how long the group waits for a member that is silent; 0: 30 s.
	SessionTimeout time.Duration
	DrainWithin    time.Duration // how long SIGTERM may take to flush what is pending
}

// Limits bound memory and latency.
type Limits struct {
	BatchBytes  int           // largest batch of records, decompressed: it is in memory as a whole
	FetchBytes  int           // what one fetch may bring, before decompression; two may be under way
	QueueBytes  int           // records fetched and not yet folded, all partitions together; twice that at worst
	FlushEvents int           // a flush at the latest after this many events of a partition
	FlushBytes  int           // … or when its share of these bytes is pending, accounts aside
	FlushAge    time.Duration // … or this long after the first, when far behind
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

// Trace follows single records of a partition to the transaction they end in. The
// worker's goroutine calls it, but for Pick. Its methods must not wait and cannot
// fail: a record is projected whether or not it is followed.
type Trace interface {
	// Pick appends those of the records that are followed. The decoder calls it.
	Pick(picked, records []*kgo.Record) []*kgo.Record
	// Folding begins to follow what was picked of the chunk that is folded next.
	Folding(picked []*kgo.Record)
	// Flushing is called once per flush: everything before next is to be made durable.
	Flushing(next int64)
	// Context is ctx with what the worker is about to do on behalf of followed records.
	Context(ctx context.Context) context.Context
	// Flushed receives what has become durable: everything before next.
	Flushed(next int64, c *projection.Flushed)
	// Dropped receives why everything that is not durable is dropped: it will be read again.
	Dropped(reason error)
}

// trace is what follows the records of a partition.
func (c *Consumer) trace(partition int32) Trace {
	if c.cfg.Trace == nil {
		return untraced{}
	}
	return c.cfg.Trace(partition)
}

// untraced follows nothing.
type untraced struct{}

func (untraced) Pick(picked, _ []*kgo.Record) []*kgo.Record { return picked }

func (untraced) Folding([]*kgo.Record) {}

func (untraced) Flushing(int64) {}

func (untraced) Context(ctx context.Context) context.Context { return ctx }

func (untraced) Flushed(int64, *projection.Flushed) {}

func (untraced) Dropped(error) {}
