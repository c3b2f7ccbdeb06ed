package tracing

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kotel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"projector/errclass"
)

var w3c = propagation.TraceContext{}

// traceparent is the header of W3C Trace Context with the caller's span. Its value has version,
// trace, span and flags in hex, separated by hyphens. Later versions of the standard may append
// more fields.
const (
	traceparent       = "traceparent"
	traceparentLength = 55
	flagsAt           = 53
	sampledFlag       = 1
)

// decision reads the header traceparent of a record. The result decided says whether the producer
// has decided about tracing. The result sampled says whether the record must be traced. An invalid
// header is ignored. Most records have no such header, or their header says that they are not
// sampled. For these records, decision does not allocate memory.
func decision(headers []kgo.RecordHeader) (sampled, decided bool) {
	for i := range headers {
		if headers[i].Key != traceparent {
			continue
		}
		value := headers[i].Value
		if len(value) < traceparentLength {
			return false, false
		}
		var flags [1]byte
		if _, err := hex.Decode(flags[:], value[flagsAt:traceparentLength]); err != nil {
			return false, false
		}
		if flags[0]&sampledFlag == 0 {
			return false, true
		}
		valid := parent(context.Background(), headers).IsSampled()
		return valid, valid
	}
	return false, false
}

// parent returns the producer's span that the headers name.
func parent(ctx context.Context, headers []kgo.RecordHeader) trace.SpanContext {
	return trace.SpanContextFromContext(withParent(ctx, headers))
}

func withParent(ctx context.Context, headers []kgo.RecordHeader) context.Context {
	return w3c.Extract(ctx, kotel.NewRecordCarrier(&kgo.Record{Headers: headers}))
}

// consuming begins the span of a record when the client has fetched the record. It sets the Context
// of a traced record. A record without a Context is not traced.
type consuming struct{ t *Tracing }

func (h consuming) OnFetchRecordBuffered(r *kgo.Record) {
	if !r.Attrs.IsControl() && h.t.begins(r.Headers) {
		h.t.consumed.OnFetchRecordBuffered(r)
	}
}

func (h consuming) OnFetchRecordUnbuffered(r *kgo.Record, _ bool) {
	if r.Context != nil {
		h.t.end(trace.SpanFromContext(r.Context))
	}
}

// publishing adds the span of a published dead letter to the trace of its record.
type publishing struct{ t *Tracing }

func (h publishing) OnProduceRecordBuffered(r *kgo.Record) {
	if sampled, _ := decision(r.Headers); sampled && h.t.reserve() {
		r.Context = withParent(r.Context, r.Headers)
		h.t.published.OnProduceRecordBuffered(r)
	}
}

func (h publishing) OnProduceRecordUnbuffered(r *kgo.Record, err error) {
	if recording(r.Context) {
		h.t.published.OnProduceRecordUnbuffered(r, safe(err))
		h.t.live.Add(-1)
	}
}

// recording reports whether ctx has a span that is recorded.
func recording(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// withoutKey is the formatter of keys for the spans. It always returns an error, so that the spans
// do not contain the record's key.
func withoutKey(*kgo.Record) (string, error) { return "", errNoKey }

var errNoKey = errors.New("the key is left out of the trace")

// safe returns err with a text that has no row data, no payload and no password.
func safe(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(errclass.Safe(err))
}

// database passes the statements of traced records to otelpgx. It replaces errors by safe errors,
// because PostgreSQL repeats values in its messages. For all other statements it only checks the
// context.
type database struct{ tracer *otelpgx.Tracer }

var (
	_ pgx.QueryTracer       = database{}
	_ pgx.BatchTracer       = database{}
	_ pgxpool.AcquireTracer = database{}
)

func (d database) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !recording(ctx) {
		return ctx
	}
	return d.tracer.TraceQueryStart(ctx, conn, data)
}

func (d database) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	if recording(ctx) {
		data.Err = withState(data.Err)
		d.tracer.TraceQueryEnd(ctx, conn, data)
	}
}

func (d database) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if !recording(ctx) {
		return ctx
	}
	return d.tracer.TraceBatchStart(ctx, conn, data)
}

func (d database) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	if recording(ctx) {
		data.Err = withState(data.Err)
		d.tracer.TraceBatchQuery(ctx, conn, data)
	}
}

func (d database) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	if recording(ctx) {
		data.Err = withState(data.Err)
		d.tracer.TraceBatchEnd(ctx, conn, data)
	}
}

func (d database) TraceAcquireStart(ctx context.Context, pool *pgxpool.Pool, data pgxpool.TraceAcquireStartData) context.Context {
	if !recording(ctx) {
		return ctx
	}
	return d.tracer.TraceAcquireStart(ctx, pool, data)
}

func (d database) TraceAcquireEnd(ctx context.Context, pool *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	if recording(ctx) {
		data.Err = withState(data.Err)
		d.tracer.TraceAcquireEnd(ctx, pool, data)
	}
}

// withState returns err with a safe text. If err came from PostgreSQL, its SQLSTATE is kept.
func withState(err error) error {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return &pgconn.PgError{Severity: answer.Severity, Code: answer.Code, Message: safe(err).Error()}
	}
	return safe(err)
}
