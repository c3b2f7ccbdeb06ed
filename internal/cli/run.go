package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/acl"
	"projector/internal/cli/build"
	"projector/internal/consumer"
	"projector/internal/retry"
	"projector/internal/telemetry"
	"projector/internal/tracing"
	"projector/projection/event"
	"projector/readmodel"
)

// groupFlags say which projection is meant, and as which consumer group.
type groupFlags struct {
	Projection string `env:"PROJECTION" default:"account_balance" group:"Projection" help:"What to project (default account_balance)."`
	Group      string `env:"KAFKA_GROUP" placeholder:"NAME" group:"Projection" help:"Consumer group; default the projection's name with -projector behind it."`
}

func (f *groupFlags) group() string {
	return cmp.Or(f.Group, strings.ReplaceAll(f.Projection, "_", "-")+"-projector")
}

func (f *groupFlags) validate() error {
	_, err := f.kind()
	return err
}

// projectFlags say what is projected, and as whom.
type projectFlags struct {
	groupFlags
	ParkLimit      int64         `env:"PARK_LIMIT" default:"10000" placeholder:"N" group:"Projection" help:"Events kept in the database behind a hole, an account (default 10000)."`
	RetryInitial   time.Duration `env:"RETRY_INITIAL" default:"1s" placeholder:"DURATION" group:"Projection" help:"First wait after a transient error (default 1s)."`
	SessionTimeout time.Duration `env:"KAFKA_SESSION_TIMEOUT" default:"30s" placeholder:"DURATION" group:"Projection" help:"How soon the partitions of an instance that died are taken over (default 30s)."`
	MaxBatchBytes  int           `env:"MAX_BATCH_BYTES" default:"67108864" placeholder:"BYTES" group:"Projection" help:"Largest batch of records, decompressed, that is taken; a larger one stops its partition (default 64 MiB)."`
	RetryMax       time.Duration `env:"RETRY_MAX" default:"60s" placeholder:"DURATION" group:"Projection" help:"Longest wait (default 60s)."`
	InboxRetention time.Duration `env:"INBOX_RETENTION" default:"168h" placeholder:"DURATION" group:"Projection" help:"How long an additive projection remembers the events it has taken in (default 168h)."`
}

func (f *projectFlags) validate() error {
	if err := f.groupFlags.validate(); err != nil {
		return err
	}
	switch {
	case f.ParkLimit < 0:
		return usagef("--park-limit (PARK_LIMIT): must not be negative")
	case f.SessionTimeout < time.Second:
		return usagef("--session-timeout (KAFKA_SESSION_TIMEOUT): must be at least 1s, and within what the brokers allow")
	case f.MaxBatchBytes < 1<<20 || f.MaxBatchBytes > 1<<29:
		return usagef("--max-batch-bytes (MAX_BATCH_BYTES): must be from 1 MiB to 512 MiB")
	case f.RetryInitial <= 0:
		return usagef("--retry-initial (RETRY_INITIAL): must be more than 0")
	case f.RetryMax < f.RetryInitial:
		return usagef("--retry-max (RETRY_MAX): must not be less than --retry-initial")
	}
	return checkRetention("--inbox-retention", f.InboxRetention)
}

type runCmd struct {
	kafkaFlags
	databaseFlags
	projectFlags
	eventFlags
	memoryFlags
	tracingFlags
	logFlags
	Listen string `env:"LISTEN_ADDR" default:":8080" placeholder:"ADDR" group:"HTTP" help:"Health, metrics and status page (default :8080)."`
}

func (c *runCmd) validate() error {
	if err := c.projectFlags.validate(); err != nil {
		return err
	}
	if err := c.tracingFlags.validate(); err != nil {
		return err
	}
	return c.memoryFlags.validate()
}

