package process

import (
	"context"
	"log/slog"
	"time"

	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/pace"
	"projector/internal/retry"
	"projector/internal/telemetry"
	"projector/projection"
)

type projectFlags struct {
	flags.GroupFlags
	flags.ParkFlags
	BreakerWindow  int           `env:"BREAKER_WINDOW" default:"1000" placeholder:"N" group:"Projection" help:"Number of a partition's last records to which --breaker-share applies (default 1000)."`
	BreakerShare   float64       `env:"BREAKER_SHARE" default:"0.5" placeholder:"SHARE" group:"Projection" help:"Share of dead letters that stops a partition until projector resume, from 0 to 1; 0 turns it off (default 0.5)."`
	RetryInitial   time.Duration `env:"RETRY_INITIAL" default:"1s" placeholder:"DURATION" group:"Projection" help:"First wait after a transient error (default 1s)."`
	SessionTimeout time.Duration `env:"KAFKA_SESSION_TIMEOUT" default:"30s" placeholder:"DURATION" group:"Projection" help:"How soon the partitions of a dead instance are taken over (default 30s)."`
	MaxBatchBytes  flags.Size    `env:"MAX_BATCH_BYTES" default:"64MiB" placeholder:"SIZE" group:"Projection" help:"Largest accepted batch of records, decompressed; a larger one stops its partition (default 64MiB)."`
	RetryMax       time.Duration `env:"RETRY_MAX" default:"60s" placeholder:"DURATION" group:"Projection" help:"Longest wait, also of the first one (default 60s)."`
	AcceptChanged  bool          `name:"accept-changed-file" group:"Projection" help:"Continue with a projection file that has changed. Existing rows were made with the old version; projector rebuild makes them again."`
	AcceptMapping  bool          `name:"accept-changed-mapping" group:"Projection" help:"Continue with a mapping or a first version that reads stored events differently. Existing rows were made with the old one; projector rebuild makes them again."`
	AnotherTopic   bool          `group:"Projection" help:"Continue although the rows of the projection came from another topic."`
	InboxRetention time.Duration `env:"INBOX_RETENTION" default:"168h" placeholder:"DURATION" group:"Projection" help:"How long an additive projection remembers the events it has processed (default 168h)."`
}

// defaultRetryInitial is the default of RetryInitial.
const defaultRetryInitial = time.Second

func (f *projectFlags) validate() error {
	if err := f.Check(); err != nil {
		return err
	}
	switch {
	case f.AcceptChanged && !f.ProjectionFile.Given():
		return exit.Usagef("--accept-changed-file (PROJECTOR_ACCEPT_CHANGED_FILE): is about a --projection-file (PROJECTION_FILE), and there is none")
	case f.BreakerWindow < 1 || f.BreakerWindow > projection.MaxBreakerWindow:
		return exit.Usagef("--breaker-window (BREAKER_WINDOW): must be from 1 to %d records; --breaker-share=0 turns the breaker off", projection.MaxBreakerWindow)
	case !(f.BreakerShare >= 0 && f.BreakerShare <= 1): // also true for NaN
		return exit.Usagef("--breaker-share (BREAKER_SHARE): must be from 0, which turns the breaker off, to 1")
	case f.SessionTimeout < time.Second:
		return exit.Usagef("--session-timeout (KAFKA_SESSION_TIMEOUT): must be at least 1s, and within what the brokers allow")
	case f.MaxBatchBytes < 1<<20 || f.MaxBatchBytes > 1<<29:
		return exit.Usagef("--max-batch-bytes (MAX_BATCH_BYTES): must be from 1MiB to 512MiB")
	case f.RetryInitial <= 0:
		return exit.Usagef("--retry-initial (RETRY_INITIAL): must be more than 0")
	case f.RetryMax <= 0:
		return exit.Usagef("--retry-max (RETRY_MAX): must be more than 0")
	case f.RetryMax < f.RetryInitial && f.RetryInitial != defaultRetryInitial: // --retry-max limits the default too
		return exit.Usagef("--retry-max (RETRY_MAX): must not be less than --retry-initial")
	}
	if err := f.CheckPark(); err != nil {
		return err
	}
	return flags.CheckRetention("--inbox-retention", f.InboxRetention)
}

