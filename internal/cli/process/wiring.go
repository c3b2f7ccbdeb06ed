package process

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/errclass"
	"projector/internal/acl"
	"projector/internal/cli/flags"
	"projector/internal/consumer"
	"projector/internal/reader"
	"projector/internal/retry"
	"projector/internal/session"
	"projector/internal/telemetry"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
)

// conditionSchema names the reason why the process is unready while it waits for the database.
const conditionSchema = "schema"

// unready reports the retries at the start to the log, health and metrics.
type unready struct {
	*retry.Throttled
	p *Process
}

// Failing implements retry.Observer.
func (u unready) Failing(err error, attempt int, since, next time.Duration) {
	u.Throttled.Failing(err, attempt, since, next)
	u.p.metrics.Retry(telemetry.DependencyPostgres, errclass.Reason(err))
	u.p.health.Fail(conditionSchema, "PostgreSQL: "+errclass.Safe(err))
	if errclass.Postgres(err) == errclass.RetryReset {
		u.p.resetPools()
	}
}

func (p *Process) register() {
	telemetry.RegisterBuildInfo(p.registry, p.built.Version, p.built.From())
	telemetry.RegisterHealth(p.registry, p.health)
	telemetry.RegisterPool(p.registry, p.pool)
	p.metrics.Declare(flags.Texts(event.Classes()))
}

func (p *Process) consuming(ctx context.Context, client []kgo.Opt, traced traced) (*consumer.Consumer, error) {
	c := p.cmd
	plan := flags.ShareMemory(c.Resident())
	if p.readers != nil {
		plan = flags.ShareMemoryWith(reader.Memory, c.Resident())
	}
	running := p.running(ctx, plan)
	p.tasks = p.kind.Tasks(running)
	open := p.kind.Open(running)
	needs := acl.Needs{Client: p.admin, Topic: c.Topic, Group: c.GroupName(), DLQ: c.DeadLetterTopic(), Principal: c.Principal()}
	database := database{
		TopicPositions: readmodel.TopicPositions{Pool: p.pool, Projection: p.kind.Name(), Group: c.GroupName(), Topic: c.Topic, Mapping: p.mapping},
		kind:           p.kind,
		reset:          p.resetPools,
	}
	return consumer.New(consumer.Config{
		Client: client,
		Member: []kgo.Opt{telemetry.KafkaHooks(p.registry, "consumer"), kgo.WithHooks(traced.consuming...)},
		Trace:  traced.partition,
		Topic:  c.Topic, Group: c.GroupName(), Owner: p.owner, Formats: p.formats,
		Open:           func(number int32) session.Projection { return open(database.Partition(number)) },
		DeadLetters:    deadLetters{p.publisher, needs},
		Access:         needs,
		Database:       database,
		Observer:       p.metrics,
		Health:         p.health,
		Log:            p.log,
		Retry:          p.retry,
		Limits:         plan.Limits(p.kind, int(c.MaxBatchBytes)),
		SessionTimeout: c.SessionTimeout,
		DrainWithin:    drainWithin,
	})
}

func (p *Process) running(ctx context.Context, plan flags.MemoryPlan) readmodel.RunConfig {
	c := p.cmd
	cfg := readmodel.RunConfig{
		Pool: p.pool, Formats: p.formats, FirstVersion: c.FirstVersion, ParkLimit: c.ParkLimit, ParkBytes: int64(c.ParkBytes),
		Breaker:        projection.BreakerRule{Window: c.BreakerWindow, Share: c.BreakerShare, Registry: len(flags.Items(c.SchemaRegistryURL)) > 0, Reader: readmodel.ReaderFlags(ctx), Letters: c.LettersAgain()},
		CacheBytes:     func() int { return plan.AccountsShare(p.consumer.Partitions()) },
		Busy:           func() int { return p.consumer.Busy() },
		IndexBytes:     plan.VersionIndex,
		InboxRetention: c.InboxRetention, Observer: observer{p.metrics, p},
		Decisions: readmodel.NewDecisions(p.pool, p.kind),
		Stopping:  ctx, Log: p.log,
	}
	if p.readers != nil {
		cfg.Changed = p.readers.Changed
	}
	return cfg
}

type deadLetters struct {
	*dlq.Publisher
	needs acl.Needs
}

// Deliver publishes dead letters. Its error names a missing permission.
func (d deadLetters) Deliver(ctx context.Context, letters *dlq.Delivery) error {
	return d.needs.Publishing(d.Publisher.Deliver(ctx, letters))
}

func (d deadLetters) EnsureTopic(ctx context.Context) error {
	return dlq.EnsureTopic(ctx, kadm.NewClient(d.needs.Client), d.needs.DLQ, d.needs.Topic)
}

// database has the operations on the database that package consumer needs.
type database struct {
	readmodel.TopicPositions
	kind  readmodel.Definition
	reset func()
}

// overdueAfter is how long parked events that could be applied may wait.
const overdueAfter = 5 * time.Second

// Overdue returns the partitions with parked events that could be applied and have waited longer
// than overdueAfter.
func (d database) Overdue(ctx context.Context, partitions []int32) ([]int32, error) {
	if !d.kind.Accounts() {
		return nil, nil
	}
	return accountdb.LoadOverdue(ctx, d.Pool, d.kind.Name(), d.Topic, partitions, overdueAfter)
}

// Ready returns an error if the database cannot be reached or written.
func (d database) Ready(ctx context.Context) error { return needsRole(d.kind.Ready(ctx, d.Pool)) }

func (d database) Reset() { d.reset() }

// resetPools closes the connections of all pools, because their server may no longer be the primary.
// A connection of the readers to a server that was the primary would return old balances.
func (p *Process) resetPools() {
	p.pool.Reset()
	if p.reading != nil {
		p.reading.Reset()
	}
}

// Close closes the connections. It does not wait for a server that does not answer, because closing
// the pool could take 15 s.
func (p *Process) Close() {
	var closing sync.WaitGroup
	closing.Go(p.publisher.Close)
	closing.Go(p.admin.Close)
	closing.Go(p.pool.Close)
	if p.reading != nil {
		closing.Go(p.reading.Close)
	}
	closed := make(chan struct{})
	go func() {
		closing.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(partWithin):
	}
}
