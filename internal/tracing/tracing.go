// Package tracing traces single records with OpenTelemetry. A trace begins with the producer's
// span, which the record's header traceparent names (W3C Trace Context). It ends with the
// transaction that made the record durable.
//
//	the producer's trace                       a separate trace
//	  the producer's span
//	  ├─ account-events receive
//	  │  └─ account-events process ◀──links──▶ account_balance flush
//	  │     └─ batch start                     ├─ pool.acquire
//	  │        └─ load_accounts                ├─ batch start
//	  └─ account-events.dlq publish            │  └─ BEGIN, position_move, insert_balance
//	                                           └─ COMMIT
//
// The span of a statement has the name of its file in sql/queries.
//
// One flush writes many events, so a flush has a separate trace. The span of a flush and the spans
// of its traced records link to each other. A flush without a traced record has no span. The status
// page and repairs are not traced.
//
// The producer decides which records are traced. A record without the producer's decision is traced
// with the probability Config.Ratio. Whether a record is traced is decided one time, from its
// headers, when the client has fetched it. Tracing never delays records. If there are too many
// spans, further spans are not begun or are dropped, and they are counted.
//
// No span contains a key, a value, a header or a query's parameters. Texts of errors are left out
// if they could repeat such values.
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kotel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"projector/internal/retry"
	"projector/sql"
)

// Config has the settings and dependencies of Tracing.
type Config struct {
	// Ratio is a share from 0 to 1. If a record's producer has not decided about tracing, the
	// record is traced with this probability.
	Ratio      float64
	Topic      string
	Group      string
	Projection string
	Version    string // version of the program
	// Spans counts spans by result. It must be cheap and safe for concurrent use.
	Spans func(Result, int)
	Log   *slog.Logger
}

// Result says whether a span was sent.
type Result string

// Exported means that the receiver has accepted the span. Failed means that the export has failed.
// Dropped means that there were too many spans, so the span was not begun or not sent.
const (
	Exported Result = "exported"
	Failed   Result = "failed"
	Dropped  Result = "dropped"
)

// Results lists every result.
func Results() []Result { return []Result{Exported, Failed, Dropped} }

// mostLive is how many spans of records may be open at a time. A span needs about 2 KB.
const mostLive = 1024

// Tracing is the tracing of one process. Its methods are safe for concurrent use.
type Tracing struct {
	cfg       Config
	provider  *sdk.TracerProvider
	tracer    trace.Tracer
	consumed  *kotel.Tracer
	published *kotel.Tracer
	waiting   atomic.Int64 // spans that wait to be sent
	live      atomic.Int64 // spans of records that have not ended
}

// New prepares tracing. It does not connect, and it does not set OpenTelemetry's global variables.
// Clients receive the hooks and tracers as arguments.
func New(ctx context.Context, cfg Config) (*Tracing, error) {
	sender, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("make the OTLP exporter: %w", err)
	}
	described, err := describe(ctx, cfg)
	if err != nil {
		return nil, err
	}
	t := &Tracing{cfg: cfg}
	outage := retry.Throttle(cfg.Log, "export spans", "projector.dependency", "otlp")
	exporter := &sending{SpanExporter: sender, t: t, outage: outage}
	t.provider = sdk.NewTracerProvider(
		sdk.WithResource(described),
		// Spans are begun only for traced records, so all spans without a parent are recorded. A
		// span with a parent follows the sampling decision of its parent.
		sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())),
		sdk.WithSpanProcessor(&queue{sdk.NewBatchSpanProcessor(exporter, sdk.WithMaxQueueSize(mostWaiting)), t}),
	)
	t.tracer = t.provider.Tracer("projector", trace.WithInstrumentationVersion(cfg.Version))
	t.consumed = kotel.NewTracer(kotel.TracerProvider(t.provider), kotel.TracerPropagator(w3c),
		kotel.KeyFormatter(withoutKey), kotel.ConsumerGroup(cfg.Group))
	// This tracer adds no header to published records. A dead letter must have the headers of the
	// original record byte for byte, including the producer's traceparent.
	t.published = kotel.NewTracer(kotel.TracerProvider(t.provider), kotel.TracerPropagator(propagation.NewCompositeTextMapPropagator()),
		kotel.KeyFormatter(withoutKey))
	return t, nil
}

// describe returns the attributes of this process for all spans. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES override the attributes that are set here.
func describe(ctx context.Context, cfg Config) (*resource.Resource, error) {
	r, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "projector"),
		attribute.String("service.version", cfg.Version),
	), resource.WithFromEnv())
	if err != nil {
		return nil, errors.New("OTEL_RESOURCE_ATTRIBUTES: is not a list of key=value, separated by commas")
	}
	return r, nil
}

// Shutdown sends the waiting spans until ctx ends.
func (t *Tracing) Shutdown(ctx context.Context) { _ = t.provider.Shutdown(ctx) } // an error is ignored

// Consuming returns the hooks of the consuming client.
func (t *Tracing) Consuming() kgo.Hook { return consuming{t} }

// Publishing returns the hooks of the client that publishes dead letters.
func (t *Tracing) Publishing() kgo.Hook { return publishing{t} }

// Database returns a tracer for pgx. It traces the statements for traced records.
func (t *Tracing) Database() pgx.QueryTracer {
	names := sql.Names(t.cfg.Projection)
	return database{otelpgx.NewTracer(
		otelpgx.WithTracerProvider(t.provider), otelpgx.WithMeterProvider(noop.NewMeterProvider()),
		otelpgx.WithSpanNameCtxFunc(func(_ context.Context, text string) string {
			// A statement without a name is BEGIN with its isolation level, COMMIT or ROLLBACK.
			first, _, _ := strings.Cut(text, " ")
			return cmp.Or(names[text], strings.ToUpper(first))
		}),
	)}
}

// Partition returns the tracing of one partition.
func (t *Tracing) Partition(number int32) *Partition {
	return &Partition{t: t, attributes: []attribute.KeyValue{
		attribute.String("messaging.system", "kafka"),
		attribute.String("messaging.destination.name", t.cfg.Topic),
		attribute.String("messaging.destination.partition.id", fmt.Sprint(number)),
		attribute.String("messaging.consumer.group.name", t.cfg.Group),
	}}
}

// begins reports whether a record with these headers is traced. If the record is traced, the method
// also reserves the span.
func (t *Tracing) begins(headers []kgo.RecordHeader) bool {
	sampled, decided := decision(headers)
	if !decided {
		sampled = t.cfg.Ratio > 0 && rand.Float64() < t.cfg.Ratio //nolint:gosec // G404: a sample, no secret
	}
	return sampled && t.reserve()
}

// reserve reserves a span, and reports false if too many spans are open.
func (t *Tracing) reserve() bool {
	if t.waiting.Load() < mostWaiting {
		if t.live.Add(1) <= mostLive {
			return true
		}
		t.live.Add(-1)
	}
	t.cfg.Spans(Dropped, 1)
	return false
}

func (t *Tracing) end(span trace.Span) {
	span.End()
	t.live.Add(-1)
}
