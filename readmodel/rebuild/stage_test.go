package rebuild_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/balance"
	"projector/readmodel/own"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/rebuild"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// definition is a projection, with a query for its rows and statements that damage them.
type definition struct {
	readmodel.Definition
	formats event.Resolver
	ordered bool
	rows    string   // a query for the key and the text of each row
	damages []string // statements that damage rows
}

// topicName is the topic of every test. The accounts a, b and c are in its first partition, d and e
// in its second.
const topicName = "events"

const ownTables = `CREATE TABLE counted (account_id text PRIMARY KEY, events bigint NOT NULL, amount numeric NOT NULL CHECK (amount < 100));
	CREATE TABLE summed (account_id text PRIMARY KEY, amount numeric NOT NULL CHECK (amount < 15), versions text NOT NULL)`

const onceFile = `-- projection: counted
-- mode: once
-- types: FundsCredited
-- tables: counted
INSERT INTO counted SELECT account_id, count(*), sum((data->>'amount')::numeric) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET events = counted.events + EXCLUDED.events, amount = counted.amount + EXCLUDED.amount;
`

const orderedFile = `-- projection: summed
-- mode: ordered
-- types: FundsCredited
-- tables: summed
INSERT INTO summed SELECT account_id, sum((data->>'amount')::numeric), string_agg(event_id, ' ' ORDER BY version) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET amount = summed.amount + EXCLUDED.amount, versions = summed.versions || ' ' || EXCLUDED.versions;
`

