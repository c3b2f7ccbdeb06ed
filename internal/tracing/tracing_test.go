package tracing_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"projector/internal/devstack/devtest"
	"projector/internal/tracing"
	"projector/projection"
	"projector/projection/event"
	"projector/sql"
)

const (
	traceID  = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentID = "00f067aa0ba902b7"
	sampled  = "00-" + traceID + "-" + parentID + "-01"
)

// secret is in keys, values and PostgreSQL messages. It must never be in a span.
const secret = "1234567.89"

// The type counts has the number of spans by result.
type counts struct {
	mu sync.Mutex
	of map[tracing.Result]int
}

func (c *counts) add(r tracing.Result, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[tracing.Result]int{}
	}
	c.of[r] += n
}

func (c *counts) get(r tracing.Result) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[r]
}

// start returns a Tracing that sends its spans to url.
func start(t testing.TB, url string, ratio float64, log *slog.Logger) (*tracing.Tracing, *counts) {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	counted := &counts{}
	tr, err := tracing.New(t.Context(), tracing.Config{
		Ratio: ratio, Topic: "account-events", Group: "g", Projection: "account_balance",
		Version: "v1", Spans: counted.add, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr, counted
}

var quiet = slog.New(slog.DiscardHandler)

// end shuts down the tracing, so that all spans are sent. The time limit is reached only if the
// receiver does not answer.
func end(tr *tracing.Tracing) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tr.Shutdown(ctx)
}

// record returns a record with headers. The arguments alternate names and values.
func record(offset int64, headers ...string) *kgo.Record {
	r := &kgo.Record{Topic: "account-events", Partition: 3, Offset: offset, Key: []byte("key-" + secret), Value: []byte(secret)}
	for pair := range slices.Chunk(headers, 2) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: pair[0], Value: []byte(pair[1])})
	}
	return r
}

// fetch passes records through the hooks of the consuming client.
func fetch(tr *tracing.Tracing, records ...*kgo.Record) []*kgo.Record {
	hook := tr.Consuming()
	for _, r := range records {
		hook.(kgo.HookFetchRecordBuffered).OnFetchRecordBuffered(r)
	}
	for _, r := range records {
		hook.(kgo.HookFetchRecordUnbuffered).OnFetchRecordUnbuffered(r, true)
	}
	return records
}

func TestTheProducerDecidesWhichRecordsAreTraced(t *testing.T) {
	for name, c := range map[string]struct {
		headers []string
		ratio   float64
		want    bool
	}{
		"sampled":                    {[]string{"source", "core", "traceparent", sampled}, 0, true},
		"not sampled":                {[]string{"traceparent", sampled[:53] + "00"}, 1, false},
		"other flags only":           {[]string{"traceparent", sampled[:53] + "02"}, 1, false},
		"the first counts":           {[]string{"traceparent", sampled[:53] + "00", "traceparent", sampled}, 1, false},
		"a version to come":          {[]string{"traceparent", "01" + sampled[2:] + "-more"}, 0, true},
		"nothing, ratio 0":           {nil, 0, false},
		"nothing, ratio 1":           {[]string{"tracestate", "a=b"}, 1, true},
		"not readable, ratio 0":      {[]string{"traceparent", "00-" + strings.Repeat("0", 32) + sampled[35:]}, 0, false},
		"not readable, ratio 1":      {[]string{"traceparent", sampled[:53] + "zz"}, 1, true},
		"too short, ratio 0":         {[]string{"traceparent", "01"}, 0, false},
		"empty, ratio 1":             {[]string{"traceparent", ""}, 1, true},
		"upper case is another name": {[]string{"Traceparent", sampled}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			tr, _ := start(t, devtest.Spans(t).URL, c.ratio, quiet)
			defer end(tr)
			records := fetch(tr, record(7, c.headers...))
			if got := len(tr.Partition(3).Pick(nil, records)) == 1; got != c.want {
				t.Errorf("followed: %v, want %v", got, c.want)
			}
		})
	}
}

// TestControlRecordsAreNotTraced shows that a transaction marker is not traced. A marker is a
// record too, but its key and value do not contain an event.
func TestControlRecordsAreNotTraced(t *testing.T) {
	tr, _ := start(t, devtest.Spans(t).URL, 1, quiet)
	defer end(tr)
	marker := record(1)
	marker.Attrs = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Control: true})
	if fetch(tr, marker); marker.Context != nil {
		t.Error("followed")
	}
}

