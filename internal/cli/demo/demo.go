// Package demo has the command demo. It runs the whole system and checks the result. Kafka and
// PostgreSQL run on this machine too, unless the user gives other servers.
package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/cli/process"
	"projector/internal/telemetry"
	"projector/internal/testbank"
	"projector/projection/event"
	"projector/readmodel"
)

// Cmd generates a stream of events, runs the whole system on it and checks the result.
type Cmd struct {
	Accounts   int    `env:"DEMO_ACCOUNTS" default:"1000" placeholder:"N" group:"Stream" help:"Accounts (default 1000)."`
	Events     int    `env:"DEMO_EVENTS" default:"200000" placeholder:"N" group:"Stream" help:"Events (default 200000), not counting redeliveries."`
	Partitions int32  `env:"DEMO_PARTITIONS" default:"6" placeholder:"N" group:"Stream" help:"Partitions of the topic (default 6)."`
	Seed       uint64 `env:"DEMO_SEED" default:"1" placeholder:"N" group:"Stream" help:"The same seed makes the same stream (default 1)."`

	Stay   bool   `env:"DEMO_STAY" help:"Keep everything running afterwards, until Ctrl-C."`
	Listen string `env:"LISTEN_ADDR" default:"127.0.0.1:0" placeholder:"ADDR" group:"HTTP" help:"Health, metrics and status page (default a free port of 127.0.0.1)."`

	DatabaseURL string   `env:"DATABASE_URL" type:"url" placeholder:"URL" group:"PostgreSQL" help:"PostgreSQL to use, with an empty schema; default one of the demo's own."`
	Brokers     []string `env:"KAFKA_BROKERS" placeholder:"HOST:PORT" group:"Kafka" help:"Brokers to use, separated by commas; default one in this process."`
	Topic       string   `env:"KAFKA_TOPIC" group:"Kafka" help:"A topic to create, or an empty one; default a new one."`
	flags.SecurityFlags

	LogLevel  string `env:"LOG_LEVEL" default:"warn" placeholder:"LEVEL" group:"Log" help:"debug, info, warn or error (default warn)."`
	LogFormat string `env:"LOG_FORMAT" placeholder:"FORMAT" group:"Log" help:"text or json; default text on a terminal, else json."`
}

// These limits exist because a demo has the whole stream in memory.
const (
	maxDemoEvents     = 10_000_000
	maxDemoPartitions = 1000
)

func (c *Cmd) validate() error {
	switch {
	case c.Accounts < testbank.MinAccounts:
		return exit.Usagef("--accounts (DEMO_ACCOUNTS): must be at least %d, one for each thing that can go wrong", testbank.MinAccounts)
	case c.Events > maxDemoEvents:
		return exit.Usagef("--events (DEMO_EVENTS): must be at most %d", maxDemoEvents)
	case c.Events/testbank.MinEventsPerAccount < c.Accounts:
		return exit.Usagef("--events (DEMO_EVENTS): must be at least %d for each of %d accounts", testbank.MinEventsPerAccount, c.Accounts)
	case c.Partitions < 1 || c.Partitions > maxDemoPartitions:
		return exit.Usagef("--partitions (DEMO_PARTITIONS): must be 1 to %d", maxDemoPartitions)
	}
	return nil
}

type demo struct {
	cmd      *Cmd
	built    flags.BuildInfo
	log      *slog.Logger
	page     *page
	progress *output.Progress
	close    closers

	ownKafka, ownDatabase bool
	accountPrefix         string
	run                   *process.Flags // the projector's flags, as for `projector run`
	reach                 []kgo.Opt      // options of a Kafka client
	kafka                 *kgo.Client
	pool                  *pgxpool.Pool

	ledger  *testbank.Oracle
	records int // number of records of the stream
	process *process.Process
	took    time.Duration

	ended     chan struct{} // closed when the projector has ended
	endedWith error         // valid after ended is closed
}

// ErrFailed says that the demo has found and printed a difference.
var ErrFailed = errors.New("the read model or the dead letters are not what the ledger says")

