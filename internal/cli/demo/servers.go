package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/devstack"
	"projector/internal/testbank"
	"projector/internal/testbank/compare"
	"projector/readmodel"
)

// demoAccounts is the prefix of the names that the demo chooses on servers of the user.
const demoAccounts = "demo-"

func (d *demo) startKafka(ctx context.Context) error {
	if d.ownKafka {
		fake, err := devstack.StartFake(ctx, devstack.FakeOptions{})
		if err != nil {
			return err
		}
		d.close.add(fake.Close)
		d.run.Brokers = fake.Addrs()
	}
	var err error
	if d.reach, err = d.run.Client(d.log); err != nil {
		return err
	}
	d.kafka, err = flags.OpenKafka(ctx, append(slices.Clip(d.reach), kgo.RecordDeliveryTimeout(flags.OneShotWithin)))
	if err != nil {
		return err
	}
	d.close.add(func(context.Context) error { d.kafka.Close(); return nil })
	what := "yours, " + strings.Join(d.run.Brokers, ",")
	if d.ownKafka {
		what = "in this process, " + strings.Join(d.run.Brokers, ",")
	}
	d.page.fact("Kafka", what)
	return nil
}

func (d *demo) startDatabase(ctx context.Context) error {
	what := "yours"
	if d.ownDatabase {
		d.progress.Step("starting PostgreSQL (downloaded once where none is installed)")
		server, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{})
		if err != nil {
			return err
		}
		d.close.add(server.Close)
		d.run.DatabaseURL, what = server.URL(), "its own, in a temporary folder"
	}
	var err error
	if d.pool, err = d.run.Pool(ctx); err != nil {
		return err
	}
	d.close.add(func(context.Context) error { d.pool.Close(); return nil })
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	var version string
	if err := d.pool.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&version); err != nil {
		return fmt.Errorf("reach PostgreSQL: %w", err)
	}
	version, _, _ = strings.Cut(version, " ")
	d.page.fact("PostgreSQL", version+", "+what)
	return nil
}

// refusal is the name of a constraint that the demo adds, with which PostgreSQL refuses some rows.
const refusal = "demo_refuses_currency"

// prepareDatabase migrates the schema. On a database of the user, it first checks that the schema
// has only accounts of demos.
func (d *demo) prepareDatabase(ctx context.Context) error {
	if !d.ownDatabase {
		if err := d.refuseForeign(ctx); err != nil {
			return err
		}
	}
	if _, err := readmodel.Migrate(ctx, d.run.DatabaseURL); err != nil {
		return err
	}
	if !d.ownDatabase {
		d.page.fact("", "the class rejected_by_database is left out: for it a table would have to refuse rows")
		return nil
	}
	if _, err := d.pool.Exec(ctx, "ALTER TABLE account_balance ADD CONSTRAINT "+refusal+" CHECK (currency <> '"+
		testbank.RefusedCurrency+"')"); err != nil {
		return fmt.Errorf("add the demo's constraint: %w", err)
	}
	d.page.fact("", "with a CHECK of the demo's own that refuses currency "+testbank.RefusedCurrency+", for rejected_by_database")
	return nil
}

// refuseForeign returns a usage error if the schema has accounts that do not belong to a demo.
func (d *demo) refuseForeign(ctx context.Context) error {
	const anyForeign = "SELECT account_id FROM account_balance_current WHERE NOT starts_with(account_id, $1) LIMIT 1"
	var id string
	err := d.pool.QueryRow(ctx, anyForeign, demoAccounts).Scan(&id)
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		return exit.Usagef("--database-url (DATABASE_URL): the schema holds accounts that are not the demo's: give an empty database, or unset DATABASE_URL and KAFKA_BROKERS for servers of the demo's own")
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case errors.As(err, &pgErr) && pgErr.Code == "42P01": // undefined_table: not migrated yet
		return nil
	default:
		return fmt.Errorf("look for accounts: %w", err)
	}
}

// prepareTopic creates the topic, or checks that the existing topic is empty.
func (d *demo) prepareTopic(ctx context.Context) error {
	admin, topic := kadm.NewClient(d.kafka), d.run.Topic
	_, err := admin.CreateTopic(ctx, d.cmd.Partitions, -1, nil, topic)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("--topic (KAFKA_TOPIC): create %q: %w", topic, err)
	}
	if err == nil {
		return nil
	}
	starts, err := compare.Starts(ctx, admin, topic)
	if err != nil {
		return err
	}
	ends, err := compare.Ends(ctx, admin, topic)
	if err != nil {
		return err
	}
	if !maps.Equal(starts, ends) {
		return exit.Usagef("--topic (KAFKA_TOPIC): %q holds records: name an empty topic, or one that does not exist", topic)
	}
	return nil
}

// produce generates the stream, produces it, and computes the expected result with the ledger. Then it
// drops the stream from memory, so that a later measurement covers only the projector.
func (d *demo) produce(ctx context.Context) error {
	d.progress.Step("making up events")
	stream := testbank.NewShowcase(testbank.ShowcaseOptions{
		Accounts: d.cmd.Accounts, Events: d.cmd.Events, Seed: d.cmd.Seed, Prefix: d.accountPrefix, Refused: d.ownDatabase,
	})
	d.records = len(stream.Records)
	d.page.fact("Stream", fmt.Sprintf("%s records of %s accounts in %d currencies, %s of them delivered twice; seed %d",
		grouped(d.records), grouped(d.cmd.Accounts), stream.Currencies, grouped(stream.Redelivered), d.cmd.Seed))
	if err := d.send(ctx, stream.Records); err != nil {
		return err
	}
	d.ledger = testbank.New()
	if d.ownDatabase {
		d.ledger.RefuseCurrency = testbank.RefusedCurrency
	}
	d.ledger.Decide(stream.Records)
	return nil
}

// send produces the records and waits until all are acknowledged. It sets the partition, offset and
// timestamp of each record.
func (d *demo) send(ctx context.Context, records []testbank.Record) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.progress.Step("producing")
	var acknowledged atomic.Int64
	for i := range records {
		to := &records[i]
		r := &kgo.Record{Topic: d.run.Topic, Key: to.Key, Value: to.Value}
		d.kafka.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err != nil {
				cancel(err)
				return
			}
			to.Partition, to.Offset, to.Timestamp = r.Partition, r.Offset, r.Timestamp.UnixMilli()
			acknowledged.Add(1)
		})
		if i%1000 == 0 {
			d.progress.Update(acknowledged.Load(), int64(len(records)))
		}
	}
	if err := d.kafka.Flush(ctx); err != nil || int(acknowledged.Load()) < len(records) {
		return fmt.Errorf("produce the stream: %w", context.Cause(ctx))
	}
	return nil
}

func rate(n int, took time.Duration) string {
	if took <= 0 {
		return "-"
	}
	return grouped(int(float64(n) / took.Seconds()))
}
