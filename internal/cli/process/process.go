// Package process makes a projector from its flags. `projector run` and the demo use it.
package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/consumer"
	"projector/internal/outbox"
	"projector/internal/pace"
	"projector/internal/reader"
	"projector/internal/retry"
	"projector/internal/telemetry"
	"projector/internal/tracing"
	"projector/projection/event"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/accountdb"
)

// Process is one running projector.
type Process struct {
	cmd             *Flags
	built           flags.BuildInfo
	log             *slog.Logger
	pool            *pgxpool.Pool
	publisher       *dlq.Publisher
	admin           *kgo.Client
	health          *telemetry.Health
	registry        *telemetry.Registry
	metrics         *telemetry.Metrics
	server          *telemetry.Server
	history         *telemetry.History
	lastDeadLetters *telemetry.LastDeadLetters
	consumer        *consumer.Consumer
	retry           retry.Policy
	owner           string // unique name of this process
	kind            readmodel.Definition
	own             *file.Projection // the custom projection; nil: a built-in projection
	mapping         readmodel.Mapping
	formats         event.Resolver
	tasks           []readmodel.Task
	readers         *reader.Server // nil: off
	reading         *pgxpool.Pool  // the pool of the readers
	retention       *retention
	fetcher         *outbox.Fetcher                         // nil: off
	beyond          *beyond                                 // nil: the projection parks no events
	tracing         *tracing.Tracing                        // nil: off
	parked          atomic.Pointer[readmodel.ParkedSummary] // as last counted
	margins         atomic.Pointer[margins]                 // as last measured
}

// clients makes the Kafka clients, except the client of the consumer group.
func (p *Process) clients(options []kgo.Opt, traced traced) (err error) {
	p.publisher, err = dlq.NewPublisher(dlq.PublisherConfig{
		Topic: p.cmd.DeadLetterTopic(), Stamp: dlq.Stamp{Group: p.cmd.GroupName(), Projection: p.cmd.Projection}, Client: options, Logger: p.log,
		Published: passToPage(p.lastDeadLetters), Hooks: traced.publishing,
	})
	if err != nil {
		return err
	}
	// The admin client reads events beyond the park limit again, so it must accept the batches that the
	// consumer accepts. Without the option it accepts 100 MiB.
	answers := kgo.BrokerMaxReadBytes(int32(max(100<<20, p.cmd.MaxBatchBytes+1<<20))) //nolint:gosec // G115: checked to be far below 2 GiB
	if p.admin, err = kgo.NewClient(append(slices.Clip(options), answers)...); err != nil {
		return fmt.Errorf("create the Kafka client: %w", err)
	}
	p.retention = newRetention(p)
	return nil
}

// owner returns a unique name for this process. The process id is not enough, because in a container
// it is usually 1.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d-%s", host, os.Getpid(), rand.Text()[:8])
}

// Run serves HTTP, waits for the schema and consumes until ctx ends.
func (p *Process) Run(ctx context.Context) error {
	if err := p.Listen(ctx); err != nil {
		return err
	}
	return p.Project(ctx)
}

// Listen starts the HTTP servers. After it has returned, their addresses are known.
func (p *Process) Listen(ctx context.Context) error {
	if err := listening("--listen (LISTEN_ADDR)", p.server.Start(ctx)); err != nil || p.readers == nil {
		return err
	}
	return listening(readListenFlag, p.readers.Start(ctx))
}

// listening adds the flag to an error about an address.
func listening(flag string, err error) error {
	var wrong *net.AddrError
	switch {
	case errors.As(err, &wrong):
		return exit.Usagef("%s: is not HOST:PORT: %s", flag, wrong.Err)
	case err != nil:
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// Project waits for the schema and consumes until ctx ends. Then it ends HTTP and tracing.
func (p *Process) Project(ctx context.Context) error {
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), endWithin)
		defer cancel()
		var ending sync.WaitGroup
		if p.tracing != nil {
			ending.Go(func() { p.tracing.Shutdown(ctx) }) // sends the remaining spans
		}
		if p.readers != nil {
			ending.Go(func() { _ = p.readers.Shutdown(ctx) }) // waits for running requests
		}
		_ = p.server.Shutdown(ctx)
		ending.Wait()
	}()
	p.log.Info("starting", slog.String("version", p.built.Version), slog.String("http", p.server.Addr()))
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go p.history.Run(watching)
	p.serveProfiles(watching)
	if p.readers != nil {
		p.log.Info("readers are served", slog.String("read_http", p.readers.Addr()))
		go p.readers.Run(watching) // after it has ended, requests get the response that this instance is stopping
	}
	if err := p.awaitSchema(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for _, task := range append(p.tasks, p.watchGrants()) {
		go p.repeat(watching, task)
	}
	go p.retention.watch(watching)
	if p.fetcher != nil {
		go p.fetcher.Run(watching)
	}
	if p.beyond != nil {
		go p.beyond.run(watching)
	}
	if err := p.consumer.Run(ctx); err != nil {
		return err
	}
	p.log.Info("stopped")
	return nil
}

// serveProfiles serves profiles on loopback after the process has received SIGUSR1.
func (p *Process) serveProfiles(ctx context.Context) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	// The handling of the signal is never reset, because the default action would end a process
	// that is still stopping.
	go telemetry.ServeProfiles(ctx, asked, p.log)
}