// Run runs the demo.
func (c *Cmd) Run(ctx context.Context, std *output.Streams, built flags.BuildInfo) error {
	if err := c.validate(); err != nil {
		return err
	}
	progress := output.NewProgress(output.Unwrapped(std.Err), "") // safe, because the demo prints only its own texts
	log, err := telemetry.NewLogger(progress, output.IsTerminal(std.Err), c.LogLevel, c.LogFormat)
	if err != nil {
		return exit.WrongUsage(err)
	}
	defer progress.End()
	d := &demo{cmd: c, built: built, log: log, progress: progress, page: newPage(output.Unwrapped(std.Out), progress.Done), ended: make(chan struct{})}
	if err := d.configure(); err != nil {
		return err
	}
	matched, err := d.play(ctx)
	progress.Done()
	if err == nil && c.Stay {
		err = d.stay(ctx)
	}
	stopped := ctx.Err() != nil
	if closeErr := d.close.closeAll(); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	switch {
	case stopped && matched == nil && c.Stay:
		return nil
	case stopped && matched == nil:
		return exit.Refuse("interrupted before the read model was checked; everything is cleaned up")
	case err != nil:
		return err
	case !*matched:
		return ErrFailed
	}
	return nil
}

// configure chooses names and the projector's configuration. On the user's servers, the chosen
// names contain a random part.
func (d *demo) configure() error {
	c := d.cmd
	c.Brokers = flags.Items(c.Brokers)
	d.ownKafka, d.ownDatabase = len(c.Brokers) == 0, c.DatabaseURL == ""
	d.run = &process.Flags{}
	if err := kong.ApplyDefaults(d.run, kong.Bind(d.built)); err != nil {
		return exit.WrongUsage(err)
	}
	run := d.run
	run.DatabaseURL, run.Listen = c.DatabaseURL, c.Listen
	run.Brokers, run.SecurityFlags = c.Brokers, c.SecurityFlags
	if d.ownKafka {
		run.SecurityFlags = flags.SecurityFlags{}
	}
	// The demo's ledger depends on these settings, so environment variables must not change them.
	run.EventFlags = events.EventFlags{
		Format: event.FormatJSON, FirstVersion: 1, Currencies: "all", DebeziumTimeUnit: event.RFC3339.String(),
	}
	run.OutboxFlags, run.AnotherTopic = flags.OutboxFlags{}, true // each demo has a topic of its own
	run.Projection, run.ProjectionFile, run.Group, run.DLQTopic = readmodel.BalanceName, flags.File{}, "", ""
	run.ParkLimit, run.ParkBytes = int64(c.Events), math.MaxInt64
	run.Topic = cmp.Or(c.Topic, "account-events")
	d.accountPrefix = "acc-"
	if d.ownKafka && d.ownDatabase {
		return nil
	}
	unique := strings.ToLower(rand.Text()[:8])
	d.accountPrefix = demoAccounts + unique + "-"
	run.Topic = cmp.Or(c.Topic, demoAccounts+"account-events-"+unique)
	run.Group = demoAccounts + "account-balance-projector-" + unique
	return nil
}

// play runs the demo including the check and prints the result. The value matched is nil if the
// demo fails before the check.
func (d *demo) play(ctx context.Context) (matched *bool, err error) {
	d.page.title("projector demo")
	steps := []func(context.Context) error{
		d.startKafka, d.startDatabase, d.prepareDatabase, d.prepareTopic, d.produce, d.startProjector, d.converge,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	found, err := d.check(ctx)
	if err != nil {
		return nil, err
	}
	d.report(found)
	return new(found.matched()), nil
}

func (d *demo) stay(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-d.ended:
		return d.endedByItself()
	}
}

// closers has the functions that close what the demo has started, in the order in which it was
// started.
type closers []func(context.Context) error

func (c *closers) add(end func(context.Context) error) { *c = append(*c, end) }

// closeWithin is the deadline for closing the servers, the clients and the projector.
const closeWithin = 30 * time.Second

// closeAll calls the functions in closers in reverse order, even after an interrupt.
func (c *closers) closeAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	var err error
	for _, end := range slices.Backward(*c) {
		err = errors.Join(err, end(ctx))
	}
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}
