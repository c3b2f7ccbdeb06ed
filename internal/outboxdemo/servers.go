package outboxdemo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/deploy/debezium"
	"projector/internal/devstack"
	"projector/internal/outbox"
)

// servers are what the pipelines share.
type servers struct {
	postgres *devstack.Postgres
	kafka    *devstack.Kafka
	connect  *devstack.Connect
	admin    *kadm.Client
}

const (
	// partitions of each topic: more than one, because the order of an account must
	// not hang on there being only one.
	partitions = 3
	// flushEvery, in milliseconds, is how often Connect writes down how far it is. Its
	// default of a minute would make the run a long one.
	flushEvery = "5000"
	// debeziumRole is made by the outbox's SQL.
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

// prepare makes the banks, the read models and the topics.
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
	p.bank, err = outbox.New(ctx, pool, debezium.Outbox+p.alterOutbox)
	return err
}

// setPassword gives Debezium's role, which all banks of the server share, a password.
func (s *stage) setPassword(ctx context.Context) (string, error) {
	password := strings.ToLower(rand.Text())
	conn, err := pgx.Connect(ctx, s.postgres.URL())
	if err != nil {
		return "", fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, "ALTER ROLE "+debeziumRole+" PASSWORD '"+password+"'") // letters and digits
	return password, errors.Join(err, conn.Close(ctx))
}

// database makes a database and a pool of connections to it.
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
