package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/projection"
	"projector/projection/event"
	"projector/projection/file"
	"projector/readmodel"
)

// ownStatement is the SQL of the measured custom projections.
//
//go:embed own.sql
var ownStatement string

// These are the projections with that statement. There is one for each mode.
const (
	ownOnce    = "bench_once"
	ownOrdered = "bench_ordered"
)

const ownTable = `CREATE TABLE bench_own (account_id text PRIMARY KEY, events bigint NOT NULL, cents numeric NOT NULL)`

var ownTypes = []string{"AccountOpened", "FundsCredited", "FundsDebited"}

// own returns the description of the table of a custom projection.
func own(mode file.Mode) table {
	return table{
		relation: "bench_own",
		fingerprint: `
			SELECT concat_ws(' ', count(*), sum(events), sum(events * n), sum(trunc(cents)), sum(trunc(cents) * n))
			FROM (SELECT events, cents, substr(account_id, 5)::numeric AS n FROM bench_own) AS accounts`,
		want: wantOwn, raw: rawOwn, mode: mode,
	}
}

// create creates the table of a custom projection. The projector does not create it, because the
// tables of a custom projection belong to its user.
func (t *table) create(ctx context.Context, d database) error {
	if t.mode == "" {
		return nil
	}
	return d.execute(ctx, ownTable)
}

// projectionFile writes the projection file of a workload into a folder. The path is empty if the
// workload has no such file.
func (w *workload) projectionFile(folder string) (path string, err error) {
	mode := w.table().mode
	if mode == "" {
		return "", nil
	}
	path = filepath.Join(folder, w.projection+".sql")
	return path, os.WriteFile(path, fmt.Appendf(nil, "-- projection: %s\n-- mode: %s\n-- types: %s\n%s",
		w.projection, mode, strings.Join(ownTypes, ", "), ownStatement), 0o600)
}

// connect opens a connection for the raw limit. The parameters of a custom projection have types
// that readmodel.OpenPool registers for its connections.
func (w *workload) connect(ctx context.Context, url string) (*pgx.Conn, error) {
	if w.table().mode == "" {
		return pgx.Connect(ctx, url)
	}
	pool, err := readmodel.OpenPool(ctx, url)
	if err != nil {
		return nil, err
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Conn(), nil
}

// rawOwn returns batches with only the projection's statement. Each batch is like a transaction of
// the projector: it has the same number of events, from one partition and sorted by account.
func rawOwn(w *workload) [][]*pgx.Batch {
	const events = `WITH new_events AS (
		SELECT e.account_id, e.version, e.event_id, e.event_type, e.occurred_at, nullif(e.correlation_id, '') AS correlation_id,
		       e.data::jsonb AS data, e.topic, e.partition, e."offset"
		FROM unnest($1::text[], $2::int8[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::text[], $9::int4[], $10::int8[])
		    AS e (account_id, version, event_id, event_type, occurred_at, correlation_id, data, topic, partition, "offset")
	) `
	format := event.NewJSON(event.Options{FirstVersion: 1, CustomTypes: ownTypes})
	return rawEvents(w, int(w.partitions), readmodel.DefaultFlush, func(changes []change) *pgx.Batch {
		taken := make([]projection.CustomEvent, len(changes))
		var d event.Decoded
		for i := range changes {
			r := record(&changes[i])
			format.Decode(event.Message{Key: r.Key, Value: r.Value}, &d)
			taken[i] = projection.CustomEvent{Event: d.Event, Record: projection.RecordRef{Topic: w.topic(), Offset: int64(i)}}
		}
		b := &pgx.Batch{}
		b.Queue(events+ownStatement, readmodel.EventColumns(taken)...)
		return b
	})
}

func wantOwn(w *workload, _ *generator) string {
	events, cents := make([]int64, w.accounts), make([]int64, w.accounts)
	w.eachChange(func(c *change) {
		events[c.account]++
		cents[c.account] += c.amount()
	})
	return accountSums(events, cents)
}
