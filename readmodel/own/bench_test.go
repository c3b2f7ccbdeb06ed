package own_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/own"
)

const benchSQL = `-- projection: loyalty_points
-- mode: %s
-- types: PointsEarned
INSERT INTO loyalty (account_id, points, events)
SELECT account_id, sum((data->>'points')::bigint), count(*) FROM new_events GROUP BY account_id ORDER BY account_id
ON CONFLICT (account_id) DO UPDATE SET points = loyalty.points + EXCLUDED.points, events = loyalty.events + EXCLUDED.events;
`

// rawSQL is the statement of benchSQL with parameters instead of the table new_events.
const rawSQL = `INSERT INTO loyalty (account_id, points, events)
SELECT account_id, sum((data->>'points')::bigint), count(*) FROM (
    SELECT e.account_id, e.version, e.event_id, e.event_type, e.occurred_at, nullif(e.correlation_id, '') AS correlation_id,
           e.data::jsonb AS data, e.topic, e.partition, e."offset"
    FROM unnest($1::text[], $2::int8[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::text[], $9::int4[], $10::int8[])
        AS e (account_id, version, event_id, event_type, occurred_at, correlation_id, data, topic, partition, "offset")
) AS new_events GROUP BY account_id ORDER BY account_id
ON CONFLICT (account_id) DO UPDATE SET points = loyalty.points + EXCLUDED.points, events = loyalty.events + EXCLUDED.events`

// BenchmarkFlush passes batches of 10,000 events to a statement, directly and as a projection of
// each mode. The events of a batch are of different accounts, out of 200,000.
func BenchmarkFlush(b *testing.B) {
	for _, mode := range []string{"raw", "once", "ordered"} {
		b.Run(mode, func(b *testing.B) { benchmarkFlush(b, mode) })
	}
}

const (
	benchBatch    = readmodel.DefaultFlush
	benchAccounts = 200_000
)

func benchmarkFlush(b *testing.B, mode string) {
	b.Helper()
	pool, err := readmodel.OpenPool(b.Context(), devtest.Database(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := pool.Exec(b.Context(), "CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL, events bigint NOT NULL) WITH (fillfactor = 80)"); err != nil {
		b.Fatal(err)
	}
	flush := rawFlush(b, pool)
	if mode != "raw" {
		flush = ownFlush(b, pool, mode)
	}
	next := 0
	b.StopTimer()
	for range b.N + benchAccounts/benchBatch { // the first rounds insert new accounts
		records := benchRecords(next)
		if next >= benchAccounts {
			b.StartTimer()
		}
		flush(records)
		b.StopTimer()
		next += benchBatch
	}
	b.ReportMetric(float64(b.N)*benchBatch/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(0, "ns/op")
}

// benchRecords returns the next batch of decoded events.
func benchRecords(first int) []projection.DecodedRecord {
	format := event.NewJSON(event.Options{FirstVersion: 1, CustomTypes: []string{"PointsEarned"}})
	records := make([]projection.DecodedRecord, benchBatch)
	for i := range records {
		n := first + i
		records[i].Record = projection.Record{Topic: "events", Offset: int64(n), Message: event.Message{Value: fmt.Appendf(nil,
			`{"eventId":"%08x-0000-4000-8000-%012x","eventType":"PointsEarned","accountId":"acc-%08d","version":%d,"occurredAt":"2026-01-01T00:00:00.5Z",`+
				`"data":{"points":"%d","shop":"a shop in town","items":[1,2,3],"customer":{"tier":"gold","since":"2020-01-01"}}}`,
			uint32(n*2654435761), n, n*7919%benchAccounts, n/benchAccounts+1, n%100)}}
		format.Decode(records[i].Record.Message, &records[i].Decoded)
	}
	return records
}

func rawFlush(b *testing.B, pool *pgxpool.Pool) func([]projection.DecodedRecord) {
	b.Helper()
	return func(records []projection.DecodedRecord) {
		events := make([]projection.CustomEvent, len(records))
		for i := range records {
			events[i] = projection.CustomEvent{Event: records[i].Decoded.Event, Record: records[i].Record.Ref()}
		}
		err := pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(b.Context(), rawSQL, readmodel.EventColumns(events)...)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func ownFlush(b *testing.B, pool *pgxpool.Pool, mode string) func([]projection.DecodedRecord) {
	b.Helper()
	p, err := file.Parse("own.sql", fmt.Appendf(nil, benchSQL, mode))
	if err != nil {
		b.Fatal(err)
	}
	proj := own.Definition(p).Open(readmodel.RunConfig{
		Pool: pool, Formats: event.Always(formatOf(p)), FirstVersion: 1, ParkLimit: 100, CacheBytes: func() int { return 64 << 20 },
	})(readmodel.Partition{Group: "g", Topic: "events"})
	if _, err := proj.Claim(b.Context(), projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset}); err != nil {
		b.Fatal(err)
	}
	return func(records []projection.DecodedRecord) {
		next := records[len(records)-1].Record.Next()
		for rest := records; len(rest) > 0; {
			n, err := proj.Fold(b.Context(), rest, benchBatch)
			if err != nil {
				b.Fatal(err)
			}
			rest = rest[n:]
		}
		if _, err := proj.Flush(b.Context(), next); err != nil {
			b.Fatal(err)
		}
	}
}