// The function definitions returns one projection of each of the five types.
func definitions(t testing.TB) []definition {
	t.Helper()
	money := event.Always(readmodeltest.JSONFormat(t))
	ofFile := func(text string) (readmodel.Definition, event.Resolver) {
		p, err := file.Parse("own.sql", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return own.Definition(p), event.Always(event.NewJSON(event.Options{FirstVersion: 1, CustomTypes: p.Types}))
	}
	once, onceFormats := ofFile(onceFile)
	ordered, orderedFormats := ofFile(orderedFile)
	return []definition{
		{balance.Definition{}, money, true, `SELECT account_id, concat_ws(' ', currency, balance, version, status, last_event_id, stale, waiting_for_version) FROM account_balance_current`, []string{
			`UPDATE account_balance SET balance = balance + 100 WHERE account_id = $1`,
			`DELETE FROM account_balance WHERE account_id = $1`,
			`DELETE FROM parked_event WHERE account_id = $1`,
			`WITH gone AS (DELETE FROM account_balance WHERE account_id = $1), gone_too AS (DELETE FROM parked_event WHERE account_id = $1) SELECT`,
			`INSERT INTO account_balance (account_id, currency, balance, version) SELECT 'phantom', 'EUR', 1.00, length($1) ON CONFLICT DO NOTHING`,
		}},
		{statement.Definition(), money, false, `SELECT concat_ws(',', account_id, version), concat_ws(' ', event_id, event_type, amount, currency) FROM account_statement`, []string{
			`UPDATE account_statement SET amount = 99 WHERE account_id = $1`,
			`UPDATE account_statement SET event_id = 'x', currency = NULL WHERE account_id = $1 AND version < 3`,
			`DELETE FROM account_statement WHERE account_id = $1 AND version > 1`,
			`DELETE FROM account_statement WHERE length($1) > 0`,
			`INSERT INTO account_statement (account_id, version, event_id, event_type, occurred_at) SELECT 'phantom', length($1), 'p', 'AccountOpened', now() ON CONFLICT DO NOTHING`,
		}},
		{turnover.Definition(), money, false, `SELECT concat_ws(',', day, currency), concat_ws(' ', credited, debited, events) FROM daily_turnover`, []string{
			`UPDATE daily_turnover SET credited = credited + 0.125 WHERE length($1) > 0`,
			`DELETE FROM daily_turnover WHERE length($1) > 0`,
			`DELETE FROM inbox WHERE message_id LIKE $1 || '%'`,
			`WITH gone AS (DELETE FROM daily_turnover) DELETE FROM inbox WHERE length($1) > 0`,
			`UPDATE daily_turnover SET credited = 3, debited = -1, events = events + length($1) WHERE currency = 'EUR'`,
			`INSERT INTO daily_turnover SELECT '1999-01-01', 'EUR', 1.00, 2.00, length($1) ON CONFLICT DO NOTHING`,
		}},
		{once, onceFormats, false, `SELECT account_id, concat_ws(' ', events, amount) FROM counted`, []string{
			`UPDATE counted SET amount = amount + 0.5 WHERE account_id = $1`,
			`DELETE FROM counted WHERE account_id = $1`,
			`DELETE FROM inbox WHERE message_id LIKE $1 || '%'`,
			`INSERT INTO counted SELECT 'phantom', length($1), 1 ON CONFLICT DO NOTHING`,
		}},
		{ordered, orderedFormats, true, `SELECT coalesce(a.account_id, p.account_id, s.account_id), concat_ws(' / ', a.version, s.amount, s.versions, p.waits)
			FROM (SELECT * FROM projection_account) a
			FULL JOIN (SELECT account_id, string_agg(version || ' ' || class || ' ' || event_id, ', ' ORDER BY version) AS waits FROM projection_parked_event GROUP BY 1) p USING (account_id)
			FULL JOIN summed s ON s.account_id = coalesce(a.account_id, p.account_id)`, []string{
			`UPDATE summed SET amount = 1.25 WHERE account_id = $1`,
			`DELETE FROM summed WHERE account_id = $1`,
			`DELETE FROM projection_account WHERE account_id = $1`,
			`DELETE FROM projection_parked_event WHERE account_id = $1`,
			`UPDATE projection_account SET version = version + 3 WHERE account_id = $1`,
			`WITH a AS (INSERT INTO projection_account (projection, account_id, version) SELECT 'summed', 'phantom', 2 ON CONFLICT DO NOTHING)
			 INSERT INTO summed SELECT 'phantom', length($1), '' ON CONFLICT DO NOTHING`,
		}},
	}
}

// log is a topic. It has the values of the records of each partition.
type log [][]string

// Records implements rebuild.Source.
func (l log) Records(_ context.Context, partition int32, from, to int64) iter.Seq2[projection.Record, error] {
	return func(yield func(projection.Record, error) bool) {
		for offset := from; offset < to; offset++ {
			if !yield(l.record(partition, offset), nil) {
				return
			}
		}
	}
}

// The method starts returns the first offsets of the partitions.
func (l log) starts() map[int32]int64 {
	starts := map[int32]int64{}
	for number := range l {
		starts[int32(number)] = 0
	}
	return starts
}

func (l log) record(partition int32, offset int64) projection.Record {
	return projection.Record{
		Topic: topicName, Partition: partition, Offset: offset, Timestamp: 1_700_000_000_000,
		Message: event.Message{Key: []byte("k"), Value: []byte(l[partition][offset])},
	}
}

// drawLog draws a topic. It may have gaps, redeliveries, conflicts and events that cannot be
// applied, in any order.
func drawLog(rt *rapid.T) (l log) {
	for _, accounts := range [][]string{{"a", "b", "c"}, {"d", "e"}} {
		l = append(l, rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			account, version := rapid.SampledFrom(accounts).Draw(rt, "account"), rapid.IntRange(1, 6).Draw(rt, "version")
			id, amount, currency := fmt.Sprint(account, "-", version), fmt.Sprint(version), "EUR"
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				amount = "none"
			case 1:
				currency = "USD"
			case 2:
				id, amount = "other-"+id, "7"
			}
			return fmt.Sprintf(`{"eventId":%q,"eventType":"FundsCredited","accountId":%q,"version":%d,"occurredAt":"2026-01-0%dT00:00:00Z","data":{"amount":%q,"currency":%q}}`,
				id, account, version, 1+version%2, amount, currency)
		}), 1, 25).Draw(rt, "records"))
	}
	return l
}

