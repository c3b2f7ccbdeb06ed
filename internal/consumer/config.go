package consumer

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/retry"
	"projector/projection"
	"projector/projection/event"
)

// Projection is what one partition's records are turned into. One goroutine at a
// time uses it.
type Projection interface {
	// Claim takes the partition over and forgets all that was pending.
	Claim(context.Context, projection.Claim) (projection.Position, error)
	// Judge folds records in order until limit events are pending and answers how
	// many it judged; after an error it is called again with the rest.
	Judge(ctx context.Context, records []projection.Judgeable, limit int) (int, error)
	// Heal folds a bounded piece of what waits in the database and reports whether
	// more of it waits.
	Heal(ctx context.Context, limit int) (bool, error)
	// Pending tells how much waits to be flushed.
	Pending() projection.Pending
	// Changes is what a flush publishes and writes.
	Changes() *projection.Changes
	// Verify answers projection.ErrFenced or ErrStale unless the dead letters' verdicts hold.
	Verify(context.Context, *projection.Changes) error
	// Write makes the changes durable together with the position.
	Write(ctx context.Context, next projection.NextOffset, c *projection.Changes) error
	// Reject makes the only pending event be judged as refused by the database;
	// false when it was judged so already.
	Reject(reason string) bool
}

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
	// Stop stops a partition for every owner, until a person sets its position. end is up to
	// where the log still is what was consumed, projection.NoOffset if that is not known. It
	// answers, as do Halt and Settle, projection.ErrFenced if fence is not the partition's.
	Stop(ctx context.Context, partition int32, fence, end int64, reason string) error
	// Halt notes for people why a partition stands still.
	Halt(ctx context.Context, partition int32, fence int64, reason string) error
	// Settle notes that Kafka's committed offset is where a person has set the position.
	Settle(ctx context.Context, partition int32, fence int64) error
	// Stranded names those of the partitions that hold parked events whose turn has
	// come, and that nobody is applying.
	Stranded(ctx context.Context, partitions []int32) ([]int32, error)
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
	// Other errors come back as they are.
	Consuming(error) error
}

// Observer counts. Its methods must be cheap and safe for concurrent use.
type Observer interface {
	Assigned(topic string, partition int32)
	Revoked(topic string, partition int32)
	Consumed(topic string, partition int32, outcome string, n int)
	DeadLettered(topic, class string, n int)
	Batch(d time.Duration, records int)
	Retry(dependency, reason string)
	Retrying(topic string, partition int32, on bool)
	Lag(topic string, partition int32, records int64, seconds float64)
	Healed(n int)
	ParkOverflow(n int)
	Progress(at time.Time)
}

// Health is told what keeps work from flowing.
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
	Open        func(partition int32) Projection
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
	QueueBytes  int           // records fetched and not yet judged, all partitions together; twice that at worst
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
		FlushEvents: 500_000,
		FlushBytes:  42 << 20,
		FlushAge:    4 * time.Second,
	}
}
