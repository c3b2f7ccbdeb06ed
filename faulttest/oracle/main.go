// Command oracle checks the results of a projector. It reads the producer's journal, applies each
// event with its own decoder and arithmetic (internal/testbank), and compares PostgreSQL, the DLQ
// topic and Kafka's committed offsets. It shares no code with the projector.
//
// It prints one JSON document. The exit status is 0 if everything is right, 1 if something is
// wrong, and 2 if the check could not be done.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/faulttest/journal"
	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// report is the JSON document that the oracle prints.
type report struct {
	Records  int                          `json:"records"`
	Accounts int                          `json:"accounts"`
	Letters  int                          `json:"dead_letters"`
	Repeats  int                          `json:"repeated_dead_letters"`
	Healed   int                          `json:"healed"`
	Outcomes map[int32]*testbank.Outcomes `json:"outcomes"`
	Wrong    []string                     `json:"wrong"`
}

// checker has the flags of the command.
type checker struct {
	journal, database, brokers, dlq, ignore string

	reader  compare.Reader
	once    bool
	audited bool
	wait    time.Duration
}

func main() { os.Exit(run()) }

func run() int {
	var c checker
	flag.StringVar(&c.journal, "journal", "", "file with the producer's journal")
	flag.StringVar(&c.database, "database-url", os.Getenv("DATABASE_URL"), "the read model")
	flag.StringVar(&c.brokers, "brokers", "localhost:9092", "host:port,host:port")
	flag.StringVar(&c.reader.Topic, "topic", "account-events", "the journal's topic")
	flag.StringVar(&c.reader.Group, "group", "account-balance-projector", "the projector's group")
	flag.StringVar(&c.reader.Projection, "projection", "account_balance", "the projection")
	flag.StringVar(&c.dlq, "dlq-topic", "account-events.dlq", "the dead letters")
	flag.StringVar(&c.ignore, "ignore-event-types", "", "event types that only advance a version")
	flag.BoolVar(&c.once, "exactly-once", false, "no dead letter may be there twice")
	flag.BoolVar(&c.audited, "audited", false, "the schema has the trigger of package audit")
	flag.DurationVar(&c.wait, "wait", 0, "how long what is wrong may take to come right")
	flag.Parse()
	found, err := c.check(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		return 2
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(found); err != nil {
		return 2
	}
	if len(found.Wrong) > 0 {
		return 1
	}
	return 0
}

// check applies the journal one time. It then repeats the comparison until nothing is wrong or the
// time is over.
func (c *checker) check(ctx context.Context) (*report, error) {
	records, err := journal.Read(c.journal)
	if err != nil {
		return nil, err
	}
	o := testbank.New(strings.FieldsFunc(c.ignore, func(r rune) bool { return r == ',' })...)
	o.Decide(records)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(c.wait); ; <-tick.C {
		found := &report{
			Records: len(records), Accounts: len(o.Rows()), Letters: len(o.DeadLetters), Healed: o.Healed, Outcomes: o.Outcomes,
			Wrong: []string{},
		}
		if err := c.compare(ctx, records, o, found); err != nil {
			return nil, err
		}
		if len(found.Wrong) == 0 || time.Now().After(until) {
			return found, nil
		}
	}
}

func (c *checker) compare(ctx context.Context, records []testbank.Record, o *testbank.Oracle, found *report) error {
	seeds := kgo.SeedBrokers(strings.Split(c.brokers, ",")...)
	client, err := kgo.NewClient(seeds)
	if err != nil {
		return err
	}
	defer client.Close()
	conn, err := pgx.Connect(ctx, c.database)
	if err != nil {
		return errors.New("cannot connect to the database")
	}
	defer func() { _ = conn.Close(ctx) }()

	say := func(wrong string) {
		if wrong != "" {
			found.Wrong = append(found.Wrong, wrong)
		}
	}
	admin := kadm.NewClient(client)
	ends, err := compare.Ends(ctx, admin, c.reader.Topic)
	if err != nil {
		return err
	}
	say(journal.Complete(records, ends))
	wrong, err := c.offsets(ctx, admin, conn, ends)
	if err != nil {
		return err
	}
	say(wrong)
	rows, err := compare.Rows(ctx, conn, "")
	if err != nil {
		return err
	}
	say(compare.Differences(rows, o))
	letters, err := compare.ReadTopic(ctx, c.dlq, seeds)
	if err != nil {
		return err
	}
	found.Repeats = len(letters) - len(o.DeadLetters)
	say(c.reader.DeadLetters(letters, o, compare.Repeats(!c.once)))
	if !c.audited {
		return nil
	}
	wrong, err = lowered(ctx, conn)
	say(wrong)
	return err
}

// offsets returns "" if all records are consumed and no offset that is committed to Kafka is beyond
// the durable position.
func (c *checker) offsets(ctx context.Context, admin *kadm.Client, conn *pgx.Conn, ends map[int32]int64) (string, error) {
	committed, err := c.reader.Committed(ctx, admin)
	if err != nil {
		return "", err
	}
	positions, err := c.reader.Positions(ctx, conn)
	if err != nil {
		return "", err
	}
	for p, end := range ends {
		if positions[p] != end {
			return fmt.Sprintf("partition %d is durable up to %d of %d", p, positions[p], end), nil
		}
		if committed[p] > positions[p] {
			return fmt.Sprintf("partition %d is committed up to %d and durable up to %d", p, committed[p], positions[p]), nil
		}
	}
	return "", nil
}

// lowered returns "" if every update of an account has raised its version. An audit trigger counts
// all other updates with a sequence, so updates that were rolled back count too.
func lowered(ctx context.Context, conn *pgx.Conn) (string, error) {
	var attempts, written int64
	err := conn.QueryRow(ctx, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END, (SELECT count(*) FROM version_audit) FROM version_audit_attempts").
		Scan(&attempts, &written)
	if err != nil {
		return "", fmt.Errorf("audit: %w", err)
	}
	if attempts > 0 || written > 0 {
		return fmt.Sprintf("%d writes did not raise a version, %d of them stayed", attempts, written), nil
	}
	return "", nil
}