const (
	// attemptWithin is the deadline of one attempt at the database or the DLQ. A
	// statement that waits for a lock gives up before.
	attemptWithin = 30 * time.Second
	// A stop may take 10 s, whatever hangs: this long what is pending is flushed, and
	// about 3 s take the last commit and leaving the group.
	drainWithin = 5 * time.Second
	// endWithin is how long HTTP and tracing may take behind that.
	endWithin = 700 * time.Millisecond
	// partWithin is for the connections at last.
	partWithin = 300 * time.Millisecond
)

// Run consumes until ctx ends.
func (c *runCmd) Run(ctx context.Context, io *streams, built build.Info) error {
	log, err := c.logger(io.err)
	if err != nil {
		return err
	}
	p, err := c.build(ctx, log, built)
	if err != nil {
		return err
	}
	defer p.close()
	plan := planMemory(c.MemoryLimit)
	release := plan.apply()
	defer release()
	return p.run(ctx)
}

// process is one running projector.
type process struct {
	built     build.Info
	log       *slog.Logger
	pool      *pgxpool.Pool
	publisher *dlq.Publisher
	admin     *kgo.Client
	health    *telemetry.Health
	registry  *telemetry.Registry
	metrics   *telemetry.Metrics
	server    *telemetry.Server
	history   *telemetry.History
	letters   *telemetry.Letters
	consumer  *consumer.Consumer
	retry     retry.Policy
	group     string
	kind      readmodel.Kind
	tasks     []readmodel.Task
	tracing   *tracing.Tracing                        // nil: off
	parked    atomic.Pointer[readmodel.ParkedSummary] // as last counted
}

// build wires a process from the flags. Nothing is connected to yet.
func (c *runCmd) build(ctx context.Context, log *slog.Logger, built build.Info) (*process, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	kind, err := c.kind()
	if err != nil {
		return nil, err
	}
	formats, err := c.formats()
	if err != nil {
		return nil, err
	}
	client, err := c.client(log)
	if err != nil {
		return nil, err
	}
	registry := telemetry.NewRegistry()
	p := &process{
		log: log, built: built, registry: registry, kind: kind, group: c.group(),
		health:  telemetry.NewHealth(telemetry.HealthConfig{}),
		metrics: telemetry.NewMetrics(registry, c.Projection),
		letters: telemetry.NewLetters(),
		retry:   retry.Policy{Initial: c.RetryInitial, Max: c.RetryMax, Attempt: attemptWithin},
	}
	traced, err := p.trace(ctx, c)
	if err != nil {
		return nil, err
	}
	if p.pool, err = c.pool(ctx, traced.database...); err != nil {
		return nil, err
	}
	p.register(c.Topic)
	if err := p.clients(c, client, traced); err != nil {
		return nil, err
	}
	plan := planMemory(c.MemoryLimit)
	needs := acl.Needs{Topic: c.Topic, Group: c.group(), DLQ: c.dlqTopic(), Principal: c.principal()}
	cfg := readmodel.RunConfig{
		Pool: p.pool, Formats: formats, FirstVersion: c.FirstVersion, ParkLimit: c.ParkLimit,
		CacheBytes:     func() int { return plan.accountsShare(p.consumer.Partitions()) },
		FloorBytes:     plan.floors,
		InboxRetention: c.InboxRetention, Observer: observer{p.metrics, p},
		Ends: ctx, Log: log,
	}
	p.tasks = kind.Tasks(cfg)
	open := kind.Open(cfg)
	p.consumer, err = consumer.New(consumer.Config{
		Client: client,
		Member: []kgo.Opt{telemetry.KafkaHooks(registry, "consumer"), kgo.WithHooks(traced.consuming...)},
		Trace:  traced.partition,
		Topic:  c.Topic, Group: c.group(), Owner: owner(), Formats: formats,
		Open: func(partition int32) consumer.Projection {
			return open(readmodel.Partition{Projection: kind.Name(), Group: c.group(), Topic: c.Topic, Number: partition})
		},
		DeadLetters:    deadLetters{p.publisher, p.admin, needs},
		Access:         kafkaAccess{needs, p.admin},
		Database:       sharedDatabase{p.pool, kind, c.group(), c.Topic},
		Observer:       p.metrics,
		Health:         p.health,
		Log:            log,
		Retry:          p.retry,
		Limits:         plan.limits(kind, c.MaxBatchBytes),
		SessionTimeout: c.SessionTimeout,
		DrainWithin:    drainWithin,
	})
	if err != nil {
		return nil, err
	}
	p.server = p.pages(c)
	return p, nil
}