// awaitSchema waits for the database without a time limit, and stores the mapping and the projection
// file in it. It fails if this process must not use the database.
func (p *Process) awaitSchema(ctx context.Context) error {
	observer := unready{retry.Throttle(p.log, "check the schema", telemetry.KeyDependency, telemetry.DependencyPostgres), p}
	err := p.retry.Forever(ctx, observer, func(ctx context.Context) error {
		err := p.fits(ctx)
		if err == nil {
			err = p.storeMappingAndFile(ctx)
		}
		return needsRole(final(err))
	})
	if err == nil {
		p.health.OK(conditionSchema)
	}
	return err
}

// fits returns an error if this process must not use the database. The schema may be missing or too
// old, or the consumer group may belong to another projection. The rows may come from another topic.
// Fetching may be on for a projection that does not record missing events.
func (p *Process) fits(ctx context.Context) error {
	// The checks run concurrently, because each waits for an answer of the database. They also open
	// several connections, which the claims of partitions need next.
	fitsSchema := func(ctx context.Context) error { return readmodel.CheckSchema(ctx, p.pool) }
	checks := []func(context.Context) error{fitsSchema, p.fitsGroup, p.fitsTopic, p.fitsFetching}
	failed := make([]error, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() { failed[i] = check(ctx) })
	}
	all.Wait()
	return cmp.Or(failed...) // the first, because the others fail too without the schema
}

// final marks an error that says why this process must not use the database, because no retry solves
// it. Other errors stay unchanged.
func final(err error) error {
	if errors.As(err, new(readmodel.Unfit)) || errors.As(err, new(*readmodel.MappingChangedError)) || errors.As(err, new(*readmodel.FileChangedError)) {
		return retry.Stop(err)
	}
	return err
}

func (p *Process) fitsGroup(ctx context.Context) error {
	err := readmodel.CheckGroup(ctx, p.pool, p.cmd.GroupName(), p.kind.Name())
	if taken, is := errors.AsType[readmodel.Unfit](err); is {
		return exit.WrongUsage(taken)
	}
	return err
}

func (p *Process) fitsTopic(ctx context.Context) error {
	if p.cmd.AnotherTopic {
		return nil
	}
	return readmodel.CheckTopic(ctx, p.pool, p.kind.Name(), p.cmd.Topic)
}

func (p *Process) fitsFetching(ctx context.Context) error {
	if p.fetcher == nil {
		return nil
	}
	return accountdb.CheckFetching(ctx, p.pool)
}

// storeMappingAndFile stores the mapping and the projection file. It fails if the rows were made with
// a mapping or a file that gives other results.
func (p *Process) storeMappingAndFile(ctx context.Context) error {
	err := readmodel.KeepMapping(ctx, p.pool, p.kind.Name(), p.mapping, p.cmd.AcceptMapping)
	if err != nil || p.own == nil {
		return err
	}
	return readmodel.KeepFile(ctx, p.pool, p.own, p.cmd.AcceptChanged)
}

type observer struct {
	*telemetry.Metrics
	p *Process
}

var _ readmodel.Observer = observer{}

func (o observer) Parked(s readmodel.ParkedSummary) {
	o.Metrics.Parked(s.Accounts, s.Events, s.Bytes, s.OldestGap)
	o.p.parked.Store(&s)
}

// repeat runs a task at once and then regularly until ctx ends. A failure is logged, and the task
// runs again after the next interval.
func (p *Process) repeat(ctx context.Context, task readmodel.Task) {
	log := retry.Throttle(p.log, task.Name, telemetry.KeyDependency, telemetry.DependencyPostgres)
	pace.Every(ctx, task.Every, cmp.Or(task.Within, task.Every), func(within context.Context) {
		if err := task.Run(within); ctx.Err() == nil {
			log.Note(err, task.Every)
		}
	})
}

// conditionGrants is the name of the warning about missing grants on the database.
const conditionGrants = "grants on the database"

// watchGrants is the task that reports missing grants on the database. A restore loses such grants.
// The instance is ready without them, but a rebuild and the protection of the database need them.
func (p *Process) watchGrants() readmodel.Task {
	reported := ""
	return readmodel.Task{Name: "check the grants on the database", Every: 10 * time.Second, Run: func(ctx context.Context) error {
		missing, err := readmodel.MissingOnDatabase(ctx, p.pool)
		if err != nil {
			return err
		}
		text := ""
		if len(missing) > 0 {
			text = "missing: " + strings.Join(missing, "; ") + ". pg_restore does not restore them: run sql/roles.sql again " +
				"as an administrator. See the runbook, \"Grants on the database\""
			p.health.Warn(conditionGrants, text)
		} else {
			p.health.OK(conditionGrants)
		}
		switch {
		case text == reported:
		case text != "":
			p.log.Warn("grants on the database are missing", slog.String("reason", text))
		default:
			p.log.Info("the grants on the database are complete again")
		}
		reported = text
		return nil
	}}
}

// needsRole adds the role that `run` needs to PostgreSQL's error about a missing privilege. An
// errclass.Describer stays unchanged, because it already has a remedy.
func needsRole(err error) error {
	if errors.As(err, new(errclass.Describer)) {
		return err
	}
	return exit.NeedsRole("run", "projector_runtime", err)
}
