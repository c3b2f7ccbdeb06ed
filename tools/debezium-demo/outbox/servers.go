package outbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/deploy/debezium"
	"projector/internal/devstack"
)

// servers are shared by the pipelines.
type servers struct {
	postgres *devstack.Postgres
	kafka    *devstack.Kafka
	connect  *devstack.Connect
	admin    *kadm.Client
}

const (
	// partitions is the number of partitions of each topic. There is more than one partition,
	// because the demo must show that the key keeps an account's events in order.
	partitions = 3
	// flushEvery is the interval in milliseconds at which Connect writes its offsets. The default
	// of a minute would make the run long.
	flushEvery = "5000"
	// debeziumRole is the role that the outbox's SQL creates.
	debeziumRole = "debezium"
)

func (s *stage) startServers(ctx context.Context) error {
	s.say("starting PostgreSQL with wal_level=logical")
	postgres, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{
		Settings: map[string]string{"wal_level": "logical", "log_min_messages": "warning"}, Log: s.options.Log,
	})
	if err != nil {
		return err
	}
	s.postgres, s.closers = postgres, append(s.closers, postgres.Close)
	s.say("starting Apache Kafka %s (fetched once)", devstack.KafkaVersion)
	kafka, err := devstack.StartKafka(ctx, devstack.KafkaOptions{Log: s.options.Log})
	if err != nil {
		return err
	}
	s.kafka, s.closers = kafka, append(s.closers, kafka.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addrs()...))
	if err != nil {
		return fmt.Errorf("make the Kafka client: %w", err)
	}
	s.admin = kadm.NewClient(client)
	s.closers = append(s.closers, func(context.Context) error { client.Close(); return nil })
	return nil
}

func (s *stage) prepare(ctx context.Context) error {
	s.pipelines = pipelines()
	for _, p := range s.pipelines {
		if err := s.prepareBank(ctx, p); err != nil {
			return err
		}
		var err error
		if p.readModel, err = s.database(ctx, p.readModelDatabase()); err != nil {
			return err
		}
		if _, err := s.admin.CreateTopic(ctx, partitions, -1, nil, p.topic); err != nil {
			return fmt.Errorf("create topic %s: %w", p.topic, err)
		}
	}
	return nil
}

func (s *stage) prepareBank(ctx context.Context, p *pipeline) error {
	pool, err := s.database(ctx, p.bankDatabase)
	if err != nil {
		return err
	}
	p.bank, err = NewBank(ctx, pool, debezium.Outbox+p.alterOutbox)
	return err
}

// setPassword sets a password for Debezium's role, which all banks of the server share.
func (s *stage) setPassword(ctx context.Context) (string, error) {
	password := strings.ToLower(rand.Text())
	conn, err := pgx.Connect(ctx, s.postgres.URL())
	if err != nil {
		return "", fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, "ALTER ROLE "+debeziumRole+" PASSWORD '"+password+"'") // safe in SQL, because it has only letters and digits
	return password, errors.Join(err, conn.Close(ctx))
}

// database creates a database and a pool of connections to it.
func (s *stage) database(ctx context.Context, name string) (*pgxpool.Pool, error) {
	if err := devstack.CreateDatabase(ctx, s.postgres.URL(), name, ""); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, s.postgres.DatabaseURL(name))
	if err != nil {
		return nil, fmt.Errorf("connect to database %s: %w", name, err)
	}
	s.closers = append(s.closers, func(context.Context) error { pool.Close(); return nil })
	return pool, nil
}

// consume starts the projectors. Each projector serves its status page on a free port.
func (s *stage) consume(ctx context.Context) error { return s.startProjectors(ctx) }

// startProjectors starts a projector for each pipeline. The status page of a projector has the
// given address, or a free port if no address is given.
func (s *stage) startProjectors(ctx context.Context, pages ...string) error {
	for i, p := range s.pipelines {
		if err := s.migrate(ctx, p); err != nil {
			return err
		}
		listen := "127.0.0.1:0"
		if len(pages) > 0 {
			listen = pages[i]
		}
		args := append([]string{
			"run", "--format=debezium-outbox", "--topic=" + p.topic, "--group=" + p.group(),
			"--listen=" + listen, "--log-format=json",
		}, p.flags...)
		program, err := devstack.StartProgram(s.command(context.WithoutCancel(ctx), p, args...), s.options.Log)
		if err != nil {
			return err
		}
		p.projector = program
		s.closers = append(s.closers, program.Kill)
		s.say("projector %s", strings.Join(append(args[:3:3], p.flags...), " "))
	}
	return nil
}

func (s *stage) migrate(ctx context.Context, p *pipeline) error {
	_, err := s.once(ctx, p, "migrate")
	return err
}

// verify runs `projector verify`, which compares the read model with the bank's ledger. verify
// returns how many accounts match. If any account differs, it returns an error.
func (s *stage) verify(ctx context.Context, p *pipeline) (matched int, err error) {
	output, err := s.once(ctx, p, "verify", "--ledger-query=SELECT account_id, version, balance FROM ledger_balance", "--output=json")
	if err != nil {
		return 0, err
	}
	var answer struct{ Matched *int }
	if err := json.Unmarshal(output, &answer); err != nil || answer.Matched == nil {
		return 0, errors.Join(errors.New("projector verify does not say how many accounts matched"), err)
	}
	return *answer.Matched, nil
}

// once runs a command of the projector and returns its output.
func (s *stage) once(ctx context.Context, p *pipeline, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := s.command(ctx, p, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("projector %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// command returns a projector command whose environment has only the variables that it needs.
func (s *stage) command(ctx context.Context, p *pipeline, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.options.Projector, args...) //nolint:gosec // G204: the caller says what to run
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir()}, s.addresses(p)...)
	return cmd
}

// addresses returns the environment variables with all addresses that a projector of the pipeline
// needs.
func (s *stage) addresses(p *pipeline) []string {
	return []string{
		"KAFKA_BROKERS=" + strings.Join(s.kafka.Addrs(), ","),
		"DATABASE_URL=" + s.postgres.DatabaseURL(p.readModelDatabase()),
		"LEDGER_URL=" + s.postgres.DatabaseURL(p.bankDatabase),
	}
}

// stopProjectors stops the projectors and returns an error if one fails to stop.
func (s *stage) stopProjectors(ctx context.Context) error {
	for _, p := range s.pipelines {
		if err := p.projector.Stop(ctx); err != nil {
			return fmt.Errorf("stop the projector of %s: %w", p.topic, err)
		}
	}
	return nil
}