// clients makes the Kafka clients beside the group's member.
func (p *process) clients(c *runCmd, options []kgo.Opt, traced traced) (err error) {
	p.publisher, err = dlq.NewPublisher(dlq.PublisherConfig{
		Topic: c.dlqTopic(), Stamp: dlq.Stamp{Group: c.group(), Projection: c.Projection}, Client: options, Logger: p.log,
		Published: letterBook(p.letters), Hooks: traced.publishing,
	})
	if err != nil {
		return err
	}
	if p.admin, err = kgo.NewClient(options...); err != nil {
		return fmt.Errorf("create the Kafka client: %w", err)
	}
	return nil
}

// owner names this process, uniquely: in a container its number is mostly 1.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d-%s", host, os.Getpid(), rand.Text()[:8])
}

func classNames() []string {
	classes := event.Classes()
	names := make([]string, len(classes))
	for i, class := range classes {
		names[i] = string(class)
	}
	return names
}

// run serves HTTP, waits for the schema, and consumes until ctx ends.
func (p *process) run(ctx context.Context) error {
	if err := p.listen(ctx); err != nil {
		return err
	}
	return p.project(ctx)
}

// listen serves HTTP; from then on the server's address is known.
func (p *process) listen(ctx context.Context) error {
	err := p.server.Start(ctx)
	var wrong *net.AddrError
	switch {
	case errors.As(err, &wrong):
		return usagef("--listen (LISTEN_ADDR): is not HOST:PORT: %s", wrong.Err)
	case err != nil:
		return fmt.Errorf("--listen (LISTEN_ADDR): %w", err)
	}
	return nil
}

// project waits for the schema and consumes until ctx ends; then HTTP and tracing end too.
func (p *process) project(ctx context.Context) error {
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), endWithin)
		defer cancel()
		var ending sync.WaitGroup
		ending.Go(func() { p.endTracing(ctx) })
		_ = p.server.Shutdown(ctx)
		ending.Wait()
	}()
	p.log.Info("starting", slog.String("version", p.built.Version), slog.String("http", p.server.Addr()))
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go p.history.Run(watching)
	if err := p.awaitSchema(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for _, task := range p.tasks {
		go p.keep(watching, task)
	}
	if err := p.consumer.Run(ctx); err != nil {
		return err
	}
	p.log.Info("stopped")
	return nil
}

// awaitSchema waits for the database, for ever, and fails when it answers that the
// schema is missing or too old, or that the consumer group is another projection's.
func (p *process) awaitSchema(ctx context.Context) error {
	log := retry.Throttle(p.log, nil, "check the schema", telemetry.KeyDependency, "postgres")
	err := p.retry.Forever(ctx, retry.Tee(log, unready{p}), func(ctx context.Context) error {
		err := readmodel.CheckSchema(ctx, p.pool)
		var schema *readmodel.SchemaError
		if errors.As(err, &schema) {
			return retry.Stop(schema)
		}
		if err != nil {
			return err
		}
		err = readmodel.CheckGroup(ctx, p.pool, p.group, p.kind.Name())
		var taken *readmodel.GroupTakenError
		if errors.As(err, &taken) {
			return retry.Stop(usageError{taken})
		}
		return err
	})
	if err == nil {
		p.health.OK(conditionSchema)
	}
	return err
}