func TestARecordIsTracedToItsTransaction(t *testing.T) {
	received := devtest.Spans(t)
	tr, counted := start(t, received.URL, 0, quiet)
	records := fetch(tr, record(10), record(11, "traceparent", sampled, "tracestate", "vendor=x"), record(12, "traceparent", sampled), record(13, "traceparent", sampled))
	p, db := tr.Partition(3), tr.Database().(interface {
		pgx.QueryTracer
		pgx.BatchTracer
	})
	statement := func(sql string, err error) {
		ctx := db.TraceQueryStart(p.Context(t.Context()), nil, pgx.TraceQueryStartData{SQL: sql, Args: []any{secret}})
		db.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{Err: err})
	}
	statement(sql.Query("position_load"), nil)
	p.Folding(p.Pick(nil, records))
	statement(sql.AccountsOf("account_balance").Query("load_accounts"), nil)
	p.Flushing(13) // the last record belongs to the next flush
	ctx := db.TraceBatchStart(p.Context(t.Context()), nil, pgx.TraceBatchStartData{Batch: &pgx.Batch{}})
	db.TraceBatchQuery(ctx, nil, pgx.TraceBatchQueryData{SQL: sql.Query("position_move"), Args: []any{secret}})
	refused := &pgconn.PgError{Severity: "ERROR", Code: "22P02", Message: "invalid input syntax: " + secret, Detail: secret}
	db.TraceBatchEnd(ctx, nil, pgx.TraceBatchEndData{Err: refused})
	statement("COMMIT", nil)
	p.Flushed(13, &projection.Flushed{Records: 3, DeadLetters: []projection.DeadLetter{{
		Class: event.VersionGap, Record: projection.Record{Offset: 12}, Message: secret,
	}}})
	statement(sql.Query("position_load"), nil)
	p.Dropped(errors.New("drained"))
	end(tr)

	flush := one(t, received.Named("account_balance flush"))
	if hex.EncodeToString(flush.GetTraceId()) == traceID || len(flush.GetParentSpanId()) > 0 {
		t.Error("the flush is in the trace of one of its records")
	}
	process := received.Named("account-events process")
	if len(process) != 3 {
		t.Fatalf("%d records followed, want 3", len(process))
	}
	slices.SortFunc(process, func(a, b *otlp.Span) int {
		return int(number(a, "messaging.kafka.message.offset") - number(b, "messaging.kafka.message.offset"))
	})
	var links [][]byte
	for _, l := range flush.GetLinks() {
		links = append(links, l.GetSpanId())
	}
	for i, s := range process {
		if hex.EncodeToString(s.GetTraceId()) != traceID {
			t.Errorf("record %d is in trace %x", i, s.GetTraceId())
		}
		in := slices.ContainsFunc(links, func(id []byte) bool { return bytes.Equal(id, s.GetSpanId()) })
		back := len(s.GetLinks()) == 1 && bytes.Equal(s.GetLinks()[0].GetSpanId(), flush.GetSpanId())
		if want := i < 2; in != want || back != want {
			t.Errorf("record %d: linked by the flush %v, links to it %v; want %v", i, in, back, want)
		}
	}
	if process[1].GetStatus().GetCode() != otlp.Status_STATUS_CODE_ERROR || process[0].GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR {
		t.Error("the span of the dead letter looks like the others")
	}
	if e := process[2].GetEvents(); len(e) != 1 || e[0].GetName() != "read again" {
		t.Errorf("events of the record that was given up: %v", e)
	}
	receive := received.Named("account-events receive")
	if len(receive) != 3 || hex.EncodeToString(receive[0].GetParentSpanId()) != parentID || receive[0].GetTraceState() != "vendor=x" {
		t.Errorf("the producer's span is not the parent: %v", receive)
	}
	for name, parent := range map[string]*otlp.Span{"batch start": flush, "COMMIT": flush, "load_accounts": process[0]} {
		if s := one(t, received.Named(name)); !bytes.Equal(s.GetParentSpanId(), parent.GetSpanId()) {
			t.Errorf("%s is not part of %s", name, parent.GetName())
		}
	}
	if s := one(t, received.Named("batch start")); !strings.Contains(s.String(), "22P02") {
		t.Errorf("the SQLSTATE is missing: %v", s)
	}
	if bytes.Contains(received.Raw(), []byte(secret)) {
		t.Error("a span tells a key, a value or a parameter")
	}
	if n := len(received.All()); counted.get(tracing.Exported) != n || counted.get(tracing.Dropped)+counted.get(tracing.Failed) != 0 {
		t.Errorf("%v counted, %d spans arrived", counted.of, n)
	}
}

func one(t testing.TB, spans []*otlp.Span) *otlp.Span {
	t.Helper()
	if len(spans) != 1 {
		t.Fatalf("%d spans, want 1: %v", len(spans), spans)
	}
	return spans[0]
}

func number(s *otlp.Span, key string) int64 {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetIntValue()
		}
	}
	return -1
}

// again removes what the hooks have set in the record, so that the hooks can be called with this
// record once more.
func again(r *kgo.Record) { r.Context = nil }

// BenchmarkFetched measures what tracing costs for a traced and for an untraced record.
func BenchmarkFetched(b *testing.B) {
	for name, headers := range map[string][]string{
		"none": nil, "unsampled": {"source", "core", "traceparent", sampled[:53] + "00"}, "sampled": {"source", "core", "traceparent", sampled},
	} {
		b.Run(name, func(b *testing.B) {
			received := devtest.Spans(b)
			tr, _ := start(b, received.URL, 0, quiet)
			defer end(tr)
			r, hook := record(1, headers...), tr.Consuming()
			b.ReportAllocs()
			for b.Loop() {
				again(r)
				hook.(kgo.HookFetchRecordBuffered).OnFetchRecordBuffered(r)
				hook.(kgo.HookFetchRecordUnbuffered).OnFetchRecordUnbuffered(r, true)
			}
		})
	}
}