// Flags configure a process.
type Flags struct {
	flags.KafkaFlags
	flags.DatabaseFlags
	projectFlags
	events.EventFlags
	flags.LimitFlags
	outboxFlags
	tracingFlags
	output.LogFlags
	Listen string `env:"LISTEN_ADDR" default:":8080" placeholder:"ADDR" group:"HTTP" help:"Health, metrics and status page (default :8080)."`
	readFlags
}

func (c *Flags) validate() error {
	if c.Listen == "" { // the system would choose a free port on all addresses
		return exit.Usagef("--listen (LISTEN_ADDR): must not be empty; give HOST:PORT, e.g. :8080")
	}
	if err := c.projectFlags.validate(); err != nil {
		return err
	}
	if err := c.outboxFlags.validate(c.Projection); err != nil {
		return err
	}
	if err := c.tracingFlags.validate(); err != nil {
		return err
	}
	return c.CheckLimit()
}

const (
	// attemptWithin is the deadline of one attempt at the database or the DLQ. A statement that
	// waits for a lock fails before this deadline.
	attemptWithin = 30 * time.Second
	// drainWithin is the time for flushing pending events when the process stops. After the flush,
	// the last commit and leaving the group take about 3 s. In all, a stop takes at most 10 s, even
	// if a server does not answer.
	drainWithin = 5 * time.Second
	// endWithin is the time for ending HTTP and tracing after the consumer has ended.
	endWithin = 700 * time.Millisecond
	// partWithin is the time for closing connections at the end.
	partWithin = 300 * time.Millisecond
)

// Build makes a process from the flags. It does not connect yet.
func (c *Flags) Build(ctx context.Context, log *slog.Logger, built flags.BuildInfo) (*Process, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	kind, err := c.Kind()
	if err != nil {
		return nil, err
	}
	if err := c.readFlags.validate(kind.Name()); err != nil {
		return nil, err
	}
	formats, err := c.Formats(c.CustomTypes)
	if err != nil {
		return nil, err
	}
	client, err := c.Client(log)
	if err != nil {
		return nil, err
	}
	c.DatabaseFlags.WarnUnverified(log) //nolint:staticcheck // QF1008: OutboxFlags has one too
	c.OutboxFlags.WarnUnverified(log)
	c.WarnClearRegistry(log)
	own, err := c.CustomProjection()
	if err != nil {
		return nil, err
	}
	reads, err := c.Reads()
	if err != nil {
		return nil, err
	}
	registry := telemetry.NewRegistry()
	p := &Process{
		cmd: c, kind: kind, own: own, mapping: reads, formats: formats,
		log: log, built: built, registry: registry, owner: owner(),
		health:          telemetry.NewHealth(),
		metrics:         telemetry.NewMetrics(registry, c.Projection, c.Topic),
		lastDeadLetters: telemetry.NewLastDeadLetters(),
		retry:           retry.Policy{Initial: c.RetryInitial, Max: c.RetryMax, Attempt: attemptWithin},
	}
	traced, err := p.trace(ctx)
	if err != nil {
		return nil, err
	}
	if p.pool, err = c.Pool(ctx, traced.database...); err != nil {
		return nil, err
	}
	p.register()
	if err := p.makeReaders(ctx, traced); err != nil {
		return nil, err
	}
	if err := p.clients(client, traced); err != nil {
		return nil, err
	}
	if p.consumer, err = p.consuming(ctx, client, traced); err != nil {
		return nil, err
	}
	p.beyond = p.beyondLimit()
	if err := p.fetching(); err != nil {
		return nil, err
	}
	p.server = p.pages()
	return p, nil
}

// RunCmd is the command `projector run`.
type RunCmd struct {
	Flags
}

// Run consumes until ctx ends.
func (c *RunCmd) Run(ctx context.Context, std *output.Streams, built flags.BuildInfo) error {
	log, err := c.Logger(std.Err)
	if err != nil {
		return err
	}
	p, err := c.Build(ctx, log, built)
	if err != nil {
		return err
	}
	defer p.Close()
	plan := flags.ShareMemory(c.Resident())
	release := plan.Apply()
	defer release()
	go pace.SaveProcessors(ctx)
	return p.Run(ctx)
}