// consumer reads the topic into a database, as a group of consumers does.
type consumer struct {
	pool  *pgxpool.Pool
	build *rebuild.Build
	at    map[int32]int64

	mu      sync.Mutex // partitions flush at the same time
	letters []projection.DeadLetter
}

// The type collecting is a projection that adds its dead letters to a consumer's list.
type collecting struct {
	session.Projection
	c *consumer
}

// Flush implements session.Projection.
func (p collecting) Flush(ctx context.Context, next projection.NextOffset) (projection.Flushed, error) {
	flushed, err := p.Projection.Flush(ctx, next)
	if err == nil {
		p.c.mu.Lock()
		defer p.c.mu.Unlock()
		p.c.letters = append(p.c.letters, flushed.DeadLetters...)
	}
	return flushed, err
}

func newConsumer(d definition, pool *pgxpool.Pool, l log) *consumer {
	return newConsumerOf(&d, pool, l, "g")
}

func newConsumerOf(d *definition, pool *pgxpool.Pool, l log, group string) *consumer {
	c := &consumer{pool: pool, at: map[int32]int64{}}
	open := d.Open(readmodel.RunConfig{
		Pool: pool, Formats: d.formats, FirstVersion: 1, ParkLimit: 100, CacheBytes: func() int { return 1 << 20 }, Observer: unseen{},
	})
	cfg := rebuild.Config{
		Source: l, Formats: d.formats, Topic: topicName, TopicID: "id", Starts: l.starts(), FirstVersion: 1,
		Open: func(partition int32) session.Projection {
			return collecting{open(readmodel.Partition{Projection: d.Name(), Group: group, Topic: topicName, Number: partition}), c}
		},
		Overdue: func(ctx context.Context, _ string, partitions []int32) ([]int32, error) {
			if !d.ordered {
				return nil, nil
			}
			return accountdb.LoadOverdue(ctx, pool, d.Name(), topicName, partitions, 0)
		},
	}
	c.build = rebuild.New(cfg)
	return c
}

// consumeTo consumes the topic up to the given offsets.
func (c *consumer) consumeTo(t *testing.T, ends map[int32]int64) {
	t.Helper()
	if err := c.build.Advance(t.Context(), ends, nil); err != nil {
		t.Fatal(err)
	}
	c.at = ends
}

// unseen is an Observer that ignores all metrics.
type unseen struct{}

func (unseen) Parked(readmodel.ParkedSummary) {}
func (unseen) InboxRows(int64)                {}
func (unseen) InboxPruned(int64)              {}
func (unseen) DedupHit()                      {}
func (unseen) DedupMiss()                     {}

// openPool opens a fresh, migrated database with the tables of the projection files.
func openPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := readmodeltest.OpenPool(t)
	execute(t, pool, ownTables)
	return pool
}

func execute(t testing.TB, pool *pgxpool.Pool, query string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), query, args...); err != nil {
		t.Fatalf("%v: %s", err, query)
	}
}

// The function emptied empties every table that one run of the property writes.
func emptied(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	execute(t, pool, `SET session_replication_role = replica; DELETE FROM dlq_action; SET session_replication_role = DEFAULT;
		TRUNCATE account_balance, account_opening, parked_event, park_overflow, projector_position, projector_source, account_statement,
		daily_turnover, inbox, inbox_pruned, projection_account, projection_parked_event, projection_park_overflow, counted, summed`)
}

// The method state returns the rows of the projection by key.
func (d *definition) state(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	found, err := pool.Query(t.Context(), d.rows)
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]string{}
	var key, row string
	if _, err := pgx.ForEachRow(found, []any{&key, &row}, func() error { state[key] = row; return nil }); err != nil {
		t.Fatal(err)
	}
	return state
}

// leftAlone returns the keys of the rows that a rebuild did not change, according to the report.
func leftAlone(report *rebuild.Report) (keys []string) {
	for _, d := range report.Differences {
		if slices.Contains([]rebuild.Kind{rebuild.Ahead, rebuild.Corrected, rebuild.Moved}, d.Kind) {
			keys = append(keys, strings.Trim(d.ID, "()"))
		}
	}
	return keys
}
