package tracing

import (
	"context"
	"errors"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// database hands on to otelpgx what serves followed records, with errors that may be
// shown to anybody: PostgreSQL repeats values in its messages. All other statements
// cost a look at their context.
type database struct{ tracer *otelpgx.Tracer }

var (
	_ pgx.QueryTracer       = database{}
	_ pgx.BatchTracer       = database{}
	_ pgxpool.AcquireTracer = database{}
)

// TraceQueryStart implements pgx.QueryTracer.
func (d database) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !recording(ctx) {
		return ctx
	}
	return d.tracer.TraceQueryStart(ctx, conn, data)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (d database) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	if recording(ctx) {
		data.Err = withState(data.Err)
		d.tracer.TraceQueryEnd(ctx, conn, data)
	}
}

// TraceBatchStart implements pgx.BatchTracer.
func (d database) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if !recording(ctx) {
		return ctx
	}
	return d.tracer.TraceBatchStart(ctx, conn, data)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (d database) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	if recording(ctx) {
		data.Err = withState(data.Err)
		d.tracer.TraceBatchQuery(ctx, conn, data)
	}
}

// TraceBatchEnd implements pgx.BatchTracer.
func (d database) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	if recording(ctx) {
		data.Err = withState(data.Err)
		d.tracer.TraceBatchEnd(ctx, conn, data)
	}
}

// TraceAcquireStart implements pgxpool.AcquireTracer.
func (d database) TraceAcquireStart(ctx context.Context, pool *pgxpool.Pool, data pgxpool.TraceAcquireStartData) context.Context {
	if !recording(ctx) {
		return ctx
	}
	return d.tracer.TraceAcquireStart(ctx, pool, data)
}

// TraceAcquireEnd implements pgxpool.AcquireTracer.
func (d database) TraceAcquireEnd(ctx context.Context, pool *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	if recording(ctx) {
		data.Err = withState(data.Err)
		d.tracer.TraceAcquireEnd(ctx, pool, data)
	}
}

// withState is err with a safe text and, if PostgreSQL answered it, its SQLSTATE.
func withState(err error) error {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return &pgconn.PgError{Severity: answer.Severity, Code: answer.Code, Message: safe(err).Error()}
	}
	return safe(err)
}
